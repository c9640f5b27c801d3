"""The receiver over HTTP, and the page that shows what the samples made."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from samples import outputs, webhooks
from samples.receiver import receiver

if TYPE_CHECKING:
    from django.http import HttpResponse

BODY = b'{"event":"order.paid"}'


def deliver(path: str = "/samples/webhooks/", body: bytes = BODY, *, nonce: str = "n1") -> HttpResponse:
    signature = webhooks.sign(body, delivery="job-1", key=webhooks.secret(), at=int(time.time()), nonce=nonce)
    client = Client(enforce_csrf_checks=True)
    headers = {webhooks.DELIVERY_HEADER: "job-1", webhooks.SIGNATURE_HEADER: signature}
    return client.post(path, body, content_type="application/json", headers=headers)


def test_a_signed_webhook_needs_no_csrf_token() -> None:
    response = deliver()

    assert response.status_code == 200
    assert response.json() == {"accepted": "job-1", "duplicate": False, "tries": 1}


def test_an_unsigned_one_is_refused() -> None:
    response = Client().post("/samples/webhooks/", BODY, content_type="application/json")

    assert response.status_code == 401


def test_the_path_says_how_the_receiver_behaves() -> None:
    assert deliver("/samples/webhooks/down/").status_code == 500
    assert deliver("/samples/webhooks/gone/", nonce="n2").status_code == 410
    assert deliver("/samples/webhooks/flaky/", nonce="n3").status_code == 200  # the third try of this delivery
    assert deliver("/samples/webhooks/elsewhere/", nonce="n4").status_code == 404


def test_a_busy_receiver_says_when_to_come_back() -> None:
    assert deliver("/samples/webhooks/flaky/").headers["Retry-After"] == "1"


def test_too_large_a_body_is_refused() -> None:
    assert deliver(body=b"x" * (webhooks.LARGEST_BODY + 1)).status_code == 413


def test_only_posts_are_webhooks() -> None:
    assert Client().get("/samples/webhooks/").status_code == 405


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def browser(ada: User) -> Client:
    """Ada's browser. She may look."""
    ada.user_permissions.add(Permission.objects.get(codename="view_dashboard"))
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    return client


def test_the_page_lists_what_was_made_and_files_are_downloads(browser: Client) -> None:
    outputs.write("reports", "seattle-2014.csv", b"month,days\n")

    page = browser.get("/samples/").content.decode()
    file = browser.get("/samples/files/reports/seattle-2014.csv")

    assert "seattle-2014.csv" in page
    assert b"".join(file) == b"month,days\n"
    assert file.headers["Content-Disposition"] == 'attachment; filename="seattle-2014.csv"'


@pytest.mark.parametrize(
    "path", ["reports/none.csv", "secrets/none.csv", "reports/..%2F..%2Fdb.sqlite3", "reports/.unfinished-x"]
)
def test_only_finished_outputs_can_be_downloaded(browser: Client, path: str) -> None:
    outputs.write("reports", ".unfinished-x", b"")

    assert browser.get(f"/samples/files/{path}").status_code == 404


def test_strangers_are_sent_to_the_login_and_users_without_permission_away(ada: User) -> None:
    stranger, user = Client(), Client()
    user.force_login(ada)

    for path in ("/samples/", "/samples/files/reports/a.csv"):
        assert stranger.get(path).status_code == 302
        assert user.get(path).status_code == 403
    assert stranger.post("/samples/receiver/", {"outage": "1"}).status_code == 302
    assert user.post("/samples/receiver/", {"outage": "1"}).status_code == 403
    assert not receiver.outage


def test_an_operator_switches_the_receiver_off_and_on(browser: Client, ada: User) -> None:
    ada.user_permissions.add(Permission.objects.get(codename="operate"))
    browser.get("/samples/")
    token = browser.cookies["csrftoken"].value

    without_token = browser.post("/samples/receiver/", {"outage": "1"})
    browser.post("/samples/receiver/", {"outage": "1", "csrfmiddlewaretoken": token})
    during = deliver()
    browser.post("/samples/receiver/", {"outage": "0", "csrfmiddlewaretoken": token})
    after = deliver(nonce="n2")

    assert without_token.status_code == 403
    assert (during.status_code, after.status_code) == (503, 200)


def test_looking_does_not_switch_anything(browser: Client) -> None:
    assert "Switch off" not in browser.get("/samples/").content.decode()
    assert browser.get("/samples/receiver/?outage=1").status_code == 405
