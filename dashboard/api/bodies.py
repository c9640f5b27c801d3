"""What may stand in the body of a request. A field that is not here, or of another type, is refused by name."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from dashboard.actions.base import REASON_MAX
from jobs.core.duration import LONGEST_SECONDS
from jobs.core.workflow.checks import backoff_of
from jobs.core.workflow.definition import Retries
from jobs.exceptions import OptionInvalid

MOST_AT_ONCE = 1_000
"""Jobs that one request may enqueue."""

Why = Annotated[str, Field(max_length=REASON_MAX, description="For the audit log, and wherever a pause is shown.")]


class Body(BaseModel):
    """Nothing is guessed: a number in quotes is no number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reason(Body):
    """Why it is done."""

    reason: Why = ""


class Enqueue(Body):
    """A job, or many of one type: ``payload`` or ``payloads``, and the options of ``using()`` for each of them."""

    type: Annotated[str, Field(description="Name of a job type.")]
    payload: Annotated[dict[str, Any] | None, Field(description="Its keyword arguments.")] = None
    payloads: Annotated[
        list[dict[str, Any]] | None,
        Field(min_length=1, max_length=MOST_AT_ONCE, description="In place of payload: one job for each."),
    ] = None
    pool: Annotated[str | None, Field(description="Else that of the type.")] = None
    priority: Annotated[int | None, Field(description="-100 to 100, higher first.")] = None
    max_retries: int | None = None
    timeout: Annotated[float | None, Field(description="Seconds of one attempt; null: no limit.")] = None
    backoff: Annotated[
        dict[str, Any] | None, Field(description='{"kind": "exponential", "base": 1, "cap": 60, "jitter": 0.2}')
    ] = None
    tags: list[str] | None = None
    meta: Annotated[dict[str, str] | None, Field(description="A small map of texts, searchable.")] = None
    delay: Annotated[float | None, Field(description="Seconds from now.")] = None
    run_at: Annotated[str | None, Field(description="ISO 8601 with an offset or Z; past means now.")] = None
    id: Annotated[str | None, Field(description="Yours; a second job of this id is refused (409).")] = None
    unique_key: Annotated[str | None, Field(description="One live job of this type and key.")] = None
    unique_until: Annotated[str | float | None, Field(description="finished, started, or seconds.")] = None
    on_duplicate: Annotated[str | None, Field(description="return, raise or replace (takes jobs.operate).")] = None
    concurrency_key: str | None = None
    rate_key: str | None = None
    durability: Annotated[str | None, Field(description="memory, replicated, disk or database.")] = None
    allow_unknown: Annotated[bool | None, Field(description="Accept a type that only the workers know.")] = None

    @property
    def options(self) -> dict[str, Any]:
        """Those that were given, as ``using()`` takes them. OptionInvalid."""
        given = self.model_fields_set - {"type", "payload", "payloads"}
        options = {name: getattr(self, name) for name in given}
        if self.backoff is not None:
            options["backoff"] = _backoff(self.backoff)
        if self.run_at is not None:
            options["run_at"] = _moment(self.run_at)
        return options


class Resubmit(Body):
    """With another payload, or as it was."""

    payload: Annotated[dict[str, Any] | None, Field(description="In place of the one that it had.")] = None
    reason: Why = ""


class Scale(Body):
    slots: Annotated[int, Field(description="Jobs at once per worker process.")]
    reason: Why = ""


class Limit(Body):
    """What is not named stays as it is; null: no limit."""

    max_running: Annotated[int | None, Field(description="Jobs at once, over all hosts.")] = None
    max_pending: Annotated[int | None, Field(description="Jobs that may wait.")] = None
    reason: Why = ""

    @property
    def limits(self) -> dict[str, int | None]:
        return {name: getattr(self, name) for name in self.model_fields_set - {"reason"}}


class Pause(Body):
    reason: Why = ""
    for_seconds: Annotated[float | None, Field(description="Ends by itself after so long; else it must be ended.")] = (
        None
    )

    @property
    def span(self) -> timedelta | None:
        """OptionInvalid."""
        if self.for_seconds is None:
            return None
        if not 0 < self.for_seconds <= LONGEST_SECONDS:
            raise OptionInvalid("for_seconds: is no number of seconds from now", fix="Send for example 3600.")
        return timedelta(seconds=self.for_seconds)


class Start(Body):
    """A run of a stored workflow, by its name, or of one that comes with the request."""

    name: Annotated[str | None, Field(description="Name of a stored workflow.")] = None
    workflow: Annotated[dict[str, Any] | None, Field(description="In its place: a workflow as files have it.")] = None
    payload: Annotated[dict[str, Any] | None, Field(description="The payload of the run.")] = None
    id: Annotated[str | None, Field(description="Yours; a second start with it starts nothing.")] = None
    allow_unknown: bool = False
    reason: Why = ""


class Again(Body):
    """``from``: that node and all that comes after it; without it what failed."""

    node: Annotated[str | None, Field(alias="from", description="Key of a node; else what failed.")] = None
    reason: Why = ""


class Signal(Body):
    name: str
    payload: Annotated[Any, Field(description="The result of the nodes that wait for it.")] = None
    reason: Why = ""


class Skip(Body):
    node: str
    result: Annotated[Any, Field(description="What the nodes after it find as its result.")] = None
    reason: Why = ""


class Decision(Body):
    node: str
    comment: Annotated[str, Field(max_length=REASON_MAX, description="Kept with the node.")] = ""


def _backoff(given: dict[str, Any]) -> Any:
    try:
        return backoff_of(msgspec.convert(given, Retries))
    except msgspec.ValidationError as error:
        example = 'Send for example {"kind": "fixed", "seconds": 5}.'
        raise OptionInvalid(f"backoff: {error}", fix=example) from None


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise OptionInvalid("run_at: is no ISO 8601 time", fix="Send for example 2026-01-31T09:00:00Z.") from None
