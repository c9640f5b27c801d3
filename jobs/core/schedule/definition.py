"""What a schedule is: the same fields in the admin's form, the API, an export file and the store, checked here.

``problems`` judges them field by field, for forms; a ``Definition`` is what passed. All that a firing needs is in it:
the machine that fires asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from jobs.core import options
from jobs.core.duration import seconds
from jobs.core.job import iso
from jobs.core.schedule.kinds import EARLIEST, LATEST, SCHEDULE_KINDS, Cron, Interval, Once, Rule
from jobs.core.schedule.reading import parse
from jobs.core.schedule.zones import zone_named
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import ScheduleInvalid, SchedulerError

MISSED = ("skip", "run_once", "run_all")
OVERLAP = ("allow", "skip", "queue_one", "cancel_old")

STARTER = "workflow.start"
"""The job type by which a schedule starts a workflow: a job like any other, so that a firing starts one run."""

LONGEST_NAME = 120
"""Characters. The name is part of keys and of every record."""
MOST_MISSED = 10_000
"""What ``missed_limit`` may be at most: each of them is a job."""
LONGEST_JITTER = 86_400.0
MOST_FIRINGS = 2_000_000_000


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a schedule is made of. Empty text and None: as the job type has it.

    It starts jobs of a type, or runs of a stored workflow: one of ``job_type`` and ``workflow`` is empty.
    """

    name: str
    job_type: str = ""
    workflow: str = ""
    payload: dict[str, Any] = {}
    kind: Literal["cron", "interval", "once"] = "cron"
    cron: str = ""
    interval_seconds: float | None = None
    run_at: datetime | None = None
    timezone: str = "UTC"
    pool: str = ""
    priority: int | None = None
    max_retries: int | None = None
    timeout: float | None = None
    enabled: bool = True
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_firings: int | None = None
    jitter_seconds: float = 0.0
    missed: Literal["skip", "run_once", "run_all"] = "skip"
    missed_limit: int = 100
    grace_seconds: float = 5.0
    overlap: Literal["allow", "skip", "queue_one", "cancel_old"] = "allow"

    def rule(self, created_at: datetime) -> Rule:
        """When it fires, without start and end. An interval is anchored at its start, else at ``created_at``.

        Raises ScheduleInvalid.
        """
        match self.kind:
            case "cron":
                return Cron(self.cron, self.timezone, name=self.name)
            case "interval":
                return Interval(_required("interval_seconds", self.interval_seconds), self.starts_at or created_at)
            case "once":
                return Once(_required("run_at", self.run_at))

    @property
    def type_of_jobs(self) -> str:
        """The type of the jobs that its firings make."""
        return STARTER if self.workflow else self.job_type

    @property
    def payload_of_jobs(self) -> dict[str, Any]:
        """Their arguments."""
        return {"workflow": self.workflow, "payload": self.payload} if self.workflow else self.payload

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON has them: an export file, the command line, a change in the history."""
        shown_as = {name: getattr(self, name) for name in FIELDS}
        return {name: iso(value) if isinstance(value, datetime) else value for name, value in shown_as.items()}


FIELDS: tuple[str, ...] = Definition.__struct_fields__


class Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A definition with what its row knows besides: the form in which it stands in the store."""

    definition: Definition
    created_at: datetime
    version: int = 1
    paused: bool = False
    pauses: tuple[tuple[datetime, datetime], ...] = ()
    """Begin and end of pauses that are over. What was due in them is never made up."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_live(self) -> bool:
        """Whether it has a next firing at all."""
        return self.definition.enabled

    @property
    def digest(self) -> str:
        """The same for the same content, whatever machine asks."""
        return _digest(msgspec.json.encode(self, order="sorted"))

    @property
    def rhythm(self) -> str:
        """A digest of what decides the nominal times. While it stays, an edit moves no firing."""
        of = self.definition
        anchor = (of.starts_at or self.created_at) if of.kind == "interval" else of.starts_at
        parts = (of.kind, of.cron, of.interval_seconds, of.run_at, of.timezone, anchor, of.ends_at, of.enabled)
        return _digest(msgspec.json.encode((*parts, of.name if "H" in of.cron.upper() else "")))

    def pause_over(self, nominal: datetime) -> datetime | None:
        """The end of the pause into which a firing of then falls, if it is over; None: it falls into none."""
        return max((ended for began, ended in self.pauses if began <= nominal < ended), default=None)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=12).hexdigest()


def _required(name: str, value: Any) -> Any:
    if value is None:
        raise ScheduleInvalid(f"The schedule has no {name}.", fix="Its kind needs it.")
    return value


# --- Checking --------------------------------------------------------------------------------------------------------


def definition_of(fields: Mapping[str, Any]) -> Definition:
    """The definition with these fields, times as datetimes or ISO 8601. Raises the first problem there is."""
    given = {name: _moment_or_value(name, value) for name, value in fields.items()}
    for problem in problems(given).values():
        raise problem
    return _made({name: _stored_form(name, value) for name, value in given.items()})


def taken_as_it_is(fields: Mapping[str, Any]) -> Definition:
    """The same of a row, without a check, which takes most of the time: where it is what is stored, it was checked.

    Raises msgspec.ValidationError where a field is of another type.
    """
    return _made({name: _plain(value) for name, value in fields.items()})


def _made(fields: Mapping[str, Any]) -> Definition:
    return msgspec.convert({name: value for name, value in fields.items() if value is not None}, Definition)


def problems(fields: Mapping[str, Any]) -> dict[str, SchedulerError]:
    """What is wrong, by field; empty where the fields make a schedule. The payload is the job type's to judge."""
    found: dict[str, SchedulerError] = {}
    for name in fields:
        if name not in FIELDS:
            found[name] = ScheduleInvalid(f"There is no field {shown(name)}.", fix=did_you_mean(name, FIELDS))
    for name, check in _CHECKS.items():
        value = fields.get(name)
        if value is None and name not in _NEEDED:
            continue
        try:
            check(name, value)
        except SchedulerError as error:
            found[name] = error
    for name, check_rule in _RULES.items():
        if name not in found:
            try:
                check_rule(fields)
            except SchedulerError as error:
                found[name] = error
    return found


