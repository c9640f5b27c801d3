"""Where the dashboard stands: at the root of a site, below a path of the project, behind a proxy that adds another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.urls import set_script_prefix
from django.utils.translation import override

from dashboard import links
from dashboard.panels import BY_SLUG
from jobs.models import Schedule
from tests.dashboard.browsing import tags, text
from tests.dashboard.sockets import Socket

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mounted(settings) -> None:
    settings.ROOT_URLCONF = "tests.dashboard.mounted"


@pytest.fixture
def proxied(settings):
    """Behind a proxy that shows the site below ``/tools``."""
    settings.FORCE_SCRIPT_NAME = "/tools"
    set_script_prefix("/tools")  # as servers do; the client of tests does not
    yield
    set_script_prefix("/")


def told_by(page: str, browser: Client) -> str:
    """Where the page opens its WebSocket."""
    [live] = [attributes["data-live"] for _, attributes in tags(browser.get(page)) if "data-live" in attributes]
    return live or ""


async def opens(path: str, browser: Client, **scope: str) -> bool:
    socket = Socket(browser.cookies["sessionid"].value, path=path)
    socket.scope |= scope
    is_open = await socket.open()
    if is_open:
        assert (await socket.frame())["type"] == "figures"
        await socket.leave()
    return is_open


async def test_the_socket_opens_where_a_page_below_a_path_of_the_project_says(mounted: None, viewer: Client) -> None:
    told = await sync_to_async(told_by)("/ops/dashboard/", viewer)

    assert told == "/ops/ws/dashboard/"
    assert await opens(told, viewer)
    assert not await opens("/ws/dashboard/", viewer), "it is nowhere else"
    assert not await opens("/ops/dashboard/", viewer)


async def test_and_where_a_proxy_shows_all_that_below_another_path(
    mounted: None, proxied: None, viewer: Client
) -> None:
    told = await sync_to_async(told_by)("/ops/dashboard/", viewer)

    assert told == "/tools/ops/ws/dashboard/"
    assert await opens(told, viewer), "by a proxy that leaves its path"
    assert await opens("/ops/ws/dashboard/", viewer), "by one that takes it away"


async def test_a_server_may_tell_the_path_of_the_proxy(mounted: None, viewer: Client) -> None:
    assert await opens("/tools/ops/ws/dashboard/", viewer, root_path="/tools")


def test_all_that_a_page_names_lies_below_the_path_of_the_project(mounted: None, login: Callable[..., Client]) -> None:
    reader = login("administrator")
    named = {
        value
        for page in ("/ops/dashboard/", "/ops/dashboard/jobs/", "/ops/dashboard/pools/", "/ops/api/v1/docs")
        for _, attributes in tags(reader.get(page))
        for name, value in attributes.items()
        if value and (name in ("href", "action", "formaction") or name.startswith("data-")) and value.startswith("/")
    }

    assert named
    assert {address for address in named if not address.startswith(("/ops/", "/static/", "/samples/"))} == set()
    assert reader.get("/ops/", follow=True).redirect_chain == [("/ops/dashboard/", 302)]
    assert reader.get("/ops/api/v1/pools/").status_code == 200
    assert "See /ops/api/v1/docs." in reader.get("/ops/api/v1/nothing").content.decode()
    assert Client(headers={"host": "localhost"}).get("/ops/dashboard/")["Location"].startswith("/ops/accounts/login/")


def test_addresses_that_begin_with_a_language_lead_to_that_of_the_reader(settings) -> None:
    settings.ROOT_URLCONF = "tests.dashboard.mounted_by_language"

    with override("de"):
        assert links.job_url("a") == "/de/dashboard/jobs/a/"
    with override("en"):
        assert links.job_url("a") == "/en/dashboard/jobs/a/"
        assert BY_SLUG["pools"].url == "/en/dashboard/pools/"


def test_a_project_without_an_admin_shows_its_staff_no_way_there(mounted: None) -> None:
    Schedule.objects.create(name="nightly", job_type="report.build", cron="0 5 * * *", payload={"year": 2015})
    staff = Client(headers={"host": "localhost"})
    staff.force_login(User.objects.create_superuser("root"))

    for page in ("/ops/dashboard/", "/ops/dashboard/schedules/", "/ops/dashboard/schedules/?name=nightly"):
        assert "Admin" not in text(staff.get(page))


def test_what_knows_no_websockets_says_that_one_was_wanted(viewer: Client) -> None:
    answer = viewer.get("/ws/dashboard/")

    assert (answer.status_code, answer["Upgrade"]) == (426, "websocket")
