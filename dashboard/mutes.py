"""Errors and job types that do not shout: what that means for groups of dead jobs and for their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.api import ErrorGroup, Mute


class Quiet:
    """What is muted now."""

    def __init__(self, mutes: Iterable[Mute] = ()) -> None:
        self._by_subject = {(mute.kind, mute.subject): mute for mute in mutes}

    def __bool__(self) -> bool:
        return bool(self._by_subject)

    def of(self, group: ErrorGroup) -> Mute | None:
        """What mutes a group of dead jobs: its error is muted, or every type that is in it."""
        if found := self._by_subject.get(("group", group.fingerprint)):
            return found
        of_types = [self._by_subject.get(("type", type)) for type in group.types]
        return of_types[0] if of_types and all(of_types) else None

    def loud(self, groups: Sequence[ErrorGroup]) -> list[ErrorGroup]:
        """The groups that nobody has muted."""
        return [group for group in groups if not self.of(group)]

    def number(self, groups: Sequence[ErrorGroup]) -> int:
        """How many jobs are in the others."""
        return sum(group.count for group in groups if self.of(group))
