"""The nodes of a run beside those of an earlier one: what was defined otherwise, how each ended, how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from jobs.core.workflow.definition import EDGES, Node
from jobs.core.workflow.records import NodeView

NOTABLE_SECONDS, NOTABLE_SHARE = 1.0, 0.25
"""A node took notably longer or shorter from this difference on: so many seconds, and such a part of the usual."""


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """One node in two runs; ``state`` or ``state_before`` is None where one of them does not have it."""

    key: str
    type: str
    state: str | None
    state_before: str | None
    seconds: float | None = None
    seconds_before: float | None = None
    usual: float | None = None
    """Median of its seconds in the earlier runs that were looked at; None where it succeeded in none."""
    changed: tuple[str, ...] = ()
    """Fields of its definition that are not the same; ``edges`` for any of those that name parents."""

    @property
    def times(self) -> float | None:
        """How many times as long as usual it took, where that is a notable difference."""
        if self.seconds is None or self.usual is None:
            return None
        difference = abs(self.seconds - self.usual)
        is_notable = difference >= NOTABLE_SECONDS and difference >= NOTABLE_SHARE * self.usual
        return self.seconds / self.usual if is_notable and self.usual else None

    @property
    def is_news(self) -> bool:
        """Whether anything about it is different."""
        return self.state != self.state_before or bool(self.changed) or self.times is not None

    def as_dict(self) -> dict[str, Any]:
        """Its JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def beside(now: Iterable[NodeView], *earlier: Iterable[NodeView]) -> list[Beside]:
    """Each node of a run beside the same one in ``earlier`` runs, of which the first is the one that it is compared
    with; parents first, and nodes that are there no more last."""
    nodes = {view.key: view for view in now}
    before, *others = [{view.key: view for view in views} for views in earlier]
    keys = [*nodes, *(key for key in before if key not in nodes)]
    return [_beside(key, nodes.get(key), before.get(key), [before, *others]) for key in keys]


def _beside(
    key: str, now: NodeView | None, before: NodeView | None, earlier: Sequence[Mapping[str, NodeView]]
) -> Beside:
    one = now or before
    assert one is not None
    took = [seconds for views in earlier if key in views and (seconds := _took(views[key])) is not None]
    return Beside(
        key=key,
        type=one.type,
        state=now.state if now else None,
        state_before=before.state if before else None,
        seconds=now.seconds if now else None,
        seconds_before=before.seconds if before else None,
        usual=round(median(took), 3) if took else None,
        changed=_changed(now.node, before.node) if now and before else (),
    )


def _took(view: NodeView) -> float | None:
    return view.seconds if view.state == "succeeded" and not view.skipped else None


def _changed(now: Node, before: Node) -> tuple[str, ...]:
    fields = [
        name for name in Node.__struct_fields__ if name not in EDGES and getattr(now, name) != getattr(before, name)
    ]
    has_other_edges = dict(now.edges()) != dict(before.edges())
    return (*fields, *(["edges"] if has_other_edges else []))
