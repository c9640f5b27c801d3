"""Live overrides of job types, set in the admin: read by producers at enqueue and by workers before a start."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from jobs.engine.pauses import Pauses
from jobs.exceptions import SchedulerError
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys

REFRESH_SECONDS = 1.0


class TypeOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator set for a job type; None = as declared in code."""

    pool: str | None = None
    priority: int | None = None
    max_retries: int | None = None
    timeout: float | None = None
    enabled: bool = True


NO_OVERRIDES = TypeOverrides()
_decode = msgspec.json.Decoder(TypeOverrides).decode


class Types:
    """A view that is at most a second old; while the server is away it keeps what it knows. Thread-safe."""

    def __init__(self, store: Store, pauses: Pauses) -> None:
        self._store = store
        self._pauses = pauses
        self._keys = SettingKeys(store.namespace)
        self._lock = threading.Lock()
        self._overrides: dict[str, TypeOverrides] = {}
        self._read_at = float("-inf")

    def get(self, name: str) -> TypeOverrides:
        self._refresh()
        return self._overrides.get(name, NO_OVERRIDES)

    def all(self) -> dict[str, TypeOverrides]:
        """All overrides as they are stored now."""
        raw: Any = self._store.read(lambda client: client.hgetall(self._keys.types))
        return {name.decode(): _read(stored) for name, stored in raw.items()}

    def disabled(self) -> frozenset[str]:
        """Types that may not start now."""
        self._refresh()
        return frozenset(name for name, overrides in self._overrides.items() if not overrides.enabled)

    def set(self, name: str, overrides: Mapping[str, Any] | TypeOverrides) -> None:
        """Replaces the overrides of a type. msgspec.ValidationError for unknown kinds of values."""
        stored = overrides if isinstance(overrides, TypeOverrides) else msgspec.convert(dict(overrides), TypeOverrides)
        self._write(name, msgspec.json.encode(stored), enabled=stored.enabled)

    def clear(self, name: str) -> None:
        """As declared in code again."""
        self._write(name, b"", enabled=True)

    def _write(self, name: str, overrides: bytes, *, enabled: bool) -> None:
        changes = self._store.run(
            "type_set", self._keys, type=name, overrides=overrides, disabled="" if enabled else "1"
        )
        if changes:
            self._pauses.tell()
            if enabled:
                self._pauses.unpark([name])
        self._read_at = float("-inf")

    def _refresh(self) -> None:
        if time.monotonic() - self._read_at < REFRESH_SECONDS or not self._lock.acquire(blocking=False):
            return
        try:
            self._overrides = self.all()
        except SchedulerError:
            if self._read_at == float("-inf") and not self._overrides:
                raise
        finally:
            self._read_at = time.monotonic()
            self._lock.release()


def _read(stored: bytes) -> TypeOverrides:
    try:
        return _decode(stored)
    except msgspec.MsgspecError:
        return NO_OVERRIDES