def _moment_or_value(name: str, value: Any) -> Any:
    if name not in ("run_at", "starts_at", "ends_at") or not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ScheduleInvalid(
            f"{name}: {shown(value)} is not an ISO 8601 time.", fix="Write for example 2026-01-31T09:00:00Z."
        ) from None


def _stored_form(name: str, value: Any) -> Any:
    return parse(value).text if name == "cron" and value else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value) if isinstance(value, str) else value  # the enumerations of a model are texts of another class


def check_name(name: str, value: Any) -> None:
    text = options.check_text(name, value)
    if len(text) > LONGEST_NAME or text.strip() != text:
        raise ScheduleInvalid(
            f"{shown(value)} is no name for a schedule.",
            fix=f"Use 1 to {LONGEST_NAME} characters without spaces at the ends.",
        )


def _check_payload(name: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(argument, str) for argument in value):
        raise ScheduleInvalid(
            f"{name}: {shown(value)} is not an object of named arguments.", fix='Write {"argument": value}.'
        )


def _check_kind(name: str, value: Any) -> None:
    options.check_word(name, "cron" if value is None else value, tuple(SCHEDULE_KINDS))


def _check_cron_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ScheduleInvalid(f"{name}: {shown(value)} is no text.", fix="Write for example '30 2 * * *'.")


def _check_moment(name: str, value: Any) -> None:
    options.check_run_at(name, value)
    if not EARLIEST < value < LATEST:
        raise ScheduleInvalid(
            f"{name}: {shown(value)} lies outside the calendar.",
            fix=f"Give a time from {EARLIEST.year} to {LATEST.year}.",
        )


def _check_span(name: str, value: Any) -> None:
    if seconds(value, name=name) > LONGEST_JITTER and name == "jitter_seconds":
        raise ScheduleInvalid(f"{name}: {shown(value)} is longer than a day.", fix="Give it in seconds.")


def _check_pool(name: str, value: Any) -> None:
    if value != "":
        options.check_pool(name, value)


