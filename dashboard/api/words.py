"""What may stand in a query string: the words of the command line, and those of the pages' lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

from django.http import HttpRequest, QueryDict
from pydantic import BaseModel, Field

from dashboard.api.errors import RequestInvalid
from dashboard.filters import TEXT_MAX, WORDS, Filters
from jobs.api import JobFilter

MAX_LIMIT = 1_000
PAGE = 50


class Paging(BaseModel):
    """One page of a list."""

    limit: Annotated[int, Field(ge=1, description=f"At most so many, and no more than {MAX_LIMIT:,}.")] = PAGE
    cursor: Annotated[str, Field(description="next_cursor of the page before.")] = ""

    @property
    def size(self) -> int:
        return min(self.limit, MAX_LIMIT)


class Narrowing(BaseModel):
    """What narrows a list of jobs whose state is given."""

    pool: Annotated[str, Field(description="Of this pool.")] = ""
    type: Annotated[str, Field(description="Of this type; billing.*: of all that begin so.")] = ""
    tag: Annotated[str, Field(description="With this tag.")] = ""
    group: Annotated[str, Field(description="That ended with this error: see /dlq/groups.")] = ""
    search: Annotated[str, Field(description="Whose id, type, tags, meta or error hold this text.")] = ""
    since: Annotated[str, Field(description="Created since: 90s, 5m, 2h, 7d, ISO 8601 or deploy, the newest one.")] = ""
    older: Annotated[str, Field(description="In their present state for longer than that.")] = ""
    worker: Annotated[str, Field(description="That a worker with this in its name has or had.")] = ""
    attempts: Annotated[str, Field(description="Started at least so often.")] = ""


class DeadWords(Narrowing, Paging):
    """A page of the dead."""


class JobWords(Narrowing, Paging):
    """A page of jobs, whatever their state."""

    state: Annotated[list[str], Field(description="In this state; may be given several times.")] = []


class RunWords(Paging):
    name: Annotated[str, Field(description="Runs of this workflow.")] = ""
    state: Annotated[str, Field(description="Runs in this state.")] = ""


class StatsWords(BaseModel):
    minutes: Annotated[float, Field(gt=0, le=43_200, description="Durations of jobs that ended since then.")] = 60
    pool: Annotated[str, Field(description="Durations in this pool.")] = ""
    type: Annotated[str, Field(description="Durations of this type.")] = ""


def selection(request: HttpRequest) -> JobFilter:
    """The filter that the query string writes, read as the pages read it. RequestInvalid for what cannot be used."""
    filters = Filters.read(request.GET)
    for problem in (*filters.problems, *_read_otherwise(request.GET, filters)):
        raise RequestInvalid(problem, fix="The words are those of 'jobs list' on the command line.")
    return filters.selection(datetime.now(UTC))


def _read_otherwise(given: QueryDict, filters: Filters) -> Iterator[str]:
    """Values of which a page takes what it can: to a program a list that is wider than asked for would be a trap."""
    if any(given.getlist("state")) and not filters.states:
        yield "state: is no word"
    for word in WORDS:
        values = given.getlist(word)
        if len(values) > 1:
            yield f"{word}: is given {len(values)} times"
        elif word != "attempts" and values and values[0].strip() != getattr(filters, word):
            yield f"{word}: is not one line of up to {TEXT_MAX} characters that can be shown"
