"""Errors and job types that do not shout: what that means for groups of dead jobs and for their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.api import ErrorGroup, Mute
from jobs.core.type_pattern import means


class Quiet:
    """What is muted now."""

    def __init__(self, mutes: Iterable[Mute] = ()) -> None:
        known = tuple(mutes)
        self._groups = {mute.subject: mute for mute in known if mute.kind == "group"}
        self._types = [mute for mute in known if mute.kind == "type"]

    @property
    def subjects(self) -> frozenset[tuple[str, str]]:
        """What is muted: two that mute the same are alike."""
        return frozenset(("group", subject) for subject in self._groups) | {
            ("type", mute.subject) for mute in self._types
        }

    def __bool__(self) -> bool:
        return bool(self._groups or self._types)

    def of(self, group: ErrorGroup) -> Mute | None:
        """What mutes a group of dead jobs: its error is muted, or every type that is in it."""
        if found := self._groups.get(group.fingerprint):
            return found
        of_types = [self._of_type(type) for type in group.types]
        return of_types[0] if of_types and all(of_types) else None

    def _of_type(self, type: str) -> Mute | None:
        return next((mute for mute in self._types if means(mute.subject, type)), None)

    def loud(self, groups: Sequence[ErrorGroup]) -> list[ErrorGroup]:
        """The groups that nobody has muted."""
        return [group for group in groups if not self.of(group)]

    def number(self, groups: Sequence[ErrorGroup]) -> int:
        """How many jobs are in the others."""
        return sum(group.count for group in groups if self.of(group))
