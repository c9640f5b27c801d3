"""What a job's page tells of its past: every change, with who brought it about."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.dashboard.browsing import send, text
from tests.dashboard.seeding import Shop


def changes(client: Client, job_id: str) -> str:
    """The words of “Every change”."""
    return text(client.get(f"/dashboard/jobs/{job_id}/")).partition("Every change")[2].partition("What people did")[0]


@pytest.mark.parametrize(("state", "told"), [("ready", "cancelled Cancelled"), ("leased", "running Asked to stop")])
def test_it_says_who_cancelled_it(operator: Client, shop: Shop, state: str, told: str) -> None:
    job_id = shop.in_state(state)
    send(operator, "/dashboard/actions/job/cancel/", {"id": job_id, "reason": "no need"})

    words = changes(operator, job_id)

    assert f"{told} operator: no need" in words
    assert "Ended as cancelled" not in words


def test_what_nobody_on_record_did_after_that_is_told_too(operator: Client, shop: Shop) -> None:
    job_id = shop.ready()
    send(operator, "/dashboard/actions/job/cancel/", {"id": job_id})
    send(operator, "/dashboard/actions/job/resubmit/", {"id": job_id})
    shop.engine.jobs.cancel(job_id)

    words = changes(operator, job_id)

    assert words.count("Cancelled operator") == words.count("Resubmitted operator") == 1
    assert "Ended as cancelled" in words


def test_a_second_resubmit_is_told_though_the_first_has_a_name(operator: Client, shop: Shop) -> None:
    job_id = shop.dead()
    send(operator, "/dashboard/actions/job/resubmit/", {"id": job_id})
    shop.fail(job_id, "dead")
    shop.engine.jobs.resubmit_many([job_id])

    words = changes(operator, job_id)

    assert "Resubmitted operator" in words
    assert "Resubmitted attempts are counted anew" in words
