"""What becomes of a firing that is due: by lateness, missed-run policy, pause, overlap, edits, jumps of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.job import moment
from jobs.core.schedule.definition import Stored, definition_of
from jobs.core.schedule.plan import (
    COUNTED,
    Circumstances,
    Decision,
    Drop,
    Fire,
    Held,
    Hold,
    Plan,
    Renew,
    Skip,
    State,
    Wait,
    milliseconds_of,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = 60_000


def at(minutes: float) -> int:
    """Minutes after the start, in milliseconds."""
    return milliseconds_of(START + timedelta(minutes=minutes))


def plan(*, edited_at: int = 0, stored: dict[str, Any] | None = None, **fields: Any) -> Plan:
    """A schedule of one firing a minute."""
    given = {"name": "s", "job_type": "t", "kind": "interval", "interval_seconds": 60, **fields}
    if given["kind"] != "interval":
        del given["interval_seconds"]
    return Plan(Stored(definition=definition_of(given), created_at=START, **(stored or {})), edited_at=edited_at)


def state(of: Plan, minutes: float = 1, **fields: Any) -> State:
    nominal = at(minutes)
    return State(**{"nominal": nominal, "act_at": nominal, "rhythm": of.stored.rhythm, "job": "j", **fields})


def decide(of: Plan, state: State, minutes: float, **given: Any) -> Decision:
    now = at(minutes)
    return of.decide(state, Circumstances(**{"now": now, "taken_at": now, **given}))


def made(of: Plan, state: State, minutes: float) -> list[tuple[str, int]]:
    """What fires and is skipped, in minutes, when all that is due is dealt with at once."""
    found: list[tuple[str, int]] = []
    while not isinstance(decision := decide(of, state, minutes), Wait):
        if isinstance(decision, Fire | Skip):
            word = "fired" if isinstance(decision, Fire) else "skipped"
            found.append((word, ((state.nominal or 0) - at(0)) // MINUTE))
        state = of.moved(state, decision)
        if state.nominal is None:
            break
    return found


def test_a_rhythm_begins_after_the_moment_it_is_asked_for() -> None:
    begun = plan().begin(at(7.5))

    assert begun.nominal == at(8)
    assert plan().decide(begun, Circumstances(at(7.9), at(7.9))) == Wait()


def test_a_firing_up_to_its_grace_late_is_simply_fired() -> None:
    of = plan(grace_seconds=5)

    assert decide(of, state(of), 1) == Fire()
    assert decide(of, state(of), 1 + 5 / 60) == Fire()
    assert isinstance(decide(of, state(of), 1 + 5.001 / 60), Skip)


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("skip", [("skipped", 1)]),
        ("run_once", [("skipped", 1), ("fired", 5)]),
        ("run_all", [("fired", minute) for minute in range(1, 6)]),
    ],
)
def test_after_downtime_over_five_firings_none_one_or_all_are_made_up(
    missed: str, expected: list[tuple[str, int]]
) -> None:
    of = plan(missed=missed)

    assert made(of, state(of), 5.5) == expected


def test_what_is_still_within_its_grace_fires_whatever_the_policy() -> None:
    of = plan(missed="skip")

    assert made(of, state(of), 5) == [("skipped", 1), ("fired", 5)]


def test_run_all_makes_up_for_the_latest_up_to_its_limit() -> None:
    of = plan(missed="run_all", missed_limit=3)

    first = decide(of, state(of), 60.5)
    assert first == Skip("missed: only the latest 3 are made up", at(57), 57, at(58), 3)
    assert made(of, state(of), 60.5) == [("skipped", 1), ("fired", 58), ("fired", 59), ("fired", 60)]


@pytest.mark.parametrize("missed", ["run_once", "run_all"])
def test_what_is_made_up_is_settled_before_it_is_begun(missed: str) -> None:
    """A host that dies while it makes up leaves the same firings to the next, however much later that comes."""
    of = plan(missed=missed, missed_limit=2)
    settled = of.moved(state(of), decide(of, state(of), 10.5))

    assert settled.nominal == (at(10) if missed == "run_once" else at(9))
    assert decide(of, settled, 500) == Fire()


def test_a_month_of_minutes_is_skipped_without_counting_them_all() -> None:
    of = plan()

    skipped = decide(of, state(of), 30 * 24 * 60 + 0.5)
    assert isinstance(skipped, Skip)
    assert skipped.number is None
    assert skipped.next_nominal == at(30 * 24 * 60 + 1)
    fewer = decide(of, state(of), COUNTED - 0.5)
    assert isinstance(fewer, Skip)
    assert fewer.number == COUNTED - 1


def test_the_latest_of_many_firings_of_an_expression_are_found_from_their_end() -> None:
    of = plan(kind="cron", cron="0 9 * * MON-FRI", missed="run_all", missed_limit=3)
    begun = of.begin(at(0))
    monday = milliseconds_of(datetime(2027, 1, 4, 12, tzinfo=UTC))

    skipped = of.decide(begun, Circumstances(monday, monday))
    assert isinstance(skipped, Skip)
    assert skipped.next_nominal == milliseconds_of(datetime(2026, 12, 31, 9, tzinfo=UTC))
    assert skipped.catch_up == 3


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("cron", ["* * * 1 1 *", "* * 1 1 *", "0 0 29 2 *", "*/7 3 * * 1"])
def test_the_latest_firings_are_found_at_once_also_where_they_are_thick_and_far_apart(cron: str, count: int) -> None:
    of = plan(kind="cron", cron=cron, missed="run_all", missed_limit=count)
    looked, ask = [], of.next_after
    first, until = ask(at(-6 * 366 * 1440)), at(0)
    assert first is not None
    of.next_after = lambda after: looked.append(after) or ask(after)  # type: ignore[method-assign,func-returns-value]

    found = of.latest(first, until, count)

    assert len(looked) < 2_000 + 40 * count
    assert found == [*of.between(found[0], until)]  # nothing between them is left out, and the last is the last
    assert len(found) == count or found[0] == first


def test_a_jitter_never_reaches_over_the_firing_that_follows() -> None:
    of = plan(kind="cron", cron="* * * * *", jitter_seconds=600)

    assert all(0 <= of.act_at(at(minute)) - at(minute) < 60_000 for minute in range(100))


def test_what_somebody_took_in_time_is_fired_by_whoever_comes_next() -> None:
    of = plan()
    taken_in_time = {"taken_at": at(1), "is_retry": True}

    assert decide(of, state(of), 1.5, **taken_in_time) == Fire()
    assert isinstance(decide(of, state(of), 3.5, **taken_in_time), Skip)


def test_a_pause_skips_each_firing_as_it_comes() -> None:
    of = plan(missed="run_all", stored={"paused": True})

    assert decide(of, state(of), 1) == Skip("the schedule is paused", at(1), 1, at(2))
    assert decide(of, state(of), 1, everything_paused=False) == decide(of, state(of), 1)


def test_nothing_of_a_pause_is_made_up_and_what_was_missed_beside_it_is() -> None:
    """Of each that there was, though nobody looked in between."""
    pauses = tuple(
        (START + timedelta(minutes=began), START + timedelta(minutes=ended)) for began, ended in [(3, 6), (7, 8)]
    )
    of = plan(missed="run_all", stored={"pauses": pauses})

    fired = [minute for word, minute in made(of, state(of), 9.5) if word == "fired"]
    assert fired == [1, 2, 6, 8, 9]


def test_while_the_whole_scheduler_is_paused_firings_are_skipped() -> None:
    of = plan(missed="run_all")

    assert decide(of, state(of), 1, everything_paused=True) == Skip("the scheduler is paused", at(1), 1, at(2))


def test_times_that_the_servers_clock_jumped_over_are_not_made_up() -> None:
    of = plan(missed="run_all")

    skipped = decide(of, state(of, 2), 61.5, jump=(at(1.5), at(61.5)))
    assert skipped == Skip("the server's clock jumped over it", at(61), 60, at(62))


def test_start_and_end_bound_the_firings() -> None:
    of = plan(
        kind="cron", cron="* * * * *", starts_at=START + timedelta(minutes=3), ends_at=START + timedelta(minutes=5)
    )

    assert of.begin(at(0)).nominal == at(3)
    assert of.next_after(at(3)) == at(4)
    assert of.next_after(at(4)) is None


def test_an_interval_counts_from_its_start() -> None:
    of = plan(interval_seconds=90, starts_at=START + timedelta(seconds=7))

    assert of.begin(at(0)).nominal == at(7 / 60)
    assert of.begin(at(60)).nominal == milliseconds_of(START + timedelta(seconds=7 + 40 * 90))


@given(
    anchor=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    every=st.floats(0.1, 10),
)
def test_no_nominal_time_comes_twice_or_early_however_fine_its_anchor(anchor: datetime, every: float) -> None:
    of = plan(interval_seconds=every, starts_at=anchor)
    times = [milliseconds_of(anchor)]
    for _ in range(20):
        times.append(of.next_after(times[-1]) or 0)

    exact = [anchor + number * timedelta(seconds=every) for number in range(21)]
    assert all(
        timedelta() <= moment(time) - at < timedelta(milliseconds=1) for time, at in zip(times, exact, strict=True)
    )


def test_once_fires_once() -> None:
    of = plan(kind="once", run_at=START + timedelta(minutes=2))

    begun = of.begin(at(0))
    assert begun.nominal == at(2)
    assert of.moved(begun, Fire()).nominal is None


def test_after_its_last_firing_there_is_no_next() -> None:
    of = plan(max_firings=2)

    one = of.moved(state(of), Fire())
    two = of.moved(one, Fire())
    assert (one.nominal, two.nominal) == (at(2), None)
    assert of.decide(state(of, firings=2), Circumstances(at(9), at(9))) == Renew(None)


def test_skipped_firings_do_not_count() -> None:
    of = plan(max_firings=1)
    skipped = of.moved(state(of), decide(of, state(of), 1.5))

    assert skipped.nominal == at(2)
    assert decide(of, skipped, 2) == Fire()


def test_a_jitter_delays_each_firing_by_its_own_measure_and_never_has_it_early() -> None:
    of = plan(jitter_seconds=30)
    delays = [of.act_at(at(minute)) - at(minute) for minute in range(100)]

    assert delays == [plan(jitter_seconds=30).act_at(at(minute)) - at(minute) for minute in range(100)]
    assert 0 <= min(delays) < 5_000
    assert 25_000 < max(delays) < 30_000
    assert decide(of, of.begin(at(0)), 1 + (delays[1] - 1) / MINUTE) == Wait()
    assert decide(of, of.begin(at(0)), 1 + delays[1] / MINUTE) == Fire()


def test_a_jitter_longer_than_the_distance_keeps_the_order() -> None:
    of = plan(kind="cron", cron="* * * * *", jitter_seconds=600)
    one = of.begin(at(0))

    for _ in range(50):
        following = of.moved(one, Fire())
        assert following.act_at >= one.act_at
        one = following


def test_an_edit_of_the_rhythm_drops_what_was_not_due_and_makes_nothing_up() -> None:
    old = plan()
    of = plan(interval_seconds=1, missed="run_all", edited_at=at(4.5))

    assert decide(of, state(old, 5), 4.6) == Renew(at(4.5 + 1 / 60))


def test_what_was_due_before_an_edit_fires_and_the_new_rhythm_begins_after_the_edit() -> None:
    old = plan()
    of = plan(interval_seconds=1, missed="run_all", edited_at=at(1.05))
    before = state(old, 1)

    assert decide(of, before, 1.06) == Fire()
    assert of.moved(before, Fire()).nominal == at(1.05) + 1000
    assert of.moved(before, Fire()).rhythm == of.stored.rhythm


# --- overlap ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "live", "held", "expected"),
    [
        ("allow", ["a"], False, Fire()),
        ("skip", [], False, Fire()),
        ("skip", ["a"], False, Skip("the job before has not ended: a", at(1), 1, at(2))),
        ("queue_one", [], False, Fire()),
        ("queue_one", ["a"], False, Hold()),
        ("queue_one", ["a"], True, Skip("another firing waits already", at(1), 1, at(2))),
        ("cancel_old", [], False, Fire()),
        ("cancel_old", ["a"], False, Hold()),
        ("cancel_old", ["a"], True, Drop("a later firing took its place")),
    ],
)
def test_a_firing_while_the_job_before_has_not_ended(
    overlap: str, live: list[str], held: bool, expected: Decision
) -> None:
    of = plan(overlap=overlap)
    before = state(of, held=Held(at(0), "h") if held else None)

    assert of.decide_overlap(before, live) == expected


def test_a_held_firing_is_made_with_its_own_time_and_job_when_the_others_have_ended() -> None:
    of = plan(overlap="queue_one")
    held = of.moved(state(of), Hold())

    assert (held.held, held.nominal, held.firings) == (Held(at(1), "j"), at(2), 0)
    given = Circumstances(at(1.5), at(1.5))
    assert of.decide_held(held, given, ["a"]) == Wait()
    assert of.decide_held(held, given, []) == Fire(held=True)
    done = of.moved(held, Fire(held=True))
    assert (done.held, done.recent, done.firings, done.nominal) == (None, ("j",), 1, at(2))


def test_a_held_firing_is_dropped_by_a_pause() -> None:
    of = plan(overlap="queue_one", stored={"paused": True})

    assert isinstance(of.decide_held(state(of, held=Held(at(1), "j")), Circumstances(at(2), at(2)), []), Drop)


def test_a_held_firing_counts_towards_the_last() -> None:
    of = plan(overlap="queue_one", max_firings=1)

    assert of.moved(state(of), Hold()).nominal is None
