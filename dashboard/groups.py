"""What the dead jobs of one error have in common, and in what they differ: worked out from a sample of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.formats import count, plural, shortened
from jobs.core.differences import leaves
from jobs.core.job import Job
from jobs.core.payload import dumps

VALUE_SHOWN = 60
EXAMPLES = 3
FIELDS = 40


@dataclass(frozen=True)
class Fact:
    """One thing that was looked at in each job. ``same``: all have this value."""

    name: str
    same: str = ""
    words: str = ""


def facts(jobs: Sequence[Job]) -> list[Fact]:
    """Type, pool, tags and each field of the payload: what all share first, then what differs."""
    if len(jobs) < 2:
        return []
    columns: dict[str, Counter[str]] = {}
    for job in jobs:
        for name, value in _cells(job):
            if name in columns or len(columns) < FIELDS:
                columns.setdefault(name, Counter())[value] += 1
    found = [_fact(name, values, len(jobs)) for name, values in columns.items()]
    return sorted(found, key=lambda fact: not fact.same)


def _fact(name: str, values: Counter[str], number: int) -> Fact:
    if len(values) == 1 and values.total() == number:
        return Fact(name, same=next(iter(values)))
    missing = number - values.total()
    most = ", ".join(f"{value} ({count(times)})" for value, times in values.most_common(EXAMPLES))
    more = f" and {plural(len(values) - EXAMPLES, 'other value')}" if len(values) > EXAMPLES else ""
    return Fact(name, words=most + more + (f"; {count(missing)} without" if missing else ""))


def _cells(job: Job) -> Iterator[tuple[str, str]]:
    yield "type", job.type
    yield "pool", job.pool
    yield "tags", ", ".join(sorted(job.tags)) or "none"
    yield "attempts", count(job.attempt)
    yield from _fields(job.payload)


def _fields(payload: Any) -> Iterator[tuple[str, str]]:
    """Each field, with its value as text."""
    return ((path, _written(value)) for path, value in leaves(payload))


def _written(value: Any) -> str:
    try:
        return shortened(dumps(value).decode(), VALUE_SHOWN)
    except ValueError:
        return shortened(repr(value), VALUE_SHOWN)


@dataclass(frozen=True)
class Difference:
    """A field in which two payloads differ."""

    name: str
    one: str
    other: str


def differences(one: Job, other: Job) -> list[Difference]:
    """Fields of two payloads that are not the same, or that only one of them has."""
    left, right = dict(_fields(one.payload)), dict(_fields(other.payload))
    names = dict.fromkeys([*left, *right])
    return [
        Difference(name, left.get(name, "–"), right.get(name, "–"))
        for name in list(names)[:FIELDS]
        if left.get(name) != right.get(name)
    ]
