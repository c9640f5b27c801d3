"""Limits of job types, over all pools: what may run at once under a key, how often it may start, who waits for that.

``docs/decisions/0008-permits.md`` says how the parts work together. Every verb may be repeated, by anybody.
All raise StoreUnavailable or OutcomeUnknown where the server is away.
"""

from __future__ import annotations

from jobs.engine.limits.holds import Hold, Holds
from jobs.engine.limits.leave import Leave, Limits
from jobs.engine.limits.records import LimitRecords, limits_of
from jobs.engine.limits.upkeep import LimitUpkeep

__all__ = ["Hold", "Holds", "Leave", "LimitRecords", "LimitUpkeep", "Limits", "limits_of"]
