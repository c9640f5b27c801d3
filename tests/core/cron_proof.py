"""``python -m tests.core.cron_proof [--set NAME]… [--part 2/5]``: cron expressions and a clock on the wall.

For two days around a change of the clocks, every firing of an expression must be one that a walk over all minutes finds
(``tests.support.wall``), and the other way round. ``chosen`` is the set by which the rule was chosen; ``zones`` takes
every zone through its coming changes, ``kinds`` every kind of change that any zone has known. ``days`` compares
expressions whose days and months are restricted with cronsim. The same expressions each time, on every machine.

Exit code 1 if any differs. A part of it is in every run of the tests (``test_cron_proof``).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim

from jobs.core.schedule import Cron, firings
from jobs.exceptions import ScheduleInvalid
from tests.support.wall import YEARS, ZONES, changes, kind_of_change, walk

EACH = 250
"""Expressions around one change of the chosen ones."""
OF_A_KIND = 100
COMING = range(2026, 2028)
OF_A_ZONE = 4
"""Expressions around each coming change of a zone."""
DAYS = 900
DAY = timedelta(days=1)
CALM = datetime(2026, 6, 15, tzinfo=UTC)
"""In a zone that never changes its clocks."""

CHOSEN = {
    "America/New_York": (datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)),
    "Europe/Berlin": (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "Asia/Kolkata": (CALM,),
    "America/Santiago": (datetime(2026, 9, 6, 4, tzinfo=UTC),),
    "Africa/Cairo": (datetime(2026, 4, 23, 22, tzinfo=UTC),),
    "Australia/Lord_Howe": (datetime(2026, 4, 4, 15, tzinfo=UTC), datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
}
"""Zone → the changes that are looked at, of an hour, at midnight and of half an hour: 2,250 expressions in all."""

CRONSIM_KNOWS = ("America/New_York", "Europe/Berlin", "Asia/Kolkata")
"""Elsewhere cronsim breaks the rule itself now and then: at midnight, and where clocks move by half an hour. In some
zones it never comes to an end, so it is asked in the chosen ones alone."""


@dataclass(frozen=True)
class Case:
    """An expression in a zone, for two days around a moment."""

    zone: str
    around: datetime
    expression: str

    @property
    def start(self) -> datetime:
        return self.around - DAY

    def fired(self) -> list[datetime]:
        end = self.start + 2 * DAY
        return list(takewhile(lambda at: at <= end, firings(Cron(self.expression, self.zone), self.start)))

    def seen(self) -> list[datetime]:
        """By looking at the wall."""
        return walk(self.expression, self.zone, self.start, 2 * 24 * 60 + 1)

    def simulated(self) -> list[datetime]:
        """By cronsim."""
        end = self.start + 2 * DAY
        theirs = CronSim(self.expression, self.start.astimezone(ZoneInfo(self.zone)))
        return list(takewhile(lambda at: at <= end, (at.astimezone(UTC) for at in theirs)))


# --- The expressions ------------------------------------------------------------------------------------------------


def field(draw: random.Random, low: int, high: int) -> str:
    """A star, steps, a number, a range, a range in steps or a list."""
    first, last = sorted(draw.sample(range(low, high + 1), 2))
    step = draw.randint(2, max(2, (high - low) // 2))
    kinds = ("*", f"*/{step}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"{first},{last}")
    return draw.choice(kinds)


def clock(draw: random.Random) -> str:
    """Minute and hour; half of the hours are those in which clocks are changed."""
    return f"{field(draw, 0, 59)} {field(draw, 0, 4) if draw.random() < 0.5 else field(draw, 0, 23)}"


def expressions(seed: str) -> Iterator[str]:
    """Endless. Days are restricted in one of five, to some of those around any date."""
    draw = random.Random(seed)
    while True:
        dates = f"{draw.choice(('*', '*/2', '1-31/3'))} * {field(draw, 0, 6)}" if draw.random() < 0.2 else "* * *"
        yield f"{clock(draw)} {dates}"


# --- The sets --------------------------------------------------------------------------------------------------------


def chosen() -> Iterator[Case]:
    for zone, moments in CHOSEN.items():
        for around in moments:
            yield from (Case(zone, around, text) for text in islice(expressions(f"{zone} {around}"), EACH))


def zones(names: Iterable[str] = ZONES) -> Iterator[Case]:
    for zone in names:
        texts = expressions(zone)
        for around in [change for year in COMING for change in changes(zone, year)] or [CALM]:
            yield from (Case(zone, around, text) for text in islice(texts, OF_A_ZONE))


def kinds() -> Iterator[Case]:
    """The expressions of a kind are spread over the zones and years that know it."""
    known: dict[object, list[tuple[str, datetime]]] = {}
    for zone in ZONES:
        for year in YEARS:
            for change in changes(zone, year):
                known.setdefault(kind_of_change(zone, change), []).append((zone, change))
    for kind, places in known.items():
        for number, text in enumerate(islice(expressions(str(kind)), OF_A_KIND)):
            yield Case(*places[number * len(places) // OF_A_KIND], text)


SETS: dict[str, Callable[[slice], Iterator[Case]]] = {
    "chosen": lambda some: islice(chosen(), some.start, None, some.step),
    "zones": lambda some: zones(ZONES[some]),
    "kinds": lambda some: islice(kinds(), some.start, None, some.step),
}
"""The cases of each set; a part of ``zones`` is made of whole zones."""


def days() -> Iterator[tuple[str, datetime]]:
    """Expressions in all five fields that name a day, and a moment. Endless."""
    draw = random.Random("days")
    while True:
        text = " ".join((clock(draw), field(draw, 1, 31), field(draw, 1, 12), field(draw, 0, 6)))
        with suppress(ScheduleInvalid):  # of a day that never comes
            Cron(text)
            yield text, datetime(2000, 1, 1, tzinfo=UTC) + timedelta(hours=draw.randrange(50 * 365 * 24))


# --- The comparison -------------------------------------------------------------------------------------------------


def differing(cases: Iterable[Case], counted: Counter[str]) -> Iterator[str]:
    """The cases in which we are wrong, in words; counts what was looked at."""
    for case in cases:
        fired, seen = case.fired(), case.seen()
        counted["expressions"] += 1
        counted["firings"] += len(seen)
        if fired != seen:
            counted["wrong"] += 1
            odd = sorted(set(fired) ^ set(seen))[:3]
            yield f"{case.expression!r} in {case.zone} around {case.around}: {[str(at) for at in odd]}"
        if case.zone in CHOSEN and case.simulated() != seen:
            counted["cronsim differs"] += 1
            if case.zone in CRONSIM_KNOWS:
                yield f"{case.expression!r} in {case.zone} around {case.around}: cronsim sees it otherwise"


def differing_in_days(cases: Iterable[tuple[str, datetime]], counted: Counter[str]) -> Iterator[str]:
    """The expressions whose next five firings cronsim sees otherwise."""
    for expression, moment in cases:
        mine = list(islice(firings(Cron(expression), moment), 5))
        theirs = [at.astimezone(UTC) for at in islice(CronSim(expression, moment), 5)]
        counted["expressions"] += 1
        counted["firings"] += len(mine)
        if mine != theirs:
            counted["wrong"] += 1
            yield f"{expression!r} after {moment}: {mine[:1]}, by cronsim {theirs[:1]}"


def part(name: str, number: int, of: int) -> tuple[Counter[str], list[str]]:
    """The figures and the findings of every ``of``-th case of a set, from its ``number``-th on."""
    counted: Counter[str] = Counter({"expressions": 0, "firings": 0, "wrong": 0})
    if name == "days":
        return counted, list(differing_in_days(islice(days(), number - 1, DAYS, of), counted))
    return counted, list(differing(SETS[name](slice(number - 1, None, of)), counted))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.core.cron_proof", description=__doc__)
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only each N-th case, from the K-th on")
    parser.add_argument(
        "--set", choices=[*SETS, "days"], action="append", dest="sets", help="only this one; may be repeated"
    )
    options = parser.parse_args()
    number, _, of = options.part.partition("/")
    passed = True
    for name in options.sets or [*SETS, "days"]:
        counted, found = part(name, int(number), int(of))
        print(f"{name:7}", *(f"{key} {value:,}" for key, value in counted.items()), sep="  ", flush=True)
        print(*(f"  {each}" for each in found), sep="\n", end="\n" if found else "")
        passed = passed and not found
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
