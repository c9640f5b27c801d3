"""Seeing jobs change while they do."""

from __future__ import annotations

from jobs.engine import Follower, JobFilter, get_engine


def follow(filter: JobFilter | None = None) -> Follower:
    """What matches and changes from now on: each ``look()`` of the answer tells what has happened since the last one.

    A look costs the same whatever the rate and the backlog; what it left out it says. Once or twice a second is enough.
    """
    engine = get_engine()
    return Follower(engine.store, engine.topology, engine.jobs, filter or JobFilter())
