"""A run beside an earlier one of the same workflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from jobs.api.asynchronous import twin
from jobs.api.redaction import shown_value
from jobs.core.differences import Difference, differences
from jobs.core.workflow import Beside, RunFacts, beside
from jobs.engine import get_engine
from jobs.exceptions import OptionInvalid

USUAL_OF = 5
"""So many earlier runs say what is usual for a node."""
MOST_READ = 10_000
"""Nodes of earlier runs that are read for that, beyond those of the one that it is compared with."""
SCANNED = 200
"""Earlier runs that are looked through for those that succeeded."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What is different in ``run``."""

    run: RunFacts
    other: RunFacts
    payload: Sequence[Difference]
    """Of the payloads with which they were started; what people may not see is masked, and then the same."""
    nodes: Sequence[Beside]
    usual_of: int
    """How many earlier runs were looked at for what is usual, ``other`` among them."""

    @property
    def news(self) -> Sequence[Beside]:
        """The nodes about which anything is different."""
        return [node for node in self.nodes if node.is_news]

    def as_dict(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "run": _facts(self.run),
            "other": _facts(self.other),
            "payload": [difference.as_dict() for difference in self.payload],
            "usual_of": self.usual_of,
            "nodes": [{**node.as_dict(), "is_news": node.is_news} for node in self.nodes],
        }


def compare(run_id: str, other: str | None = None) -> Comparison:
    """The run beside ``other``, or beside the last one of its workflow before it that succeeded.

    RunNotFound; OptionInvalid where there is none of those to compare with.
    """
    workflows = get_engine().workflows
    run = workflows.facts(run_id)
    earlier = _earlier(run)
    before = next(earlier, None) if other is None else workflows.facts(other)
    if before is None:
        raise OptionInvalid(f"No run of {run.name} before this one has succeeded", fix="Name a run to compare it with.")
    more = list(_few(facts for facts in earlier if facts.id != before.id))
    views = [list(workflows.all_nodes(facts.id)) for facts in (run, before, *more)]
    return Comparison(
        run=run,
        other=before,
        payload=differences(shown_value("", before.payload), shown_value("", run.payload)),
        nodes=beside(*views),
        usual_of=1 + len(more),
    )


def _earlier(run: RunFacts) -> Iterator[RunFacts]:
    """Runs of the same workflow before it that succeeded, the last one first."""
    workflows = get_engine().workflows
    found = workflows.newest(run.name, before=run.created_at_ms, limit=SCANNED)
    for facts in workflows.facts_of([run_id for run_id, _ in found if run_id != run.id]):
        if facts is not None and facts.state == "succeeded":
            yield facts


def _few(runs: Iterator[RunFacts]) -> Iterator[RunFacts]:
    """As many as say what is usual, and are not too much to read."""
    read = 0
    for facts in islice(runs, USUAL_OF - 1):
        read += facts.total
        if read > MOST_READ:
            return
        yield facts


def _facts(run: RunFacts) -> dict[str, Any]:
    return {name: run.as_dict()[name] for name in ("id", "name", "state", "created_at", "version")} | {
        "seconds": run.seconds
    }


acompare = twin(compare)
