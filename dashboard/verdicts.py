"""What a check of doctor found, as pages tell it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Without the passwords of addresses."""

    check: str
    status: str  # ok, warning, failed or skipped
    detail: str
    setting: str
    fix: str
