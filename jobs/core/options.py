"""The options of a job type and of an enqueue: which there are, and what values they may take.

Each check returns the value as the engine wants it, or raises OptionInvalid naming the option and what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from jobs.core.duration import milliseconds, seconds
from jobs.core.retry import Backoff, encode_backoff
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import OptionInvalid

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
LONGEST_TEXT = 200  # bytes of UTF-8: ids and keys become parts of Redis keys
MOST_TAGS = 20
MOST_META = 20

UNTIL = ("finished", "started")
ON_DUPLICATE = ("return", "raise", "replace")
DURABILITIES = ("memory", "replicated", "disk", "database")


class EnqueueOptions(TypedDict, total=False):
    """What ``using()`` takes. ``None`` leaves an option as it was, except where it has a meaning of its own."""

    pool: str | None
    priority: int | None  # −100…100, higher first
    max_retries: int | None
    timeout: float | timedelta | None  # seconds; None = no time-out
    backoff: Backoff | None
    tags: list[str] | tuple[str, ...] | None
    meta: Mapping[str, str] | None
    delay: float | timedelta | None  # seconds from now
    run_at: datetime | None  # aware; in the past means now
    id: str | None
    unique_key: str | None  # None = not unique, even if the type is
    unique_until: str | float | timedelta | None
    on_duplicate: str | None
    concurrency_key: str | None
    rate_key: str | None
    durability: str | None
    on_commit: bool | str | None  # True, or the alias of the database whose transaction to wait for
    allow_unknown: bool | None


MEANS_SOMETHING_AS_NONE = frozenset({"timeout", "unique_key"})


def check_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one enqueue, checked. ``delay`` and ``run_at`` come back in milliseconds, ``backoff`` encoded."""
    checked: dict[str, Any] = {}
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is None:
            raise OptionInvalid(f"There is no option {shown(name)}", fix=did_you_mean(name, _CHECKS))
        if value is None and name not in MEANS_SOMETHING_AS_NONE:
            continue
        checked[name] = check(name, value)
    if "delay" in checked and "run_at" in checked:
        raise OptionInvalid("delay and run_at exclude each other", fix="Give one of them.")
    return checked


def check_pool(name: str, value: Any) -> str:
    if isinstance(value, str) and _POOL.fullmatch(value):
        return value
    raise OptionInvalid(
        f"{name}: {shown(value)} is not a pool name",
        fix="Use up to 64 letters, digits, '_', '.' and '-', beginning with a letter or digit.",
    )


def check_priority(name: str, value: Any) -> int:
    return check_whole(name, value, LOWEST_PRIORITY, HIGHEST_PRIORITY)


def check_retries(name: str, value: Any) -> int:
    return check_whole(name, value, 0, 1_000_000)


def check_timeout(name: str, value: Any) -> float | None:
    if value is None:
        return None
    checked = seconds(value, name=name)
    if checked == 0:
        raise OptionInvalid(f"{name}: 0 would end every attempt at once", fix=f"Write {name}=None for no time-out.")
    return checked


def check_backoff(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, Backoff):
        return encode_backoff(value)
    raise OptionInvalid(
        f"{name}: expected Exponential, Linear or Fixed, got {shown(value)}",
        fix=f"Write for example {name}=Exponential(base=1, cap=60, jitter=0.2) or {name}=Fixed(5).",
    )


