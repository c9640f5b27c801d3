"""Tells runs of workflows at once how their nodes have ended, once the store has accepted the ends: in a thread of its
own, so that other jobs are reported meanwhile. Costs nothing while no node has run here.

What it cannot tell is left for the services of any host.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any

from jobs.core.job import LeasedJob, Route
from jobs.core.workflow import Ended
from jobs.engine import Engine
from jobs.exceptions import SchedulerError
from jobs.runtime import node_jobs
from jobs.runtime.growing import grow
from jobs.runtime.relaying import Relay

log = logging.getLogger("jobs.worker")

MOST = 250
"""Ends that are told together."""


class Messenger:
    """``expect`` from slots, ``hear`` from whoever has told the store of ends."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._relay = Relay(engine)
        self._expected: dict[tuple[str, str], Route] = {}
        self._ended: SimpleQueue[tuple[Route, str] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._busy = False

    def expect(self, lease: LeasedJob) -> None:
        """The end of this node is on its way to the store."""
        self._expected[lease.id, lease.token] = lease.route

    def hear(self, ends: Iterable[Any]) -> None:
        """The store has answered about these ends. Which it has accepted is found in the outbox."""
        if not self._expected:
            return
        for end in ends:
            route = self._expected.pop((str(end.id), end.token), None)
            if route is not None:
                self._ended.put((route, str(end.id)))
        if self._thread is None and not self._ended.empty():
            self._thread = threading.Thread(target=self._run, name="messenger", daemon=True)
            self._thread.start()

    @property
    def backlog(self) -> int:
        """Ends that no run has heard of."""
        return self._ended.qsize() + self._busy

    def read_parents(self, lease: LeasedJob) -> dict[str, Ended]:
        """How the parents of this node have ended, by key. StoreUnavailable."""
        return node_jobs.parents_of(self._engine, lease)

    def add_nodes(self, lease: LeasedJob, nodes: list[dict[str, Any]]) -> list[str]:
        """Adds nodes beside this one to its run, and has them begin; their keys. WorkflowInvalid, StoreUnavailable."""
        return grow(self._relay, lease.extras["workflow_run"], lease.extras["node"], nodes)

    def finish(self, timeout: float) -> None:
        """Tell what is left, as far as ``timeout`` seconds allow."""
        if self._thread is not None:
            self._ended.put(None)
            self._thread.join(timeout)

    def _run(self) -> None:
        while (first := self._ended.get()) is not None:
            self._busy = True
            by_route: defaultdict[Route, list[str]] = defaultdict(list)
            by_route[first[0]].append(first[1])
            is_over = self._gather(by_route)
            for route, job_ids in by_route.items():
                self._tell(route, job_ids)
            self._busy = False
            if is_over:
                return

    def _gather(self, by_route: defaultdict[Route, list[str]]) -> bool:
        """Takes what else has ended; whether no more will come."""
        for _ in range(min(self._ended.qsize(), MOST - 1)):
            item = self._ended.get_nowait()
            if item is None:
                return True
            by_route[item[0]].append(item[1])
        return False

    def _tell(self, route: Route, job_ids: list[str]) -> None:
        try:
            self._relay.tell(route, job_ids)
        except SchedulerError as error:
            log.warning("runs could not be told of %d nodes, a service will: %s", len(job_ids), error)
        except Exception:
            log.exception("runs could not be told of %d nodes, a service will try again", len(job_ids))
