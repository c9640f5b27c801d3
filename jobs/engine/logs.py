"""What attempts have logged: the newest lines of each, kept as long as their job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from jobs.conf import Settings
from jobs.core.job import Route
from jobs.core.job_log import LogLine
from jobs.store.connection import Store
from jobs.store.keys import PartitionKeys, partition_keys
from jobs.store.log_lines import decode_line

LINES_PER_CALL = 500
BYTES_PER_CALL = 2_000_000


class NewLines(NamedTuple):
    """What one attempt has logged since it was last asked. ``gone``: lines before these that were never kept."""

    id: str
    token: str
    lines: Sequence[bytes]
    gone: int = 0


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """``gone``: attempt → how many lines are no longer there because newer ones took their place."""

    lines: list[LogLine]
    gone: dict[int, int]

    def as_dict(self) -> dict[str, Any]:
        """As it stands in JSON: ``{"lines": […], "gone": {"1": 12}}``."""
        return {
            "lines": [line.as_dict() for line in self.lines],
            "gone": {str(attempt): count for attempt, count in self.gone.items()},
        }

    def cursor(self, before: Mapping[int, int] | None = None) -> dict[int, int]:
        """Attempt → number of its last line read: ``after`` of the next page."""
        return {**(before or {}), **{line.attempt: line.number for line in self.lines}}


class Logs:
    """See the module. Raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def append(self, route: Route, attempts: Sequence[NewLines]) -> list[tuple[str, str]]:
        """Keeps the lines of attempts that hold their lease; the leases (id, token) that are not ours any more."""
        lost: dict[tuple[str, str], None] = {}
        for call in _calls(attempts):
            items: list[Any] = []
            for part in call:
                items += (part.id, part.token, part.gone, len(part.lines), *part.lines)
            answers = self._store.run(
                "job_log",
                self._keys(route),
                items,
                resend=False,  # twice the same lines would be worse than none
                keep_lines=self._settings.log_lines,
                keep_bytes=self._settings.log_bytes,
                keep_attempts=self._settings.attempts_kept,
            )
            for part, answer in zip(call, answers, strict=True):
                if answer == b"lost":
                    lost[part.id, part.token] = None
        return list(lost)

    def read(
        self, route: Route, job_id: str, *, attempt: int | None = None, after: Mapping[int, int] | None = None
    ) -> LogPage:
        """The lines of one attempt or all, oldest first; ``after``: only lines beyond this number of their attempt."""
        known = [number for pair in (after or {}).items() for number in pair]
        reply = self._store.run(
            "log_read", self._keys(route), known, id=job_id, only="" if attempt is None else attempt
        )
        lines = [line for number, _, first, raw in reply for line in _decoded(number, first, raw)]
        lines.sort(key=lambda line: line.at)  # stable; a job that was resubmitted counts its attempts from 1 again
        return LogPage(lines=lines, gone={number: gone for number, gone, _, _ in reply if gone})

    def _keys(self, route: Route) -> PartitionKeys:
        return partition_keys(self._store.namespace, route)


def _decoded(attempt: int, first: int, raw: Sequence[bytes]) -> Iterator[LogLine]:
    for number, line in enumerate(raw, start=first):
        try:
            yield decode_line(attempt, number, line)
        except ValueError:
            continue  # the bytes went bad; the others can still be read


def _calls(attempts: Sequence[NewLines]) -> Iterator[list[NewLines]]:
    """The same in calls of bounded size; the lines of one attempt may be spread over several."""
    call: list[NewLines] = []
    room, bytes_left = LINES_PER_CALL, BYTES_PER_CALL
    for attempt in attempts:
        gone = attempt.gone
        for start in range(0, len(attempt.lines), LINES_PER_CALL):
            part = attempt._replace(lines=attempt.lines[start : start + LINES_PER_CALL], gone=gone)
            gone = 0
            size = sum(map(len, part.lines))
            if call and (len(part.lines) > room or size > bytes_left):
                yield call
                call, room, bytes_left = [], LINES_PER_CALL, BYTES_PER_CALL
            call.append(part)
            room, bytes_left = room - len(part.lines), bytes_left - size
    if call:
        yield call
