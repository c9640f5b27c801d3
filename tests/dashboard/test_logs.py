"""The log and the progress of a job on its page."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from django.test import Client

from dashboard import stories
from jobs import get_job
from jobs.engine import NewLines
from jobs.store.log_lines import encode_line
from tests.dashboard.browsing import text
from tests.dashboard.seeding import Shop

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture
def job_id(shop: Shop) -> str:
    """A running job."""
    job_id, token, route, _ = shop._lease(shop.ready(timeout=600.0))
    now = int(time.time() * 1000)
    lines = [encode_line(now, 20, f"page {number}", {}) for number in range(250)]
    lines.append(encode_line(now, 40, HOSTILE, {"who": HOSTILE, "traceback": f"LookupError: {HOSTILE}"}))
    assert shop.engine.logs.append(route, [NewLines(job_id, token, lines, gone=3)]) == []
    shop.engine.leases.progress(shop.engine.leases.held(route, job_id, token), 3, 12, "a quarter")
    return job_id


def test_the_newest_lines_are_shown_and_what_is_left_out_is_said(viewer: Client, job_id: str) -> None:
    words = text(viewer.get(f"/dashboard/jobs/{job_id}/", follow=True))

    assert "page 249" in words
    assert "page 50" not in words
    assert "51 lines before these: jobs show --logs" in words
    assert "of attempt 1 the first 3 made room" in words


def test_older_lines_are_folded_so_that_a_long_log_makes_no_long_page(viewer: Client, job_id: str) -> None:
    page = viewer.get(f"/dashboard/jobs/{job_id}/", follow=True).content.decode()

    folded = page.partition("<summary>175 older lines</summary>")[2].partition("</details>")[0]
    assert "page 51" in folded
    assert "page 225" in folded
    assert "page 226" not in folded


def test_what_was_logged_is_text_whatever_it_says(viewer: Client, job_id: str) -> None:
    page = viewer.get(f"/dashboard/jobs/{job_id}/", follow=True).content.decode()

    assert HOSTILE not in page
    assert page.count("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;") == 3


def test_a_job_that_logged_nothing_has_no_log(viewer: Client, shop: Shop) -> None:
    assert "newest last" not in text(viewer.get(f"/dashboard/jobs/{shop.leased()}/", follow=True))


def test_progress_that_has_stalled_is_called_so(job_id: str) -> None:
    found = get_job(job_id)
    assert stories.progress_of(found, datetime.now(UTC)) == "3 of 12: a quarter"

    later = datetime.now(UTC) + timedelta(seconds=90)
    assert stories.progress_of(found, later).startswith("3 of 12: a quarter. Stalled: nothing new for 1 min")


@pytest.mark.parametrize(("timeout", "patience"), [(None, 60), (600.0, 60), (60.0, 30), (30.0, 15), (4.0, 10)], ids=str)
def test_how_long_is_too_long_follows_from_the_time_limit(job_id: str, timeout: float | None, patience: int) -> None:
    found = msgspec.structs.replace(get_job(job_id), timeout=timeout)
    assert found.progress_at is not None

    assert found.silence(found.progress_at + timedelta(seconds=patience - 0.001)) is None
    assert found.silence(found.progress_at + timedelta(seconds=patience)) == timedelta(seconds=patience)


def test_what_is_told_no_progress_or_is_all_done_has_not_stalled(job_id: str) -> None:
    found, long_after = get_job(job_id), datetime.now(UTC) + timedelta(hours=1)
    done = {"current": 12, "total": 12, "message": ""}
    others = (
        msgspec.structs.replace(found, progress=None, progress_at=None),
        msgspec.structs.replace(found, progress=done),
        msgspec.structs.replace(found, started_at=long_after),  # it was told by the attempt before
    )

    assert [job.silence(long_after) for job in others] == [None, None, None]
