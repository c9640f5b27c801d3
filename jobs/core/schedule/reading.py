"""The cron dialect: from what a person wrote to what it means.

This is the only place that reads cron text. What is refused says why, and what to write instead.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import NoReturn

from jobs.core.schedule.expression import (
    DAY,
    LAST,
    SCALES,
    SECOND,
    WEEKDAY,
    Expression,
    Field,
    Scale,
    Term,
    may_ever_fire,
)
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import ScheduleInvalid

LONGEST_EXPRESSION = 255
"""Characters. A person writes thirty; thousands are an attack on the parser."""

REMEMBERED = 256
"""Expressions that are not understood anew when they come again: for one schedule that is several times in a row."""

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_OTHER_WORDS = {"@midnight": "@daily", "@annually": "@yearly"}
_HASH = re.compile(r"H(?:\((\d+)-(\d+)\))?", re.ASCII)
_RANDOM = re.compile(r"R(?:\(.*\))?", re.ASCII)
_NEAREST = re.compile(r"(\d+)W|W(\d+)", re.ASCII)
_LAST_WEEKDAY = re.compile(r"L([0-7]|[A-Z]{3})|([0-7]|[A-Z]{3})L", re.ASCII)


def parse(text: str, *, name: str = "") -> Expression:
    """The expression that ``text`` writes, five fields or six with seconds first. ``name`` decides what ``H`` means.

    Raises ScheduleInvalid, with the reason and what to write instead.
    """
    if not isinstance(text, str):
        raise ScheduleInvalid(f"A cron expression is text, not {shown(text)}.", fix="Write for example '30 2 * * *'.")
    return _parse(text, name if "H" in text.upper() else "")


@lru_cache(maxsize=REMEMBERED)
def _parse(text: str, name: str) -> Expression:
    if len(text) > LONGEST_EXPRESSION:
        raise ScheduleInvalid(
            f"The cron expression has {len(text):,} characters; {LONGEST_EXPRESSION} are allowed.",
            fix="Use ranges and steps such as '0-59/5', or make several schedules of it.",
        )
    if not text.isascii() or not all(char.isprintable() or char.isspace() for char in text):
        _refuse(
            text,
            "it holds other characters than letters, digits and the signs * , - / # ( ) @",
            fix="Write it with the keyboard instead of pasting it.",
        )
    written = text.upper().split()
    if not written:
        _refuse(text, "it is empty", fix="Write five fields: minute, hour, day, month, weekday, as in '30 2 * * *'.")
    if written[0].startswith("@"):
        return _macro(text, [word.lower() for word in written], name)
    return _fields(text, written, name)


def _macro(text: str, words: list[str], name: str) -> Expression:
    word = _OTHER_WORDS.get(words[0], words[0])
    if word == "@every":
        _refuse(
            text,
            "a distance between runs is no cron expression",
            fix="Make it a schedule of kind 'interval', in code Interval(seconds).",
        )
    if word == "@reboot":
        _refuse(
            text,
            "no moment is the start of a system of many machines",
            fix="Enqueue the job where your start-up happens, or write a time such as '@daily'.",
        )
    if word not in _MACROS or len(words) > 1:
        known = did_you_mean(word, _MACROS) if word not in _MACROS else f"Write {word!r} alone."
        _refuse(text, f"{' '.join(words)!r} is not one of its words", fix=known)
    return Expression(word, _fields(text, _MACROS[word].split(), name).fields, has_seconds=False)


def _fields(text: str, written: list[str], name: str) -> Expression:
    if len(written) == 7:
        _refuse(
            text,
            "it has seven fields, and there is none for years",
            fix=f"Write {' '.join(written[:6])!r} and give the schedule a start and an end.",
        )
    if len(written) not in (5, 6):
        _refuse(
            text,
            f"it has {len(written)} {'field' if len(written) == 1 else 'fields'}, not five, or six with seconds first",
            fix="Write minute, hour, day, month, weekday, as in '30 2 * * 1-5'.",
        )
    has_seconds = len(written) == 6
    scales = SCALES if has_seconds else SCALES[1:]
    fields = []
    for position, (scale, field) in enumerate(zip(scales, written, strict=True)):
        try:
            fields.append(_field(scale, field, name))
        except _Refused as refused:
            better = [*written[:position], refused.instead, *written[position + 1 :]]
            _refuse(
                text,
                f"in the {scale.name}, {refused.reason}",
                fix=refused.fix or (f"Write {' '.join(better)!r}." if refused.instead else _example(scale)),
            )
    if not has_seconds:
        fields.insert(0, Field(SECOND, (Term("0", (0,)),)))
    stored = " ".join(field.text for field in fields[0 if has_seconds else 1 :])
    expression = Expression(stored, tuple(fields), has_seconds)
    if not may_ever_fire(expression):
        _refuse(
            text,
            "no such day ever comes",
            fix="The last day of each month is written 'L', as in '0 0 L * *'.",
        )
    return expression


def _example(scale: Scale) -> str:
    words = f", {scale.words[0]} to {scale.words[-1]}" if scale.words else ""
    return (
        f"Write a number from {scale.low} to {scale.high}{words}, a range such as '1-5', or '*' for every {scale.name}."
    )


class _Refused(Exception):
    """A field that cannot be accepted. ``instead``: the field as it should be; ``fix``: a sentence that says more."""

    def __init__(self, reason: str, *, instead: str = "", fix: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead
        self.fix = fix


def _refuse(text: str, reason: str, *, fix: str = "") -> NoReturn:
    raise ScheduleInvalid(f"The cron expression {shown(text)} is refused: {reason}.", fix=fix)


def _field(scale: Scale, text: str, name: str) -> Field:
    items = text.split(",")
    terms = []
    for position, item in enumerate(items):
        try:
            terms.append(_term(scale, item, name))
        except _Refused as refused:
            if refused.instead:  # the suggestion is the whole field, not the item alone
                refused.instead = ",".join([*items[:position], refused.instead, *items[position + 1 :]])
            raise
    _check_mixture(scale, terms)
    return Field(scale, tuple(terms))


def _check_mixture(scale: Scale, terms: list[Term]) -> None:
    if len(terms) > 1 and any(term.nearest is not None for term in terms):
        raise _Refused("'W' cannot stand in a list", fix="Make one schedule of each of them.")
    if scale is WEEKDAY and len({term.nth is None for term in terms}) > 1:
        raise _Refused(
            "weekdays of every week and of one week of the month cannot stand in one list",
            fix="Make two schedules of them.",
        )


def _term(scale: Scale, item: str, name: str) -> Term:
    if not item:
        raise _Refused("a value is missing beside a comma", fix="Take the comma away or write the value.")
    if special := _special(scale, item):
        return special
    base, slash, step_text = item.partition("/")
    step = _step(step_text) if slash else 1
    if base == "*":
        return Term(item, tuple(range(scale.low, scale.high + 1, step)))
    if base == "?" and scale in (DAY, WEEKDAY) and not slash:
        return Term("*", tuple(range(scale.low, scale.high + 1)))
    if _RANDOM.fullmatch(base):
        # "H" is drawn too, but from the name of the schedule: once and for all.
        raise _Refused("'R' would draw a new time at every restart", instead=item.replace("R", "H", 1))
    if hashed := _HASH.fullmatch(base):
        return Term(item, _hashed(scale, hashed, step if slash else None, name))
    start_text, dash, stop_text = base.partition("-")
    start = _value(scale, start_text)
    if not dash:
        if slash:
            raise _Refused(f"{item!r} does not say where it ends", instead=_range_form(scale, start_text, start, step))
        return Term(item, (start % 7,) if scale is WEEKDAY else (start,))
    stop = _value(scale, stop_text)
    if start == stop or (scale is WEEKDAY and (start, stop) == (7, 0)):
        raise _Refused(f"{base!r} is no range: some programs read it as every {scale.name}", instead=start_text)
    return Term(item, _range(scale, start, stop, step))


def _special(scale: Scale, item: str) -> Term | None:
    """``L``, ``15W``, ``5L`` and ``5#2``; None for a plain term."""
    if scale is DAY:
        if item == "L":
            return Term("L", last=True)
        if item in ("LW", "WL"):
            raise _Refused("'LW' is not known; '31W' is the same day, the last from Monday to Friday", instead="31W")
        if item.startswith("L-"):
            raise _Refused(
                f"days cannot be counted back from the end of the month, as {item!r} does",
                fix="Write 'L' for the last day, or a day of the month such as 28.",
            )
        if near := _NEAREST.fullmatch(item):
            day = _value(scale, near[1] or near[2])
            return Term(f"{day}W", nearest=day)
    if scale is WEEKDAY:
        if item == "L":
            raise _Refused(
                "'L' needs its weekday", fix="Write '5L' for the last Friday, or 'L' as the day of the month."
            )
        if last := _LAST_WEEKDAY.fullmatch(item):
            weekday = _value(scale, last[1] or last[2]) % 7
            return Term(f"{weekday}L", (weekday,), nth=LAST)
        day_text, hash_sign, nth_text = item.partition("#")
        if hash_sign:
            if not re.fullmatch("[1-5]", nth_text):
                raise _Refused(f"{item!r} does not name the first to fifth of the month: '5#2' is the second Friday")
            return Term(item, (_value(scale, day_text) % 7,), nth=int(nth_text))
    return None