def _check_flag(name: str, value: Any) -> None:
    options.check_flag(name, value)


def _whole(lowest: int, highest: int) -> Any:
    return lambda name, value: options.check_whole(name, value, lowest, highest)


_NEEDED = ("name",)
_CHECKS: dict[str, Any] = {
    "name": check_name,
    "job_type": lambda name, value: options.check_text(name, value, may_be_empty=True),
    "workflow": lambda name, value: options.check_text(name, value, may_be_empty=True),
    "payload": _check_payload,
    "kind": _check_kind,
    "cron": _check_cron_text,
    "run_at": _check_moment,
    "starts_at": _check_moment,
    "ends_at": _check_moment,
    "timezone": lambda name, value: zone_named(value),
    "pool": _check_pool,
    "priority": lambda name, value: options.check_priority(name, value),
    "max_retries": lambda name, value: options.check_retries(name, value),
    "timeout": lambda name, value: options.check_timeout(name, value),
    "enabled": _check_flag,
    "max_firings": _whole(1, MOST_FIRINGS),
    "jitter_seconds": _check_span,
    "missed": lambda name, value: options.check_word(name, value, MISSED),
    "missed_limit": _whole(1, MOST_MISSED),
    "grace_seconds": _check_span,
    "overlap": lambda name, value: options.check_word(name, value, OVERLAP),
}
"""Field → its check, which raises. What one field means for another is in ``_RULES``."""


def _check_cron(fields: Mapping[str, Any]) -> None:
    text, kind = fields.get("cron") or "", fields.get("kind") or "cron"
    if kind == "cron":
        Cron(text, name=fields.get("name") or "")
    elif text:
        raise _of_another_kind("cron", kind)


def _check_interval(fields: Mapping[str, Any]) -> None:
    value, kind = fields.get("interval_seconds"), fields.get("kind") or "cron"
    if kind != "interval":
        if value is not None:
            raise _of_another_kind("interval_seconds", kind)
    elif value is None:
        raise ScheduleInvalid("An interval needs its length.", fix="Give interval_seconds, such as 300.")
    else:
        Interval(value)


def _check_once(fields: Mapping[str, Any]) -> None:
    value, kind = fields.get("run_at"), fields.get("kind") or "cron"
    if kind != "once":
        if value is not None:
            raise _of_another_kind("run_at", kind)
    elif value is None:
        raise ScheduleInvalid("A schedule of kind 'once' needs its moment.", fix="Give run_at, a time to come.")


def _check_end(fields: Mapping[str, Any]) -> None:
    start, end = fields.get("starts_at"), fields.get("ends_at")
    if isinstance(start, datetime) and isinstance(end, datetime) and end <= start:
        raise ScheduleInvalid("The schedule ends before it starts.", fix="Give ends_at a later time than starts_at.")


def _check_jitter(fields: Mapping[str, Any]) -> None:
    length, jitter = fields.get("interval_seconds"), fields.get("jitter_seconds")
    if length is None or not jitter:
        return
    if seconds(jitter, name="jitter_seconds") >= seconds(length, name="interval_seconds"):
        raise ScheduleInvalid(
            "The jitter is as long as the interval, so that firings would meet.",
            fix="Give jitter_seconds less than interval_seconds.",
        )


def _check_target(fields: Mapping[str, Any]) -> None:
    if fields.get("job_type") and fields.get("workflow"):
        raise ScheduleInvalid("The schedule names a job type and a workflow.", fix="Leave one of them empty.")
    if not fields.get("job_type") and not fields.get("workflow"):
        raise ScheduleInvalid("The schedule does not say what it starts.", fix="Name a job type, or a workflow.")


_RULES: dict[str, Any] = {
    "job_type": _check_target,
    "cron": _check_cron,
    "interval_seconds": _check_interval,
    "run_at": _check_once,
    "ends_at": _check_end,
    "jitter_seconds": _check_jitter,
}


def _of_another_kind(field: str, kind: str) -> ScheduleInvalid:
    return ScheduleInvalid(f"{field} means nothing for a schedule of kind {kind!r}.", fix="Leave it empty.")
