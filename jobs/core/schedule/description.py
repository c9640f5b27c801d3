"""A cron expression in words.

They are made of the same ``Expression`` that decides the firings. Clock, days of the month and months are put in words
by cron-descriptor, from text it cannot misread: ``H`` drawn, steps that do not fit their field as the list they are.
Weekdays, and how they go together with days of the month, are put in words here, since the library knows neither
cron's rule for them nor lists with an ``L`` or a ``#``.
"""

from __future__ import annotations

from cron_descriptor import DescriptionTypeEnum, ExpressionDescriptor, Options  # type: ignore[import-untyped]

from jobs.core.schedule.expression import LAST, Expression, Field, Term

_NTH = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def describe(expression: Expression) -> str:
    """One line of English. An expression that cannot be put in words is its own description."""
    try:
        parts = [_clock(expression), _days(expression), _months(expression.month)]
    except Exception:  # whatever the library trips over: words are no reason to refuse what can fire
        return expression.text
    return ", ".join(part for part in parts if part)


def _clock(expression: Expression) -> str:
    fields = " ".join(map(_plain, (expression.second, expression.minute, expression.hour)))
    return _words(f"{fields} * * *", DescriptionTypeEnum.FULL)


def _months(field: Field) -> str:
    return _words(f"0 0 0 * {_plain(field)} *", DescriptionTypeEnum.MONTH)


def _days(expression: Expression) -> str:
    day, weekday = _day(expression.day), _weekday(expression.weekday)
    if not (day and weekday):
        return day or weekday
    return f"{day} or {weekday}" if expression.either_day else f"{day} but only {weekday}"


def _day(field: Field) -> str:
    if field.starts_with_star and field.is_full:
        return ""
    if len(field.terms) > 1 and any(term.last for term in field.terms):
        days = [f"day {value}" for value in field.values]
        return f"on {_listed([*days, 'the last day'])} of the month"
    if field.text.startswith("*/") and len(field.terms) == 1:
        return f"every {field.text.removeprefix('*/')} days from the first of the month"
    return _words(f"0 0 0 {_plain(field)} * *", DescriptionTypeEnum.DAYOFMONTH)


def _weekday(field: Field) -> str:
    if field.starts_with_star and field.is_full:
        return ""
    if any(term.nth is not None for term in field.terms):
        return f"on the {_listed([_nth(term) for term in field.terms])} of the month"
    [first, *more] = field.terms
    if not more and "-" in first.text and "/" not in first.text and len(first.values) > 2:
        return f"{_WEEKDAYS[first.values[0]]} through {_WEEKDAYS[first.values[-1]]}"
    from_monday = sorted(field.values, key=lambda value: (value - 1) % 7)
    return f"on {_listed([_WEEKDAYS[value] for value in from_monday])}"


def _nth(term: Term) -> str:
    assert term.nth is not None
    return f"{_NTH[term.nth]} {_WEEKDAYS[term.values[0]]}"


def _words(text: str, part: DescriptionTypeEnum) -> str:
    options = Options()
    options.use_24hour_time_format = True
    described: str = ExpressionDescriptor(text, options).get_description(part)
    return described.removeprefix(",").strip()


def _plain(field: Field) -> str:
    return ",".join(_plain_term(field, term) for term in field.terms)


def _plain_term(field: Field, term: Term) -> str:
    base, _, step = term.text.partition("/")
    # "*/45" is not "every 45 minutes": it begins anew with each hour.
    if base.startswith("H") or (base == "*" and step and field.scale.size % int(step)):
        return ",".join(map(str, term.values))
    return term.text


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
