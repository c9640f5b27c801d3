"""Errors and job types whose dead jobs need nobody for a while. They stay dead and listed; only nobody is called."""

from __future__ import annotations

from datetime import timedelta

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.dead_letters import error_groups
from jobs.core import options
from jobs.core.duration import seconds
from jobs.core.job import iso, moment
from jobs.core.type_pattern import check_type_pattern
from jobs.core.wording import shown
from jobs.engine import JobFilter, Mute, MuteKind, get_engine
from jobs.exceptions import ErrorNotFound, OptionInvalid

LONGEST_SECONDS = 366 * 86_400.0

LOOKED_AT = 50_000
"""Dead jobs, newest first, among which the error is looked for: far more than lists of groups are made of, since it may
have been seen in one long ago; reading so many takes seconds."""


def mute(kind: MuteKind, subject: str, *, span: float | timedelta, reason: str) -> Mute:
    """Mutes an error (``group``, by its fingerprint) or a type (also ``billing.*``) for so many seconds from now.

    A year at most. An error is one that dead jobs have now, or that is muted already: a slip would mute nothing and say
    nothing. What nobody has died of yet is muted by its type. ``reason`` is needed: others see it. The answer's
    ``words`` are what people call it. OptionInvalid, ErrorNotFound.
    """
    options.check_text("subject", subject)
    length = seconds(span, name="span")
    if kind == "type":
        check_type_pattern("subject", subject)
    if not 0 < length <= LONGEST_SECONDS or kind not in ("group", "type"):
        raise OptionInvalid(
            "A mute is of a group or a type, and lasts up to a year.", fix="Write span=86400 for a day."
        )
    if not reason.strip():
        raise OptionInvalid("A mute needs a reason: others see it.", fix='Write reason="ticket 212".')
    words = _words(kind, subject)
    engine = get_engine()
    until = engine.jobs.server_now_ms() + int(length * 1000)
    made = Mute(
        kind=kind,
        subject=subject,
        until_ms=until,
        who=audit.actor().who,
        reason=reason.strip()[:200],
        words=words[:200],
    )
    engine.mutes.set(made)
    audit.record(f"{kind}.mute", subject, reason=made.reason, after={"until": iso(moment(until))})
    return made


def unmute(kind: MuteKind, subject: str) -> bool:
    """It shouts again; False where it was not muted (any more)."""
    ended = get_engine().mutes.end(kind, subject)
    if ended:
        audit.record(f"{kind}.unmute", subject)
    return ended


def all() -> list[Mute]:
    """The mutes that hold now, the first to end first."""
    return get_engine().mutes.all()


def called(kind: MuteKind, subject: str) -> str:
    """What people call it: an error by that of its newest dead job, or by its fingerprint where it has none now."""
    return _newest_error(subject) or subject if kind == "group" else subject


def _words(kind: MuteKind, subject: str) -> str:
    """What people call that which is to be muted. ErrorNotFound."""
    if kind == "type":
        return subject
    muted = next((mute.words for mute in all() if (mute.kind, mute.subject) == (kind, subject)), "")
    if words := _newest_error(subject) or muted:
        return words
    raise ErrorNotFound(
        f"None of the newest {LOOKED_AT:,} dead jobs has an error with the fingerprint {shown(subject)}.",
        fix="See `manage.py dlq groups`. Before its first death, mute its type.",
    )


def _newest_error(fingerprint: str) -> str:
    """The error of the newest dead job that has this fingerprint; empty where none has."""
    found = error_groups(JobFilter(fingerprint=fingerprint), sample=1, look_at=LOOKED_AT)
    return f"{found[0].error_type}: {found[0].pattern}" if found else ""


amute = twin(mute, uses_database=True)
aunmute = twin(unmute, uses_database=True)
aall = twin(all)
