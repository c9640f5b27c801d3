"""Each seeded protocol bug is caught: by a play of the model machine, or by its random lives, drawn alike each time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from jobs.store import scripts
from tests.engine_model.machine import machine_on
from tests.engine_model.plays import PLAYS, perform
from tests.faults.seeded_bugs import LUA_BUGS, PYTHON_BUGS, LuaBug, PythonBug

QUICK = settings(
    max_examples=300,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # the first failure is enough; nobody reads it
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def fresh_scripts() -> Iterator[None]:
    scripts.script.cache_clear()
    yield
    scripts.script.cache_clear()


@pytest.mark.parametrize("bug", LUA_BUGS, ids=lambda bug: bug.name)
def test_a_broken_script_is_caught(
    bug: LuaBug, valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_scripts: None
) -> None:
    monkeypatch.setenv("SCHEDULER_LUA_DIR", str(bug.plant(tmp_path)))
    assert is_caught_on(valkey_url), f"{bug.name}: not caught"


@pytest.mark.parametrize("bug", PYTHON_BUGS, ids=lambda bug: bug.name)
def test_a_broken_method_is_caught(bug: PythonBug, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, name = bug.target.rpartition(".")
    monkeypatch.setattr(getattr(import_module(module), name), bug.method, bug.broken)
    assert is_caught_on(valkey_url), f"{bug.name}: not caught"


def is_caught_on(url: str) -> bool:
    """Whether a play, or else the machine's quick profile of random lives, finds anything wrong."""
    machine = machine_on(url)
    try:
        for play in PLAYS:
            perform(play, machine)
        run_state_machine_as_test(machine, settings=QUICK)
    except (AssertionError, pytest.fail.Exception):  # anything else would only show that the broken script does not run
        return True
    return False
