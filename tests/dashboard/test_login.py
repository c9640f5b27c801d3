"""Logging in: back to where one wanted to go, nowhere else, and not by guessing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import login as login_page
from tests.dashboard.browsing import send, text


@pytest.fixture(autouse=True)
def _person(user: Callable[[str], User]) -> None:
    user("viewer")


@pytest.fixture
def browser() -> Client:
    return Client(enforce_csrf_checks=True, headers={"host": "localhost"})


def test_it_leads_back_to_the_page_that_was_asked_for(browser: Client) -> None:
    wanted = browser.get("/dashboard/jobs/?pool=billing")["Location"]
    assert 'name="next" value="/dashboard/jobs/?pool=billing"' in browser.get(wanted).content.decode()

    fields = {"username": "viewer", "password": "viewer", "next": "/dashboard/jobs/?pool=billing"}
    answer = send(browser, "/accounts/login/", fields)

    assert (answer.status_code, answer["Location"]) == (302, "/dashboard/jobs/?pool=billing")
    assert browser.get("/dashboard/").status_code == 200


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", r"/\evil.example", "javascript:alert(1)", "http:///evil.example"],
)
def test_it_leads_nowhere_else(target: str, browser: Client) -> None:
    answer = send(browser, "/accounts/login/", {"username": "viewer", "password": "viewer", "next": target})

    assert answer["Location"] == "/dashboard/"


def test_a_wrong_password_is_said_without_telling_which_part_was_wrong(browser: Client) -> None:
    wrong = text(send(browser, "/accounts/login/", {"username": "viewer", "password": "x"}))
    unknown = text(send(browser, "/accounts/login/", {"username": "nobody", "password": "x"}))

    assert wrong == unknown
    assert "Please enter a correct username and password." in wrong


def test_guessing_is_braked_for_that_name_alone(browser: Client, user: Callable[[str], User]) -> None:
    user("operator")
    for _ in range(login_page.FAILURES):
        send(browser, "/accounts/login/", {"username": "viewer", "password": "x"})

    right = send(browser, "/accounts/login/", {"username": "viewer", "password": "viewer"})
    other = send(browser, "/accounts/login/", {"username": "operator", "password": "operator"})

    assert right.status_code == 429
    assert "Too many wrong passwords." in text(right)
    assert other.status_code == 302


def test_a_cache_that_keeps_nothing_brakes_nobody_and_breaks_nothing(browser: Client, settings: Any) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

    answers = [send(browser, "/accounts/login/", {"username": "viewer", "password": word}) for word in ("x", "viewer")]

    assert [answer.status_code for answer in answers] == [200, 302]


def test_logging_out_takes_a_post_and_ends_the_session(browser: Client) -> None:
    send(browser, "/accounts/login/", {"username": "viewer", "password": "viewer"})
    assert browser.get("/accounts/logout/").status_code == 405

    send(browser, "/accounts/logout/", {})

    assert browser.get("/dashboard/").status_code == 302


def test_the_session_cookie_is_out_of_reach_of_scripts_and_of_other_sites(browser: Client) -> None:
    send(browser, "/accounts/login/", {"username": "viewer", "password": "viewer"})

    cookie = browser.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
