"""What a check finds, and how findings are made of other things."""

from __future__ import annotations

from typing import NamedTuple

from django.core import checks as system_checks


class Finding(NamedTuple):
    """What a check found. ``status``: ok, warning, failed or skipped. ``setting``: where it is put right."""

    check: str
    status: str
    detail: str
    setting: str = ""
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        return self._asdict()


def of_message(message: system_checks.CheckMessage, check: str, setting: str) -> Finding:
    status = "failed" if message.level >= system_checks.ERROR else "warning"
    return Finding(check, status, f"{message.msg} ({message.id})", setting, message.hint or "")


def first_line(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time."
    return (str(error).strip() or type(error).__name__).splitlines()[0]
