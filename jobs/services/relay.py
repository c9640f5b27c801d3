"""Finishes what others have begun with runs of workflows and left: workers that died, commands that were stopped."""

from __future__ import annotations

import random
from collections.abc import Iterable

from jobs.core.workflow import PREPARING, NodeView
from jobs.engine import Engine
from jobs.engine.outbox import News
from jobs.exceptions import RunNotFound
from jobs.runtime.controlling import finish
from jobs.runtime.relaying import Relay, one_run_only

EVERY_SECONDS = 4.0
"""Whoever ends a node tells its run at once; this finds what was left."""

NONE_SECONDS = 20.0
"""Where there are no runs: of the first that begins all hosts are told, before it does."""

ABANDONED_MS = 60_000
"""A run that is still being written down after as long never will be: whoever wrote it was told nothing or an error."""


SILENT_MS = 45_000
"""A node that was released as long ago is asked for by its run, in case the news of its end were lost."""


class RelayService:
    """Sleeps until there may be something left."""

    name = "relay"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._relay = Relay(engine)
        self._has_runs = False

    @property
    def every(self) -> float:
        return (EVERY_SECONDS if self._has_runs else NONE_SECONDS) * random.uniform(0.8, 1.0)

    def tick(self) -> dict[str, int]:
        self._has_runs = self._engine.workflows.has_runs()
        if not self._has_runs:
            return {"told": 0, "advanced": 0}
        return {"told": self._tell(), "advanced": self._advance()}

    def _tell(self) -> int:
        outbox = self._engine.outbox
        routes = outbox.routes_with_news(self._engine.topology.partitions())
        return sum(self._relay.tell(route, job_ids) for route in routes for job_ids in outbox.waiting(route))

    def _advance(self) -> int:
        due = self._engine.workflows.due()
        for run_id, until in due:
            with one_run_only(run_id):
                self._look_at(run_id, until)
        return len(due)

    def _look_at(self, run_id: str, until: int) -> None:
        facts = self._engine.workflows.find(run_id)
        if facts is None or (facts.state == PREPARING and self._is_abandoned(facts.created_at_ms)):
            self._engine.workflows.remove(run_id)
            return
        if facts.state == PREPARING:
            return
        try:
            views = list(self._engine.workflows.all_nodes(run_id))
            self._write_down(run_id, views)
            self._relay.hear(run_id, self._missed(run_id, views))
            finish(self._relay, facts)
            if self._relay.advance(run_id):
                self._engine.workflows.rest(self._engine.workflows.facts(run_id), seen=until)
        except RunNotFound:
            self._engine.workflows.remove(run_id)

    def _write_down(self, run_id: str, views: Iterable[NodeView]) -> None:
        """The rest of nodes that somebody added and died over: of their edges the first are there."""
        for view in views:
            if not view.is_whole:
                self._engine.workflows.add(run_id, [view.node], scope=view.scope, is_growth=True)

    def _missed(self, run_id: str, views: Iterable[NodeView]) -> list[News]:
        """Ends that the run has not heard of for long, although nobody is on the way with them. What is to live again
        has ended, and is no news: it waits for the end of a pause, or until its life before has stopped."""
        before = self._engine.workflows.server_now_ms() - SILENT_MS
        silent = [view for view in views if view.is_job and view.job and view.released_at_ms < before]
        unmade = self._engine.workflows.unmade(run_id, [view.rank for view in silent])
        asked = {view.job: view for view in silent if view.job and view.rank not in unmade}
        return self._engine.outbox.missed(asked, run_id) if asked else []

    def _is_abandoned(self, created_at_ms: int) -> bool:
        return self._engine.workflows.server_now_ms() - created_at_ms > ABANDONED_MS
