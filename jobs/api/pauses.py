"""Pausing and resuming, whatever it is: what pools, types and the scheduler share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from jobs.api import audit
from jobs.core import options
from jobs.core.job import moment
from jobs.core.pause import Pause, Scope
from jobs.core.wording import shown
from jobs.engine import get_engine
from jobs.exceptions import OptionInvalid

Until = datetime | timedelta | None
"""When a pause ends by itself: a moment (aware), a span from now, or None for never."""

FOR_AN_HOUR = "Write until=timedelta(hours=1)."

ACTIONS = {"everything": "scheduler", "pool": "pool", "type": "type"}


def pause(
    scope: Scope,
    *,
    by: str | None = None,
    reason: str = "",
    until: Until = None,
    wait: float | None = None,
) -> int:
    """Nothing new of it starts from when this returns; what runs goes on. Until resumed, or ``until``: a
    moment (aware) or a span from now.

    That takes until workers have begun or handed back what they had taken: moments, or the rest of a lease where a host
    is dead. ``wait``: no longer than so many seconds. Answers how many jobs may still start: 0, unless ``wait`` was too
    short. OptionInvalid.
    """
    until = end_of(until)
    reason = options.check_text("reason", reason, may_be_empty=True)
    pauses = get_engine().pauses
    before = pauses.pause(
        scope, by=audit.actor().who if by is None else options.check_text("by", by), reason=reason, until=until
    )
    after = pauses.stored().get(scope)
    left = pauses.settle(scope, timeout=wait)
    audit.record(
        f"{ACTIONS[scope.kind]}.pause", scope.name, reason=reason, before=shown_pause(before), after=shown_pause(after)
    )
    return left


def resume(scope: Scope) -> None:
    """Ends the pause. No error, and no record, where there is none."""
    before = get_engine().pauses.resume(scope)
    if before is not None:
        audit.record(f"{ACTIONS[scope.kind]}.resume", scope.name, before=shown_pause(before), after={"paused": None})


def end_of(until: Until) -> datetime | None:
    """The moment; a span counts from now by the server's clock, which is the one that ends the pause.

    One that is past is refused: it would pause nothing, and take the place of a pause that holds.
    """
    if until is None:
        return None
    now = moment(get_engine().pauses.now_ms())
    try:
        if isinstance(until, timedelta):
            end = now + until
        elif not isinstance(until, datetime):
            raise OptionInvalid(f"until: {shown(until)} is neither a moment nor a span", fix=FOR_AN_HOUR)
        elif until.utcoffset() is None:
            raise OptionInvalid("until: has no time zone, so it names no moment", fix=FOR_AN_HOUR)
        else:
            end = until.astimezone(UTC)
    except OverflowError:
        raise OptionInvalid(f"until: {until} is beyond what the calendar reaches", fix=FOR_AN_HOUR) from None
    if end <= now:
        raise OptionInvalid(f"until: {until} is over already, so nothing would be paused", fix=FOR_AN_HOUR)
    return end


def shown_pause(pause: Pause | None) -> dict[str, Any]:
    """For the audit log."""
    return {"paused": msgspec.to_builtins(pause) if pause else None}