def _step(text: str) -> int:
    if not re.fullmatch(r"\d{1,4}", text, re.ASCII) or int(text) == 0:
        raise _Refused(f"the step {text!r} is not a whole number from 1", fix="Write for example '*/5'.")
    return int(text)


def _value(scale: Scale, text: str) -> int:
    if text in scale.words:
        return scale.words.index(text) + scale.low
    high = 7 if scale is WEEKDAY else scale.high  # cron knows two Sundays, 0 and 7
    if not re.fullmatch(r"\d{1,4}", text, re.ASCII):
        words = f", or {scale.words[0]} to {scale.words[-1]}" if scale.words else ""
        near = text[:3] if text[:3] in scale.words else ""
        raise _Refused(f"{text!r} is not a number from {scale.low} to {high}{words}", instead=near)
    if not scale.low <= int(text) <= high:
        starts_anew = scale.low == 0 and int(text) == scale.size  # the hour 24 is the hour 0
        raise _Refused(f"{int(text)} is not between {scale.low} and {high}", instead="0" if starts_anew else "")
    return int(text)


def _range(scale: Scale, start: int, stop: int, step: int) -> tuple[int, ...]:
    """From ``start`` to ``stop``, past the end of the field and on from its beginning where ``stop`` is smaller."""
    if start > stop:
        stop += scale.size
    values = (scale.low + (value - scale.low) % scale.size for value in range(start, stop + 1, step))
    return tuple(dict.fromkeys(values))  # each once: "0-7" names Sunday twice


def _range_form(scale: Scale, text: str, start: int, step: int) -> str:
    """``5/15`` as a range that says where it ends; ``59/15`` as the one value it is."""
    if start + step > scale.high:
        return text
    return f"{text}-{scale.spelled(scale.high, like=text)}" + (f"/{step}" if step > 1 else "")


def _hashed(scale: Scale, match: re.Match[str], step: int | None, name: str) -> tuple[int, ...]:
    """The values that ``H`` draws from the name of the schedule: the same on every machine and in every version."""
    low, high = scale.low, scale.hash_high
    if match[1]:
        low, high = _value(scale, match[1]), _value(scale, match[2])
        if not low < high <= scale.high:
            raise _Refused(f"{match[0]!r} is no range from a lower to a higher value")
    spread = high - low + 1 if step is None else min(step, high - low + 1)
    digest = blake2b(f"{scale.name}\0{name}".encode(errors="surrogatepass"), digest_size=8).digest()
    first = low + int.from_bytes(digest, "big") % spread
    return (first,) if step is None else tuple(range(first, high + 1, step))
