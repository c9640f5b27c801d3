"""What is paused: one document for the whole system, and a copy of what concerns it in each partition.

A lease sees one slot only, so it asks the copy. The document is changed first, the copies are told after it; each step
may be repeated, and an older version is never taken for a newer one. So whoever meets copies that are behind, after
somebody died half-way, may tell them again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jobs.core.job import Route
from jobs.core.pause import EVERYTHING, Pause, PauseState, Scope, scope_of
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys, partition_keys

_decode = msgspec.json.Decoder(Pause).decode
UNREADABLE = Pause(by="unknown", at="")
"""Whatever it was, somebody wanted it to stand still."""


def read_pauses(store: Store) -> PauseState:
    """The document as it is now."""
    return store.once("pauses", lambda: _read_pauses(store))


def _read_pauses(store: Store) -> PauseState:
    keys = SettingKeys(store.namespace)
    raw: dict[bytes, bytes] = store.read(lambda client: client.hgetall(keys.pauses))
    found: dict[Scope, Pause] = {}
    disabled = set()
    for field, stored in raw.items():
        scope = scope_of(field.decode())
        if scope.kind == "disabled":
            disabled.add(scope.name)
        elif scope.kind in ("everything", "pool", "type"):
            found[scope] = read_pause(stored)
    return PauseState(
        version=whole_number(raw.get(b"version")) or 0,
        everything=found.get(EVERYTHING),
        pools={scope.name: pause for scope, pause in found.items() if scope.kind == "pool"},
        types={scope.name: pause for scope, pause in found.items() if scope.kind == "type"},
        disabled=frozenset(disabled),
    )


def tell_partitions(store: Store, pauses: PauseState, routes: Iterable[Route]) -> None:
    """Brings the copies in these partitions up to this version: from then on no lease gives what is paused."""
    types = pauses.types_until_ms()
    packed = msgspec.msgpack.encode(types) if types else b""
    for route in routes:
        store.run(
            "partition_pause",
            partition_keys(store.namespace, route),
            version=pauses.version,
            until_ms=pauses.pool_until_ms(route.pool) or "",
            types=packed,
        )


def tell_new_pool(store: Store, first: Route) -> int:
    """Before a pool comes into being: tells its first partition what is paused; which version that was."""
    pauses = read_pauses(store)
    if pauses.version:
        tell_partitions(store, pauses, [first])
    return pauses.version


def read_pause(stored: bytes) -> Pause:
    """One pause as it is stored."""
    try:
        return _decode(stored)
    except msgspec.MsgspecError:
        return UNREADABLE
