"""Mistakes made on purpose on the way from the end of a node to what follows: each is caught by a test of runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from jobs.conf import get_settings
from jobs.engine import Engine
from jobs.services.relay import RelayService
from jobs.store import scripts
from jobs.store.connection import Store
from tests.faults.seeded_bugs import NEW_LIFE_BUGS, RELAY_BUGS, LuaBug, PythonBug
from tests.support.clock import ManualClock
from tests.support.runs import Runs
from tests.workflows import test_breaking, test_relaying, test_resubmitting, test_retrying, test_waiting

DIES = test_relaying.test_a_relay_that_dies_leaves_nothing_stuck_for_long
PLAYS: tuple[Callable[..., None], ...] = (
    test_relaying.test_a_relay_that_wakes_up_late_makes_no_second_job,
    test_relaying.test_a_job_that_a_dead_relay_has_made_is_not_made_again,
    test_relaying.test_a_delayed_job_that_a_dead_relay_has_made_runs_once_although_it_is_due_by_now,
    test_relaying.test_what_one_relay_was_handed_another_leaves_alone,
    test_relaying.test_news_stay_in_the_outbox_while_a_dead_relay_may_hold_what_followed,
    *(partial(DIES, step=step) for step in range(1, 6)),
    test_breaking.test_a_retry_that_comes_too_late_repeats_nothing,
    test_breaking.test_news_that_change_while_they_are_told_are_told_again,
    test_retrying.test_news_of_the_life_before_change_nothing,
)
NEW_LIVES: tuple[Callable[..., None], ...] = (
    test_resubmitting.test_a_failure_that_was_mended_before_its_run_heard_counts_no_more,
    test_resubmitting.test_a_success_that_came_before_its_run_heard_of_a_second_try_opens_what_waited_for_it,
    test_resubmitting.test_a_failure_counts_no_more_while_its_node_lives_again,
    test_resubmitting.test_the_error_of_a_life_that_is_over_is_not_shown,
    test_resubmitting.test_the_result_of_a_life_that_is_over_reaches_nobody,
    test_waiting.test_a_node_that_is_retried_waits_as_long_again,
    test_resubmitting.test_children_that_are_told_in_parts_hear_all_of_a_parent_that_lives_again_meanwhile,
)


SEEDED = [*((bug, PLAYS) for bug in RELAY_BUGS), *((bug, NEW_LIVES) for bug in NEW_LIFE_BUGS)]
"""Each mistake with what is played to find it."""


@pytest.mark.parametrize(("bug", "plays"), [pytest.param(*each, id=each[0].name) for each in SEEDED])
def test_a_mistake_of_the_relay_is_caught(
    bug: LuaBug | PythonBug,
    plays: tuple[Callable[..., None], ...],
    valkey_url: str,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as planted:
        if isinstance(bug, LuaBug):
            planted.setenv("SCHEDULER_LUA_DIR", str(bug.plant(tmp_path)))
            scripts.script.cache_clear()
        else:
            module, _, name = bug.target.rpartition(".")
            planted.setattr(getattr(import_module(module), name), bug.method, bug.broken)
        caught = any(
            not passes(play, Store(valkey_url, namespace=f"{namespace}-{number}")) for number, play in enumerate(plays)
        )
    scripts.script.cache_clear()
    assert caught


def passes(play: Callable[..., None], store: Store) -> bool:
    clock = ManualClock()
    engine = Engine(store, get_settings(), clock)
    given: dict[str, Any] = {"engine": engine, "clock": clock, "runs": Runs(engine), "service": RelayService(engine)}
    with pytest.MonkeyPatch.context() as patched:
        given["monkeypatch"] = patched
        wanted = inspect.signature(play).parameters
        try:
            play(**{name: thing for name, thing in given.items() if name in wanted})
        except (AssertionError, ValueError):
            return False
        finally:
            store.client.unlink(*store.client.keys(f"{store.namespace}:*"), "none")
            store.close()
    return True
