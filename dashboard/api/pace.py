"""How often somebody may ask: a program that runs wild, or guesses, must not keep others from being answered.

Counts are kept in Django's cache: where each web process has a cache of its own, each counts for itself.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest

from dashboard.api.errors import TooManyRequests, Unauthorized
from jobs import api
from jobs.exceptions import SchedulerError

log = logging.getLogger("dashboard.api")

MINUTE = 60

now = time.time

NETWORK_BITS = 64
"""Of an IPv6 address: what one customer has is one sender."""


def counted(key: str, number: int = 1, *, seconds: int) -> int:
    """How many of this there have been in the present span of so many seconds, ``number`` of them now. A cache that has
    made room, or keeps nothing, begins anew.
    """
    key = f"{key}:{int(now()) // seconds}"
    cache.add(key, 0, 2 * seconds)
    try:
        return cache.incr(key, number)
    except ValueError:
        return number


def refuse_hurried(user: Any) -> None:
    """TooManyRequests for those beyond ``SCHEDULER["API_REQUESTS_PER_MINUTE"]`` of this user in this minute."""
    most = api.tokens.requests_per_minute()
    if most and counted(f"api-requests:{user.pk}", seconds=MINUTE) > most:
        raise TooManyRequests(
            f"You have sent more than {most:,} requests in this minute",
            fix="Send less often: one request may enqueue 1,000 jobs, and a list may have 1,000 items.",
            seconds=_left_of_minute(),
        )


def refusal_of_token(request: HttpRequest) -> SchedulerError:
    """What somebody is told whose token opens nothing: Unauthorized, and TooManyRequests beyond
    ``SCHEDULER["API_FAILED_TOKENS_PER_MINUTE"]`` from their address in this minute.

    It is asked for after the token was looked up: one that is valid is served whatever others send from its address.
    """
    most = api.tokens.failures_per_minute()
    sender = _sender(request)
    failed = counted(f"api-failed-tokens:{sender}", seconds=MINUTE) if most else 0
    if failed <= most:
        return Unauthorized("This token is not valid, or not any more.", fix="Make one: manage.py tokens create USER")
    if failed == most + 1:
        log.warning("api.tokens_guessed by %s: more than %s in a minute that open nothing", sender or "somebody", most)
    return TooManyRequests(
        "Too many tokens that are not valid have come from your address",
        fix="Stop whatever sends them; make one that is valid: manage.py tokens create USER",
        seconds=_left_of_minute(),
    )


def _left_of_minute() -> int:
    return MINUTE - int(now()) % MINUTE


def _sender(request: HttpRequest) -> str:
    """The address that a request comes from, as the server knows it; of IPv6 the network."""
    told = request.META.get("REMOTE_ADDR", "")
    try:
        address = ipaddress.ip_address(told)
    except ValueError:
        return str(told)[:100]
    return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False)) if address.version == 6 else str(address)
