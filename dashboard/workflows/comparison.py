"""A run beside an earlier one, as its page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from dashboard import reads
from dashboard.formats import duration, plural, shortened
from dashboard.links import run_url
from dashboard.overall import UNREACHABLE
from dashboard.workflows import words
from jobs.api.workflows import Comparison
from jobs.core.differences import Difference
from jobs.core.payload import dumps
from jobs.core.workflow import Beside, RunFacts
from jobs.exceptions import SchedulerError

SHOWN = 200
"""Nodes about which something is different; of more the number is told."""
OFFERED = 20
"""Earlier runs that can be chosen."""
VALUE_SHOWN = 80


@dataclass(frozen=True)
class Row:
    """One node."""

    node: Beside
    url: str

    @property
    def different(self) -> str:
        """What is different about it, in words."""
        node, parts = self.node, []
        if node.state_before is None:
            parts.append("new")
        if node.state is None:
            parts.append("not there any more")
        if node.changed:
            parts.append(f"its {' and '.join(node.changed)} changed")
        if node.times is not None:
            parts.append(f"{node.times:.2g} times the usual" if node.times >= 0.1 else "a fraction of the usual")
        return ", ".join(parts)


@dataclass(frozen=True)
class Compared:
    """``trouble``: why there is nothing to show, in place of all else but ``others``."""

    others: Sequence[RunFacts]
    trouble: str = ""
    found: Comparison | None = None

    @property
    def other(self) -> RunFacts | None:
        return self.found.other if self.found else None

    @property
    def other_url(self) -> str:
        return run_url(self.other.id) if self.other else ""

    @property
    def other_shape(self) -> str:
        return words.run_shape(self.other) if self.other else ""

    @property
    def said(self) -> str:
        """``12 s slower. 2 nodes ended otherwise, 1 is new, 3 took much longer or shorter.``"""
        assert self.found is not None
        return " ".join(filter(None, (_against(self.found), _counted(self.found.nodes))))

    @property
    def rows(self) -> list[Row]:
        assert self.found is not None
        run = self.found.run.id
        return [
            Row(node, run_url(run, node=node.key) if node.state is not None else "") for node in self.found.news[:SHOWN]
        ]

    @property
    def more(self) -> int:
        """Nodes about which something is different, and that are not shown."""
        assert self.found is not None
        return max(0, len(self.found.news) - SHOWN)

    @property
    def same(self) -> int:
        """Nodes about which nothing is different."""
        assert self.found is not None
        return len(self.found.nodes) - len(self.found.news)

    @property
    def payload(self) -> list[tuple[str, str, str]]:
        """(path, before, after) of what is different in the payload of the run."""
        assert self.found is not None
        return [_written(each) for each in self.found.payload]


def comparison(run: RunFacts, against: str) -> Compared:
    """The run beside the one of this id, else beside the last before it that succeeded."""
    others = [other for other in reads.runs(run.name, "", "", OFFERED).items if other.id != run.id]
    try:
        return Compared(others, found=reads.comparison(run.id, against))
    except UNREACHABLE:
        raise
    except SchedulerError as error:
        return Compared(others, trouble=f"{error}. {error.fix}".replace("..", "."))


def _against(found: Comparison) -> str:
    now, before = found.run.seconds, found.other.seconds
    if now is None or before is None:
        return ""
    difference = abs(now - before)
    if difference < max(0.5, 0.05 * before):
        return f"Both took {duration(now)}."
    return f"It took {duration(now)}, {duration(difference)} {'more' if now > before else 'less'}."


def _counted(nodes: Sequence[Beside]) -> str:
    new = sum(node.state_before is None for node in nodes)
    gone = sum(node.state is None for node in nodes)
    otherwise = sum(node.state != node.state_before for node in nodes) - new - gone
    slower = sum((node.times or 0) > 1 for node in nodes)
    faster = sum(node.times is not None and node.times < 1 for node in nodes)
    parts = [
        (otherwise, f"{plural(otherwise, 'node')} ended otherwise"),
        (new, f"{plural(new, 'node is', 'nodes are')} new"),
        (gone, f"{plural(gone, 'node is', 'nodes are')} not there any more"),
        (slower, f"{plural(slower, 'node')} took notably longer than usual"),
        (faster, f"{plural(faster, 'node')} took notably less"),
    ]
    told = ", ".join(text for number, text in parts if number)
    return f"{told}." if told else "All nodes ended as before, in about the usual time."


def _written(one: Difference) -> tuple[str, str, str]:
    return one.path, _json(one.before), _json(one.after)


def _json(value: object) -> str:
    return "nothing" if value is msgspec.UNSET else shortened(dumps(value).decode(), VALUE_SHOWN)
