"""Ids of jobs, the routes that they carry, and tokens of leases."""

from __future__ import annotations

import re
import secrets
import time
from hashlib import blake2b

from jobs.core.job import Route

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford: sorts like the number, no look-alikes
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_ROUTE = r"(.+)\.([0-9]{1,9})\.([0-9]{1,9})"
_match_route = re.compile(_ROUTE, re.DOTALL).fullmatch
_match_id = re.compile(rf"[{_ALPHABET}]{{20}}-{_ROUTE}", re.DOTALL).fullmatch


def _base32(bits: int) -> str:
    """50 bits as ten letters."""
    pairs = _PAIRS
    return (
        pairs[bits >> 40 & 1023]
        + pairs[bits >> 30 & 1023]
        + pairs[bits >> 20 & 1023]
        + pairs[bits >> 10 & 1023]
        + pairs[bits & 1023]
    )


def new_ids(route: Route, count: int) -> list[str]:
    """Ids that carry their route, sort by time (ms), and within one call by their order.

    50 bits of time, 50 of chance; the chance of one call grows by one per id, from a start below 2^49.
    """
    stamp = _base32(time.time_ns() // 1_000_000)
    chance = secrets.randbits(49)
    tail = f"-{route}"
    if count == 1:
        return [stamp + _base32(chance) + tail]
    ids: list[str] = []
    while len(ids) < count:
        low = chance & 1023
        head = stamp + _base32(chance)[:-2]  # only the last pair of letters changes from one id to the next
        ids += [head + pair + tail for pair in _PAIRS[low : low + count - len(ids)]]
        chance += 1024 - low
    return ids


def new_head() -> str:
    """The first part of such an id, which says when it was made and nothing of a route."""
    return _base32(time.time_ns() // 1_000_000) + _base32(secrets.randbits(50))


def derived_id(time_ms: int, name: str, route: Route) -> str:
    """An id of the same form, made of a time and a name instead of chance: the same for the same."""
    digest = blake2b(f"{name}\0{time_ms}".encode(), digest_size=7).digest()
    return f"{_base32(max(0, time_ms))}{_base32(int.from_bytes(digest, 'big') >> 6)}-{route}"


def route_in(job_id: str) -> Route | None:
    """The route that an id of ours carries; None for a caller's id."""
    return _route(_match_id(job_id))


def parse_route(text: str) -> Route | None:
    """``pool.version.partition`` → Route; None where the text is no route."""
    return _route(_match_route(text))


def _route(found: re.Match[str] | None) -> Route | None:
    return Route(found[1], int(found[2]), int(found[3])) if found else None


def claimed_route(holder: str) -> Route | None:
    """The route that an entry of the directory of callers' ids names: ``pool.version.partition``, ``~`` and the void
    that its claimant had seen, if any (``jobs.engine.holders``)."""
    return parse_route(holder.partition("~")[0])


def new_token() -> str:
    """A lease's token: 96 random bits. A counter would be no fence: two timelines of one server can count alike."""
    return secrets.token_urlsafe(12)
