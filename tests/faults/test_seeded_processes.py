"""A bug that is seeded in every process of a fault run is caught by the checks of that run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.scenarios import SCENARIOS, SHORT
from tests.faults.seeded_bugs import PROCESS_BUGS

TEETH = replace(SHORT, jobs=400, seconds=5, server_kills=0, patience=0)


@pytest.mark.faults
@pytest.mark.thorough
@pytest.mark.parametrize("name", PROCESS_BUGS)
def test_a_bug_in_every_process_of_a_fault_run_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTS_BUG", name)
    bug = PROCESS_BUGS[name]
    report = SCENARIOS[bug.scenario](tmp_path, TEETH)
    found = {violation.check for violation in report.violations}
    assert found & bug.found_by, f"{name}: not caught\n{report}"
