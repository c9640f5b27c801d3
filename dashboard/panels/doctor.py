"""Doctor: what makes jobs late, lost or doubled, how to put it right, and the settings in force."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard import reads
from dashboard.formats import plural
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from dashboard.permissions import ADMINISTER
from dashboard.verdicts import Verdict

MARKS = {"ok": "succeeded", "warning": "warning", "failed": "dead", "skipped": "skipped"}
ORDER = ("failed", "warning", "skipped", "ok")


class Doctor(Panel):
    """For those who administer: what it says names servers and causes."""

    slug = "doctor"
    title = "Doctor"
    icon = "doctor"
    group = "Look back"
    key = "x"
    permission = ADMINISTER
    refresh_seconds = 30.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        verdicts = sorted(reads.diagnosis(), key=lambda verdict: ORDER.index(verdict.status))
        return {
            "verdicts": [(MARKS[verdict.status], verdict) for verdict in verdicts],
            "sentence": _sentence(verdicts),
            "settings": reads.settings(),
        }


def _sentence(verdicts: list[Verdict]) -> str:
    failed = sum(verdict.status == "failed" for verdict in verdicts)
    warned = sum(verdict.status == "warning" for verdict in verdicts)
    if failed:
        return f"{plural(failed, 'check')} failed" + (f", {plural(warned, 'warning')}." if warned else ".")
    return f"Nothing failed; {plural(warned, 'warning')}." if warned else "All is well."