def check_tags(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise OptionInvalid(f"{name}: expected a list of texts, got {shown(value)}", fix=f'Write {name}=["nightly"].')
    # Sets have no order of their own; dict.fromkeys drops repeats and keeps the order of the rest.
    ordered = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    tags = tuple(dict.fromkeys(check_text(f"a tag in {name}", tag) for tag in ordered))
    if len(tags) > MOST_TAGS:
        raise OptionInvalid(f"{name}: {len(tags)} are too many", fix=f"Use at most {MOST_TAGS}.")
    return tags


def check_meta(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise OptionInvalid(
            f"{name}: expected a map of texts, got {shown(value)}", fix=f'Write {name}={{"customer": "42"}}.'
        )
    if len(value) > MOST_META:
        raise OptionInvalid(f"{name}: {len(value)} entries are too many", fix=f"Use at most {MOST_META}.")
    return {
        check_text(f"a name in {name}", key): check_text(f"{name}[{shown(key)}]", text, may_be_empty=True)
        for key, text in value.items()
    }


def check_delay(name: str, value: Any) -> int:
    return milliseconds(seconds(value, name=name))


def check_run_at(name: str, value: Any) -> int:
    if not isinstance(value, datetime):
        raise OptionInvalid(
            f"{name}: expected a datetime, got {shown(value)}",
            fix=f"Write {name}=timezone.now() + timedelta(minutes=5), or use delay=.",
        )
    if value.utcoffset() is None:
        raise OptionInvalid(
            f"{name}: {value.isoformat()} has no time zone, so it names no moment",
            fix=f"Write {name}=timezone.make_aware(moment), or give the datetime a tzinfo.",
        )
    # Rounded up to the millisecond, never early. Moments before 1970 are simply past.
    return max(1, -((_EPOCH - value) // timedelta(milliseconds=1)))


def check_until(name: str, value: Any) -> str | float:
    if isinstance(value, str):
        return check_word(name, value, UNTIL, also=" or a number of seconds")
    checked = seconds(value, name=name)
    if checked == 0:
        raise OptionInvalid(f"{name}: a window of 0 seconds holds nothing back", fix=f'Write {name}="finished".')
    return checked


def check_on_duplicate(name: str, value: Any) -> str:
    return check_word(name, value, ON_DUPLICATE)


def check_durability(name: str, value: Any) -> str:
    return check_word(name, value, DURABILITIES)


def check_on_commit(name: str, value: Any) -> bool | str:
    if isinstance(value, bool | str):
        return value
    raise OptionInvalid(
        f"{name}: expected True, False or a database alias, got {shown(value)}", fix=f"Write {name}=True."
    )


def check_flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise OptionInvalid(f"{name}: expected True or False, got {shown(value)}", fix=f"Write {name}=True.")


def check_text(name: str, value: Any, *, may_be_empty: bool = False) -> str:
    """Printable text (no control characters, no lone surrogates) of up to 200 bytes."""
    if not isinstance(value, str):
        raise OptionInvalid(f"{name}: expected text, got {shown(value)}", fix="Write it as a string.")
    if not value and not may_be_empty:
        raise OptionInvalid(f"{name}: is empty", fix="Give it at least one character, or leave the option out.")
    if not value.isprintable():
        raise OptionInvalid(
            f"{name}: {shown(value)} holds characters that cannot be shown",
            fix="Leave out control characters, line breaks and lone surrogates.",
        )
    if len(value) > LONGEST_TEXT or len(value.encode()) > LONGEST_TEXT:
        raise OptionInvalid(
            f"{name}: {shown(value)} is longer than {LONGEST_TEXT} bytes", fix="Shorten it, or use a digest of it."
        )
    return str(value)


def check_whole(name: str, value: Any, lowest: int, highest: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
        return int(value)
    raise OptionInvalid(
        f"{name}: {shown(value)} is not a whole number from {lowest} to {highest}",
        fix=f"Write for example {name}={min(3, highest)}.",
    )


def check_word(name: str, value: Any, words: tuple[str, ...], *, also: str = "") -> str:
    if isinstance(value, str) and value in words:
        return value
    choices = ", ".join(f'"{word}"' for word in words)
    raise OptionInvalid(f"{name}: {shown(value)} is not one of {choices}{also}", fix=f'Write {name}="{words[0]}".')


_POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "pool": check_pool,
    "priority": check_priority,
    "max_retries": check_retries,
    "timeout": check_timeout,
    "backoff": check_backoff,
    "tags": check_tags,
    "meta": check_meta,
    "delay": check_delay,
    "run_at": check_run_at,
    "id": check_text,
    "unique_key": lambda name, value: None if value is None else check_text(name, value),
    "unique_until": check_until,
    "on_duplicate": check_on_duplicate,
    "concurrency_key": check_text,
    "rate_key": check_text,
    "durability": check_durability,
    "on_commit": check_on_commit,
    "allow_unknown": check_flag,
}
