"""``/dlq``: the dead-letter list."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpRequest
from ninja import Query, Router

from dashboard.api import answers
from dashboard.api.access import seen
from dashboard.api.jobs import page
from dashboard.api.words import DeadWords, Narrowing, selection
from jobs import api
from jobs.core.states import JobState

router = Router(tags=["dlq"])

GROUPED = 1_000
"""The newest so many are grouped."""


@router.get("", auth=seen, response=answers.Jobs)
def list_dead(request: HttpRequest, words: Query[DeadWords]) -> Any:
    """Dead jobs, newest first."""
    return page(words, _dead(request))


@router.get("/groups", auth=seen, response=answers.Groups)
def groups(request: HttpRequest, words: Query[Narrowing]) -> Any:
    """The newest 1,000 dead jobs that match, of the newest 5,000, by the error that killed them, commonest first."""
    found = api.error_groups(_dead(request), sample=GROUPED)
    return {"items": [group.as_dict() for group in found], "next_cursor": None}


def _dead(request: HttpRequest) -> api.JobFilter:
    return msgspec.structs.replace(selection(request), states=(JobState.DEAD,))
