"""Whose clock the pages go by: the reader's, once chosen; the figures that all readers share go by UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from dashboard import formats
from dashboard.figures import figures, version
from dashboard.overall import Overall
from jobs.models import AuditEntry
from tests.dashboard.browsing import send, text
from tests.dashboard.seeding import Shop

AT = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("UTC", "1 Jul 2026, 22:30:00 UTC"),
        ("Europe/Berlin", "2 Jul 2026, 00:30:00 CEST"),
        ("Asia/Kathmandu", "2 Jul 2026, 04:15:00 +0545"),
    ],
)
def test_a_moment_is_written_in_the_readers_zone_and_names_it(zone: str, written: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        assert formats.moment(AT) == written


def test_the_choice_is_kept_and_every_page_names_it(viewer: Client, shop: Shop) -> None:
    job_id = shop.scheduled()
    assert "Times in UTC." in text(viewer.get("/dashboard/"))

    answer = send(viewer, "/dashboard/timezone/", {"zone": "Asia/Kathmandu", "next": f"/dashboard/jobs/{job_id}/"})
    page = text(viewer.get(answer["Location"]))

    cookie = answer.cookies["timezone"]
    assert (cookie["max-age"], cookie["httponly"], cookie["samesite"]) == (365 * 24 * 3600, True, "Lax")
    assert answer["Location"] == f"/dashboard/jobs/{job_id}/"
    assert "Times in Asia/Kathmandu." in page
    assert " +0545" in page
    assert " UTC" not in page


def test_a_zone_that_there_is_not_is_explained_and_what_was_typed_stays(viewer: Client) -> None:
    answer = send(viewer, "/dashboard/timezone/", {"zone": "Europe/Berlim"})

    assert answer.status_code == 400
    assert "There is no time zone 'Europe/Berlim'." in text(answer)
    assert "Europe/Berlin" in text(answer)
    assert 'value="Europe/Berlim"' in answer.content.decode()
    assert "timezone" not in answer.cookies


def test_whoever_chose_a_zone_is_led_back_to_no_other_site(viewer: Client) -> None:
    answer = send(viewer, "/dashboard/timezone/", {"zone": "Asia/Kathmandu", "next": "//elsewhere.example/"})

    assert answer["Location"] == "/dashboard/"


@pytest.mark.parametrize("cookie", ["", "nonsense", "../../etc/passwd", "x" * 5_000])
def test_a_cookie_that_is_no_zone_is_utc(cookie: str, viewer: Client) -> None:
    viewer.cookies["timezone"] = cookie

    assert "Times in UTC." in text(viewer.get("/dashboard/"))


def test_readers_of_all_zones_share_the_same_figures() -> None:
    pause = {"by": "ana", "at": "2026-07-01T22:00:00.000Z", "until": "2026-07-02T09:00:00.000Z", "reason": ""}
    pool = {
        "name": "media", "paused": pause, "ready": 3, "scheduled": 0, "retry_wait": 0, "leased": 0, "dead": 0,
        "workers": 1, "slots_actual": 4, "oldest_ready_age_seconds": 5.0, "enqueued_per_second": 0.0,
        "throughput_per_second": 0.0, "predicted_wait_seconds": None,
    }  # fmt: skip
    overall = Overall(pools=(pool,), states={"ready": 3}, at=AT)
    at_home = version(figures(overall))

    with timezone.override(ZoneInfo("Asia/Kathmandu")):
        assert version(figures(overall)) == at_home


def test_the_admin_stays_in_utc(admin_client: Client) -> None:
    entry = AuditEntry.objects.create(at=AT, who="ana", action="pool.pause", target="media")
    admin_client.cookies["timezone"] = "Asia/Kathmandu"

    assert "2 Jul 2026, 04:15" in admin_client.get("/dashboard/audit/", headers={"host": "localhost"}).content.decode()
    shown = text(admin_client.get(f"/admin/jobs/auditentry/{entry.pk}/change/", headers={"host": "localhost"}))
    assert "10:30 p.m." in shown
    assert "4:15" not in shown
