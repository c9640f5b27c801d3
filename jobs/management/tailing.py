"""``jobs tail``: what happens to jobs, line by line, while it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import NoReturn

from django.utils import timezone

from jobs import api
from jobs.api import JobFilter
from jobs.core.job import Job, iso
from jobs.core.job_log import LogLine
from jobs.management.columns import detail, job_dict, since, state_word
from jobs.management.errors import CommandFailed, Exit
from jobs.management.output import Output
from jobs.runtime.loop import sleep

LOOK_EVERY_SECONDS = 0.5

LINES_AT_ONCE = 500
"""Changes that one look shows, at most: nobody reads more, and what is piped must not fall behind."""


def tail_all(output: Output, filter: JobFilter) -> NoReturn:
    """Shows jobs that match as they change state, until somebody has seen enough."""
    follower = api.follow(filter)
    output.hint("Following. Ctrl-C ends it.")
    while True:
        changes = follower.look()
        for job in changes.jobs[:LINES_AT_ONCE]:
            _show_change(api.shown(job), output)
        if unseen := changes.unseen + len(changes.jobs[LINES_AT_ONCE:]):
            _show_gap(unseen, "jobs", output)
        sleep(LOOK_EVERY_SECONDS)


def tail_one(output: Output, id: str) -> None:
    """Shows one job's changes, log and progress, until it has ended."""
    view = _View(id)
    while True:
        job, is_over = view.look()
        for show in view.news(job):
            show(output)
        if is_over:
            return
        sleep(LOOK_EVERY_SECONDS)


def ends_quietly(tail: Callable[[], None]) -> None:
    """Ctrl-C is how a tail ends: it needs no words, and has its exit code."""
    try:
        tail()
    except KeyboardInterrupt:
        raise CommandFailed("Interrupted", exit=Exit.INTERRUPTED, code="interrupted", silent=True) from None


class _View:
    """What was shown of a job so far."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._state: tuple[object, ...] = ()
        self._progress: object = None
        self._lines: list[LogLine] = []
        self._cursor: dict[int, int] = {}  # attempt → number of its last line that was shown

    def look(self) -> tuple[Job, bool]:
        """The job, and whether this is the last look. JobNotFound."""
        job = api.get_job(self._id)
        # Only now: of a job that has ended no line is missed.
        self._lines = api.shown_log(job, api.job_logs(job, after=self._cursor)).lines
        return api.shown(job), job.is_terminal

    def news(self, job: Job) -> Iterator[Callable[[Output], None]]:
        """What was not shown yet, in the order in which it happened as far as that is known."""
        change = (job.state, job.attempt, job.started_at, job.cancel_requested, job.resubmissions)
        shown = [partial(_show_change, job)] if change != self._state else []
        self._state = change
        if not job.is_terminal:
            yield from shown
        yield from self._new_lines()
        if job.progress != self._progress and job.progress is not None:
            yield partial(_show_progress, job)
        self._progress = job.progress
        if job.is_terminal:
            yield from shown

    def _new_lines(self) -> Iterator[Callable[[Output], None]]:
        for line in self._lines:
            missed = line.number - self._cursor.get(line.attempt, 0) - 1
            self._cursor[line.attempt] = line.number
            if missed > 0:
                yield partial(_show_gap, missed, "lines")
            yield partial(_show_line, self._id, line)


def _show_change(job: Job, output: Output) -> None:
    if output.as_json:
        output.item({"kind": "state", **job_dict(job)})
        return
    _row(
        output,
        since(job) if job.is_terminal or job.is_running else None,
        state_word(job),
        job.type,
        job.id,
        detail(job),
    )


def _show_progress(job: Job, output: Output) -> None:
    if output.as_json:
        output.item({"kind": "progress", "id": job.id, "attempt": job.attempt, "progress": job.progress})
        return
    _row(output, None, "progress", detail(job))


def _show_line(id: str, line: LogLine, output: Output) -> None:
    if output.as_json:
        output.item({"kind": "log", "id": id, **line.as_dict()})
        return
    _row(output, line.at, line.level.lower(), f"#{line.attempt}", line.text)


def _show_gap(count: int, what: str, output: Output) -> None:
    """There was more than is shown."""
    if output.as_json:
        output.item({"kind": "gap", "count": count, "what": what})
        return
    _row(output, None, "…", f"{count:,} more {what}, not shown")


def _row(output: Output, at: datetime | None, word: str, *cells: object) -> None:
    """``at`` None: the moment is not known, now is near enough."""
    moment = at or timezone.now()
    clock = timezone.localtime(moment).strftime("%H:%M:%S") if output.rich else iso(moment)
    output.row(clock, f"{word:<9}" if output.rich else word, *[cell for cell in cells if cell not in (None, "")])
    output.flush()
