"""With the store gone or silent: pages come, say so, show the last that was known with its age, and offer no action.
With the database gone nobody is known who might look, and that is said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from dashboard import health, reads
from dashboard.panels import BY_SLUG
from jobs.store.keys import SettingKeys
from jobs.store.topology import FORMAT
from tests.dashboard.browsing import send, tags, text
from tests.dashboard.seeding import Shop
from tests.dashboard.test_matrix import Things, addresses, ask, concrete
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually, soon

PAGES = ("/dashboard/", "/dashboard/jobs/", "/dashboard/dead/", "/dashboard/pools/", "/dashboard/workers/")


@pytest.fixture
def store_of_its_own(settings, private_valkey: ValkeyServer) -> Iterator[ValkeyServer]:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    yield private_valkey
    reads.last_known.forget()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("harm", ["kill", "stop"])
def test_each_page_comes_within_seconds_and_says_what_is_wrong(
    harm: str, path: str, store_of_its_own: ValkeyServer, administrator: Client
) -> None:
    job_id = Shop().dead()
    administrator.get(path)
    getattr(store_of_its_own, harm)()

    started = time.monotonic()
    page = administrator.get(path)
    took = time.monotonic() - started

    assert page.status_code == 200
    assert took < soon(5)
    assert "The store cannot be reached." in text(page)
    assert "Actions are off until it answers." in text(page)
    assert job_id  # it was there
    for tag, attributes in tags(page):
        if tag == "button" and str(attributes.get("formaction", "")).startswith("/dashboard/actions/"):
            assert "disabled" in attributes


def test_the_last_figures_stay_with_their_age(store_of_its_own: ValkeyServer, viewer: Client) -> None:
    Shop().many(7)
    viewer.get("/dashboard/")
    store_of_its_own.kill()

    words = text(viewer.get("/dashboard/"))

    assert "No job runs, 7 wait, none is dead." in words
    assert "Figures are as they were" in words


def test_the_overview_leads_to_no_action_and_claims_nothing_about_workers(
    store_of_its_own: ValkeyServer, operator: Client
) -> None:
    Shop().many(7)
    assert any("deed" in str(facts.get("class")) and "href" in facts for _, facts in tags(operator.get("/dashboard/")))
    store_of_its_own.kill()

    page = operator.get("/dashboard/")

    deeds = [facts for tag, facts in tags(page) if tag == "a" and "deed" in str(facts.get("class"))]
    assert deeds
    assert not [facts for facts in deeds if "href" in facts or "aria-disabled" not in facts]
    assert "No worker has been heard from." not in text(page)


def test_the_clock_of_a_page_goes_on(store_of_its_own: ValkeyServer, viewer: Client) -> None:
    before = viewer.get("/dashboard/snapshot/").json()["at"]
    store_of_its_own.kill()

    after = [viewer.get("/dashboard/snapshot/").json()["at"] for _ in range(2)]

    assert before < after[0] < after[1]


def test_a_page_of_a_job_says_that_it_cannot_be_read(store_of_its_own: ValkeyServer, viewer: Client) -> None:
    job_id = Shop().ready()
    store_of_its_own.kill()

    page = viewer.get(f"/dashboard/jobs/{job_id}/")

    assert page.status_code == 200
    assert "This cannot be shown while the store is away." in text(page)


def test_what_scripts_ask_for_is_503_and_they_keep_what_they_have(
    store_of_its_own: ValkeyServer, viewer: Client
) -> None:
    store_of_its_own.kill()

    assert viewer.get("/dashboard/fragments/overview/").status_code == 503
    snapshot = viewer.get("/dashboard/snapshot/")
    assert snapshot.status_code == 200
    assert snapshot.json()["trouble"]


def test_what_newer_code_has_written_is_no_server_that_is_away(shop: Shop, administrator: Client) -> None:
    job_id = shop.dead()
    shop.engine.store.client.set(SettingKeys(shop.engine.store.namespace).format, FORMAT + 1)
    shop.engine.topology.forget()
    fragments = ("/dashboard/fragments/overview/", "/dashboard/fragments/run/?id=x")
    resubmit = "/dashboard/actions/job/resubmit/"
    told = [text(administrator.get(path)) for path in (*PAGES, f"/dashboard/jobs/{job_id}/")]
    told += [administrator.get(path).json()["error"]["message"] for path in (*fragments, "/api/v1/pools")]
    told += [send(administrator, resubmit, {"id": job_id}, script=True).json()["message"]]

    for words in told:
        assert f"format {FORMAT + 1}" in words
        assert "cannot be reached" not in words


def test_an_action_says_that_nothing_was_done(store_of_its_own: ValkeyServer, operator: Client) -> None:
    job_id = Shop().dead()
    store_of_its_own.kill()

    answer = send(operator, "/dashboard/actions/job/resubmit/", {"id": job_id}, script=True)

    assert answer.status_code == 503
    assert answer.json()["ok"] is False


def answers(client: Client, things: Things) -> dict[str, int]:
    """The status of each address that there is, asked for and posted to."""
    answered = {
        f"{method} {address}": ask(client, method, address, things.fields(things.jobs["dead"])).status_code
        for route in sorted({route for route, _ in addresses()}, key="accounts/logout/".__eq__)  # that one last
        for address in concrete(route, things)
        for method in ("get", "post")
    }
    assert len(answered) > 200
    return answered


def test_after_its_return_pages_are_fresh_again(store_of_its_own: ValkeyServer, viewer: Client) -> None:
    viewer.get("/dashboard/")
    store_of_its_own.kill()
    viewer.get("/dashboard/")
    store_of_its_own.start()

    def banner() -> dict[str, str]:
        return next(a for _, a in tags(viewer.get("/dashboard/")) if a.get("id") == "trouble")

    eventually(lambda: "hidden" in banner(), every=0.1)


@pytest.mark.django_db
class TestWithoutTheDatabase:
    @pytest.fixture
    def no_database(self) -> Callable[[], Any]:
        """``with no_database():`` every question to it fails."""

        def fails(*_: Any) -> None:
            raise OperationalError("no such host db.internal")

        return lambda: connection.execute_wrapper(fails)

    @pytest.mark.parametrize("path", [f"/dashboard/{slug}/".replace("overview/", "") for slug in BY_SLUG])
    def test_every_page_says_so_without_telling_where_it_is(
        self, path: str, administrator: Client, no_database: Callable[[], Any]
    ) -> None:
        with no_database():
            page = administrator.get(path)

        assert page.status_code == 503
        assert "The database cannot be reached." in text(page)
        assert "Worker hosts go on with their jobs." in text(page)
        assert "db.internal" not in page.content.decode()
        assert administrator.get(path).status_code == 200

    def test_no_address_ends_in_a_server_error(
        self, administrator: Client, shop: Shop, no_database: Callable[[], Any]
    ) -> None:
        things, administrator.raise_request_exception = Things(shop), False
        with no_database():
            answered = answers(administrator, things)

        assert {asked: status for asked, status in answered.items() if status >= 500 and status != 503} == {}

    def test_scripts_are_told_so_as_json(self, operator: Client, shop: Shop, no_database: Callable[[], Any]) -> None:
        job_id = shop.dead()
        with no_database():
            figures = operator.get("/dashboard/snapshot/", headers={"accept": "application/json"})
            done = send(operator, "/dashboard/actions/job/resubmit/", {"id": job_id}, script=True)

        assert (figures.status_code, figures.json()["error"]["code"]) == (503, "database_unavailable")
        assert (done.status_code, done.json()["ok"]) == (503, False)
        assert done.json()["message"].endswith("Look whether it was done before you do it again.")
        assert shop.state(job_id) == "dead"

    def test_figures_go_on_for_whoever_looks_already(self, shop: Shop, no_database: Callable[[], Any]) -> None:
        shop.many(3)
        with no_database():
            seen = reads.overall()

        assert (seen.trouble, seen.count("ready")) == ("", 3)

    def test_nobody_logs_in(self, client: Client, no_database: Callable[[], Any]) -> None:
        with no_database():
            answer = client.post(
                "/accounts/login/", {"username": "ana", "password": "x"}, headers={"host": "localhost"}
            )

        assert answer.status_code == 503
        assert "The database cannot be reached." in text(answer)


@pytest.mark.django_db
class TestHealth:
    @pytest.fixture(autouse=True)
    def _forget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(health, "_memory", (float("-inf"), {}))

    def test_ready_when_everything_answers(self, client: Client) -> None:
        answer = client.get("/readyz", headers={"host": "localhost"})

        assert answer.status_code == 200
        assert answer.json() == {"ready": True, "store": "ok", "database": "ok", "migrations": "ok"}

    def test_live_but_not_ready_without_a_store(self, store_of_its_own: ValkeyServer, client: Client) -> None:
        store_of_its_own.kill()

        ready = client.get("/readyz", headers={"host": "localhost"})

        assert ready.status_code == 503
        assert ready.json()["store"] == "unreachable"
        assert store_of_its_own.socket not in ready.content.decode()
        assert client.get("/livez", headers={"host": "localhost"}).status_code == 200

    def test_neither_takes_a_post(self, client: Client) -> None:
        for path in ("/livez", "/readyz"):
            assert client.post(path, headers={"host": "localhost"}).status_code == 405
