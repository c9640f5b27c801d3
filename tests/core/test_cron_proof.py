"""A part of the proof in each run, and each day another one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.core.cron_proof import chosen, part

PARTS = {"chosen": 100, "zones": 150, "days": 60}


@pytest.mark.parametrize("name", PARTS)
def test_expressions_fire_when_the_clock_on_the_wall_shows_what_they_name(name: str) -> None:
    number = datetime.now(UTC).toordinal() % PARTS[name] + 1

    counted, found = part(name, number, PARTS[name])

    assert found == [], f"python -m tests.core.cron_proof --set {name} --part {number}/{PARTS[name]}"
    assert counted["expressions"] >= 12


def test_the_chosen_set_is_of_2250_expressions_and_the_same_each_time() -> None:
    cases = list(chosen())

    assert len(cases) == 2_250
    assert len(set(cases)) > 2_100
    assert cases == list(chosen())
