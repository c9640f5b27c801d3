from __future__ import annotations

import pytest

from jobs.worker.lookahead import HORIZON_SECONDS, MOST, Lookahead


def test_nothing_is_held_ready_before_the_first_job_has_ended() -> None:
    assert Lookahead().jobs(10) == 0


@pytest.mark.parametrize(
    ("seconds_each", "slots", "held"),
    [(10.0, 10, 0), (0.5, 10, 1), (0.05, 10, 10), (0.005, 10, 100), (0.00001, 10, MOST), (0.0, 1, MOST)],
)
def test_as_many_as_all_slots_finish_in_a_moment(seconds_each: float, slots: int, held: int) -> None:
    lookahead = Lookahead()
    lookahead.measure(100, 100 * seconds_each)
    assert lookahead.jobs(slots) == held


def test_it_follows_when_short_jobs_become_long() -> None:
    lookahead = Lookahead()
    lookahead.measure(1000, 1.0)
    assert lookahead.jobs(10) > 400

    for ended in range(1001, 1005):
        lookahead.measure(ended, 1.0 + (ended - 1000) * 2.0)

    assert lookahead.jobs(10) == 0


def test_measuring_again_without_news_changes_nothing() -> None:
    lookahead = Lookahead()
    lookahead.measure(10, 0.1)
    before = lookahead.jobs(10)
    lookahead.measure(10, 0.1)
    assert lookahead.jobs(10) == before


def test_a_stall_is_learnt_at_once() -> None:
    lookahead = Lookahead()
    lookahead.measure(1000, 0.01)
    lookahead.stalled(0.25)
    assert lookahead.jobs(10) <= 10 * HORIZON_SECONDS / 0.25
