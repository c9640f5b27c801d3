"""What happened in each pool in the last minutes that needs somebody, and that no figure of the moment tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean

from jobs.api import Noted, Point

MINUTES = 10
"""As far back as it is looked how a line grew."""

LOST_MINUTES = 15
"""As far back as it is looked what was lost with workers: three steps of a day's figures."""

LEAST_NOTES = 9
"""Of one each minute. Where more are missing no host ran for a while, and how the line grew is not known."""

LEAST_GROWTH = 20
"""Jobs. By fewer a line is longer and shorter by chance."""

LEAST_SHARE = 0.25
"""Of the line. One that grows by less in these minutes takes most of an hour to double."""


def lost_of(points: Mapping[str, Sequence[Point]], now: datetime) -> dict[str, int]:
    """Pool → attempts that ended with their worker, or lost their lease, of these minutes; ``points``: of each pool."""
    since = now - timedelta(minutes=LOST_MINUTES)
    lost = {
        pool: sum(point.figures.count("crashed") for point in steps if point.at >= since)
        for pool, steps in points.items()
    }
    return {pool: number for pool, number in lost.items() if number}


def growing(notes: Sequence[Noted], now: datetime) -> dict[str, float]:
    """Pool → jobs that come to its line in a minute beyond those that leave it, where the line grows all the time."""
    since = now - timedelta(minutes=MINUTES, seconds=30)  # notes are a minute apart, more or less
    fresh = [note for note in notes if note.at >= since]
    rates = {pool: growth(fresh, pool) for pool in (fresh[-1].ready if fresh else ())}
    return {pool: rate for pool, rate in rates.items() if rate}


def growth(notes: Sequence[Noted], pool: str) -> float:
    """By how many jobs the line grew each minute; 0 where it did not grow all the time.

    Compared is the shortest that it was in each third of the time: what comes in bursts and is worked off between them
    lets it fall as low each time, and one burst alone leaves it longer once and not twice.
    """
    if len(notes) < LEAST_NOTES:
        return 0.0
    ready = [note.ready.get(pool, 0) for note in notes]
    third = len(ready) // 3
    first, middle, last = min(ready[:third]), min(ready[third:-third]), min(ready[-third:])
    more, is_at_its_longest = last - first, ready[-1] >= fmean(ready[-third:])
    if not (first < middle < last and is_at_its_longest) or more < max(LEAST_GROWTH, LEAST_SHARE * last):
        return 0.0
    minutes = (notes[-1].at - notes[0].at).total_seconds() / 60
    return more / (minutes * (len(ready) - third) / (len(ready) - 1))  # from third to third
