"""How the store is: what doctor finds, and what of it everybody should know."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.kept import Kept
from dashboard.overall import UNREACHABLE
from dashboard.verdicts import Verdict
from jobs import api

DIAGNOSIS_EVERY_SECONDS = 15.0
DIAGNOSIS_SECONDS = 5.0
"""So long a check of doctor may take before a page calls that a finding."""

FLAWS_EVERY_SECONDS = 30.0
FLAWS_SECONDS = 1.0
"""So long a page waits for what the server says of itself."""


_diagnosis: Kept[list[Verdict]] = Kept(DIAGNOSIS_EVERY_SECONDS)
_flaws: Kept[tuple[Verdict, ...]] = Kept(FLAWS_EVERY_SECONDS)


def forget() -> None:
    _diagnosis.forget()
    _flaws.forget()


def diagnosis() -> list[Verdict]:
    """What doctor finds, looked at again at most every 15 s. Takes some seconds where something hangs."""

    def look() -> list[Verdict]:
        from jobs.management.diagnosis import diagnose  # system checks and all: nothing else here needs them

        return _verdicts(diagnose(allowed_seconds=DIAGNOSIS_SECONDS))

    return _diagnosis.read(look)


def flaws() -> tuple[Verdict, ...]:
    """What is wrong with the server, worst first, looked at again at most every 30 s; as it was where that fails."""

    def look() -> tuple[Verdict, ...]:
        from jobs.management.diagnosis.glance import glance

        return tuple(_verdicts(glance()))

    try:
        with api.budget(FLAWS_SECONDS):
            return _flaws.read(look)
    except UNREACHABLE:
        return _flaws.last or ()


def _verdicts(found: Iterable[tuple[str, str, str, str, str]]) -> list[Verdict]:
    return [
        Verdict(check, status, api.shown_text(detail), setting, api.shown_text(fix))
        for check, status, detail, setting, fix in found
    ]
