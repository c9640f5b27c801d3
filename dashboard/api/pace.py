"""How often one user may ask: a program that runs wild must not keep others from being answered."""

from __future__ import annotations

import time
from typing import Any

from django.core.cache import cache

from dashboard.api.errors import TooManyRequests
from jobs import api

MINUTE = 60


def refuse_hurried(user: Any) -> None:
    """TooManyRequests for those beyond ``SCHEDULER["API_REQUESTS_PER_MINUTE"]`` of this user in this minute."""
    most = api.tokens.requests_per_minute()
    if not most:
        return
    minute, second = divmod(int(time.time()), MINUTE)
    if _counted(f"api-requests:{user.pk}:{minute}") > most:
        raise TooManyRequests(
            f"You have sent more than {most:,} requests in this minute",
            fix="Send less often: one request may enqueue 1,000 jobs, and a list may have 1,000 items.",
            seconds=MINUTE - second,
        )


def _counted(key: str) -> int:
    """How often this was asked for now. A cache that has made room, or keeps nothing, begins anew."""
    cache.add(key, 0, 2 * MINUTE)
    try:
        return cache.incr(key)
    except ValueError:
        return 1
