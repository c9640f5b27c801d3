"""Everything that people may do from the dashboard, each thing described once.

An action is one address: GET asks, on a page that says what will happen and works without script; POST does it. A new
one is an entry in the module of its noun; ``{% act "pool.pause" pool.name %}`` puts its button on a page, for those who
may use it.
"""

from __future__ import annotations

from dashboard.actions import bulk, job_forms, jobs, matching, mutes, pools, runs, scheduler, schedules, workers
from dashboard.actions.base import Action

ACTIONS: tuple[Action, ...] = (
    *jobs.ACTIONS,
    *job_forms.ACTIONS,
    *matching.ACTIONS,
    *bulk.ACTIONS,
    *mutes.ACTIONS,
    *pools.ACTIONS,
    *scheduler.ACTIONS,
    *workers.ACTIONS,
    *schedules.ACTIONS,
    *runs.ACTIONS,
)

BY_SLUG = {action.slug: action for action in ACTIONS}
"""By noun and verb: ``pool.pause``."""
