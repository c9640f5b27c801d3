"""Enqueues in the audit log: who makes jobs, of which type and about how many, without an entry for each.

A program makes thousands in a minute, and the log is read by people and kept for years. So there is an entry at the
first job of an hour, and whenever ten times as many have been made: eight an hour at the most for a token and a type.
Decision 0020 says why.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from dashboard.api.access import Caller
from dashboard.api.pace import counted
from jobs import api

log = logging.getLogger("dashboard.api")

HOUR = 3_600


def note_enqueue(caller: Caller, type: str, handles: Sequence[api.JobHandle], *, replaces: bool) -> None:
    """Writes an entry if one is due. Raises nothing.

    Types that this process does not know share one count: their names are whatever somebody sends.
    """
    made = [handle for handle in handles if not handle.existing]
    if not made:
        return
    kind = type if type in api.job_types() else ""
    key = f"api-enqueues:{caller.user.pk}:{caller.token}:{replaces}:{kind}"
    number = _counted(key, len(made))
    if _digits(number) > _digits(number - len(made)):
        facts: dict[str, Any] = {"type": type, "pool": made[-1].pool, "jobs_this_hour": number}
        facts |= {"sent_with": f"token {caller.token}"} if caller.token else {}
        facts |= {"on_duplicate": "replace"} if replaces else {}
        api.audit.record("job.enqueue", made[-1].id, after=facts)


def _counted(key: str, made: int) -> int:
    """The jobs of this hour. Where no cache can count them each request is a first one: they are made already."""
    try:
        return counted(key, made, seconds=HOUR)
    except Exception as error:
        log.warning("api.enqueues_not_counted %s: %s", type(error).__name__, error)
        return made


def _digits(number: int) -> int:
    return len(str(number)) if number > 0 else 0
