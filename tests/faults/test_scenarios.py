"""The fault runs in their short form: no violation, and hard enough to have found one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.scenarios import SCENARIOS, SHORT


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_promise_is_broken_under(name: str, tmp_path: Path) -> None:
    report = SCENARIOS[name](tmp_path, SHORT)
    print(report)
    assert report.passed, f"{report}\nhistories: {tmp_path}"
