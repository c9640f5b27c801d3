"""Sends the signals of jobs, whatever their receivers do."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from django.db import close_old_connections
from django.dispatch import Signal

from jobs.engine import Engine
from jobs.registry import registry
from jobs.signals import job_died

log = logging.getLogger("jobs.runtime")


def announce(signal: Signal, sender: object, **arguments: Any) -> None:
    """To all receivers. What one of them raises Django logs (``django.dispatch``), and nobody else notices."""
    try:
        signal.send_robust(sender, **arguments)
    except BaseException:  # SystemExit of a library, a cancelled task: Django stops at plain exceptions
        log.exception("a receiver of a signal of %s wanted to end more than itself", sender)


def announce_burials(engine: Engine, ids: Collection[str]) -> None:
    """Jobs that died because their worker did: no handler saw it, so this process says it."""
    if not ids or not job_died.receivers:
        return
    close_old_connections()
    for job in engine.jobs.get_many(ids):
        if job is not None:
            sender = registry.get(job.type) if job.type in registry else None
            announce(job_died, sender, job_id=job.id, context=None, error=None)
    close_old_connections()
