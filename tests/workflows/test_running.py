"""A run from its start to its end: who is released when, who is skipped, and how it ends."""

from __future__ import annotations

from typing import Any

from tests.support.runs import Runs

NIGHTLY: list[dict[str, Any]] = [
    {"key": "extract"},
    {"key": "load", "depends_on": ["extract"], "pool": "background", "max_retries": 5},
    {"key": "ok", "on_success": ["load"]},
    {"key": "alarm", "on_failure": ["extract", "load"], "join": "any"},
    {"key": "clean", "on_complete": ["load"]},
]


def test_all_goes_well(runs: Runs) -> None:
    run = runs.start(*NIGHTLY)

    runs.run_all()

    assert runs.ran[:2] == ["extract", "load"]
    assert runs.states(run) == {
        "extract": "succeeded",
        "load": "succeeded",
        "ok": "succeeded",
        "alarm": "skipped",
        "clean": "succeeded",
    }
    assert runs.facts(run).state == "succeeded"


def test_a_failure_skips_what_wants_success_and_that_spreads(runs: Runs) -> None:
    run = runs.start(*NIGHTLY)

    runs.run_all({"extract": "dead"})

    assert sorted(runs.ran) == ["alarm", "clean", "extract"]
    assert runs.states(run) == {
        "extract": "dead",
        "load": "skipped",
        "ok": "skipped",
        "alarm": "succeeded",
        "clean": "succeeded",
    }
    assert runs.facts(run).state == "succeeded"
