"""What is paused: everything, pools, job types. Nothing new of it starts until it is resumed, or its time is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

FOR_EVER_MS = 2**53
"""The end of a pause that has none, Unix milliseconds."""


def by_whom(by: str | None, reason: str | None = "", *, when: str = "") -> str:
    """``by ana until 15:00: disk is full``, as much of it as is known. ``when``: since or until when, in the words of
    whoever shows it."""
    words = " ".join(part for part in (f"by {by}" if by else "", when) if part)
    return f"{words}: {reason}" if reason else words


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Who paused it, when, why, and until when (None = until somebody resumes it)."""

    by: str
    at: str
    reason: str = ""
    until: str | None = None

    def __str__(self) -> str:
        """``paused by ana: disk is full``."""
        return f"paused {by_whom(self.by, self.reason)}"

    @property
    def until_ms(self) -> int:
        """The same on the server's clock, Unix milliseconds. A moment that cannot be read never comes."""
        try:
            return int(datetime.fromisoformat(self.until).timestamp() * 1000) if self.until else FOR_EVER_MS
        except ValueError:
            return FOR_EVER_MS


class Scope(NamedTuple):
    """What a pause holds back: everything, a pool or a job type. Its text is its name in the store."""

    kind: str  # "everything", "pool", "type"
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"{'job type' if self.kind == 'type' else self.kind} {self.name}".rstrip()


EVERYTHING = Scope("everything")


def scope_of(text: str) -> Scope:
    """The scope whose text it is."""
    kind, _, name = text.partition(":")
    return Scope(kind, name)


class PauseState(msgspec.Struct, frozen=True, kw_only=True):
    """All pauses that were set and not lifted, those among them whose time is over included.

    ``version`` grows with each change. ``disabled``: job types that are switched off in the admin.
    """

    version: int = 0
    everything: Pause | None = None
    pools: Mapping[str, Pause] = {}
    types: Mapping[str, Pause] = {}
    disabled: frozenset[str] = frozenset()

    def at(self, now_ms: int) -> PauseState:
        """What holds at this moment of the server's clock."""
        return PauseState(
            version=self.version,
            everything=self.everything if self.everything and now_ms < self.everything.until_ms else None,
            pools={name: pause for name, pause in self.pools.items() if now_ms < pause.until_ms},
            types={name: pause for name, pause in self.types.items() if now_ms < pause.until_ms},
            disabled=self.disabled,
        )

    def pool_until_ms(self, pool: str) -> int:
        """When a job of this pool may start again as far as pool and system are concerned; 0 = they are not paused."""
        holding = [pause.until_ms for pause in (self.everything, self.pools.get(pool)) if pause]
        return max(holding, default=0)

    def types_until_ms(self) -> dict[str, int]:
        """The same for job types: those that are paused or disabled."""
        paused = {name: pause.until_ms for name, pause in self.types.items()}
        return paused | dict.fromkeys(self.disabled, FOR_EVER_MS)

    @property
    def has_any(self) -> bool:
        """Whether anything is paused, be its time over or not: else nobody need ask what time it is."""
        return bool(self.everything or self.pools or self.types)

    def each(self) -> Iterator[tuple[Scope, Pause]]:
        if self.everything:
            yield EVERYTHING, self.everything
        yield from ((Scope("pool", name), pause) for name, pause in self.pools.items())
        yield from ((Scope("type", name), pause) for name, pause in self.types.items())

    def get(self, scope: Scope) -> Pause | None:
        return {"everything": self.everything, "pool": self.pools.get(scope.name), "type": self.types.get(scope.name)}[
            scope.kind
        ]
