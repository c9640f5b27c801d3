"""A choice that a page does not offer: what it is not and what there is, in a sentence. Never another list."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.choices import chosen
from dashboard.panels import ELSEWHERE, PANELS
from jobs.models import Schedule
from tests.dashboard.browsing import tags, text
from tests.dashboard.seeding import Shop

PAGES = tuple(f"/dashboard/{'' if panel.slug == 'overview' else f'{panel.slug}/'}" for panel in (*PANELS, *ELSEWHERE))

KNOWN = ("15m", "1h", "6h")


@pytest.fixture
def filled(db: None, shop: Shop) -> None:
    """Filters are offered where there is something to filter."""
    shop.dead()
    Schedule.objects.create(name="nightly", job_type="report.build", cron="0 5 * * *", payload={"year": 2026})


def choices_of(page: object) -> set[str]:
    """The words of the address that the page offers choices for: fields of forms, and the ranges of its charts."""
    found = {str(facts["name"]) for tag, facts in tags(page) if tag == "select" and facts.get("name")}
    ranged = any(tag == "a" and str(facts.get("href")).startswith("?range=") for tag, facts in tags(page))
    return found | ({"range"} if ranged else set())


def test_every_page_says_so(filled: None, viewer: Client) -> None:
    silent, asked = [], []
    for path in PAGES:
        for word in sorted(choices_of(viewer.get(path))):
            page = text(viewer.get(path, {word: "rubbish"}))
            asked.append((path, word))
            if "“rubbish” is no " not in page and "There is no pool rubbish" not in page:
                silent.append((path, word))

    assert silent == []
    assert {("/dashboard/charts/", "range"), ("/dashboard/audit/", "since"), ("/dashboard/", "range")} <= {*asked}
    assert {("/dashboard/workflows/", "state"), ("/dashboard/schedules/", "state")} <= {*asked}


def test_no_file_holds_more_than_was_asked_for(filled: None, viewer: Client) -> None:
    response = viewer.get("/dashboard/audit/export/?since=rubbish")

    assert response.status_code == 400
    assert "“rubbish” is no time" in response.content.decode()


def test_what_there_is_is_taken_and_what_is_meant_is_guessed() -> None:
    assert chosen("1h", "range", KNOWN) == ("1h", "")
    assert chosen("", "range", KNOWN) == ("", "")
    assert chosen("1hh", "range", KNOWN) == ("", "“1hh” is no range. Did you mean 1h?")
    assert chosen("moon", "range", KNOWN) == ("", "“moon” is no range. There are 15m, 1h and 6h.")


def test_a_very_long_one_is_shown_in_part() -> None:
    assert len(chosen("x" * 9_000, "range", KNOWN)[1]) < 100
