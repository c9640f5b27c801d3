"""What the figures mean, in sentences: what needs somebody, the five questions, why a job waits, what happened to it.

Pure functions over what was read; nothing here asks the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.formats import age, count, duration, moment, plural, rate, read_moment, shortened
from dashboard.overall import Overall
from jobs.api import ErrorGroup
from jobs.core.job import Job
from jobs.core.states import JobState

LATE_SECONDS = 60.0
"""A job that is ready for longer than this is late."""

LONG_PAUSE_SECONDS = 3600.0
"""A pause without an end that is older than this needs somebody."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Need:
    """One thing that needs somebody: a finding with its noun linked, and the cause in one line."""

    mark: str  # icon: "dead" or "warning"
    before: str
    noun: str
    url: str
    after: str
    cause: str
    command: str = ""  # what would help, to be run by hand
    action: str = ""  # label of the link that leads to the remedy

    @property
    def key(self) -> str:
        return f"{self.mark} {self.before}{self.noun}"


@dataclass(frozen=True)
class Answer:
    """One of the five questions with its answer."""

    question: str
    mark: str  # icon: "succeeded", "warning", "dead" or "" for unknown
    answer: str
    detail: str
    url: str


def jobs_url(**words: str) -> str:
    return f"{reverse('dashboard:jobs')}?{urlencode(words)}"


# ---------------------------------------------------------------------------------------------------------- overview


def needs(overall: Overall, groups: Sequence[ErrorGroup] = (), sampled: int = 0) -> list[Need]:
    """What needs somebody, worst first. ``groups`` are of the newest ``sampled`` dead jobs."""
    found = [*_dead_needs(overall, groups, sampled)]
    for pool in overall.pools:
        found += _pool_needs(pool, overall)
    return [*found, *_schedule_needs(overall)]


def _schedule_needs(overall: Overall) -> list[Need]:
    if not overall.late:
        return []
    url = f"{reverse('dashboard:schedules')}?state=late"
    if len(overall.late) == 1:
        before, noun, are = "Schedule ", overall.late[0], " is late"
    else:
        before, noun, are = "", plural(len(overall.late), "schedule"), " are late"
    cause = "It should have fired" if len(overall.late) == 1 else "They should have fired"
    why = "no worker is alive" if not overall.workers else "nobody has fired it yet"
    return [Need("warning", before, noun, url, are, f"{cause}, and {why}.", action="Open schedules")]


def _dead_needs(overall: Overall, groups: Sequence[ErrorGroup], sampled: int) -> list[Need]:
    dead = overall.count("dead") or 0
    if not dead:
        return []
    url = reverse("dashboard:dead")
    if not groups:
        return [
            Need(
                "dead",
                "",
                plural(dead, "job"),
                url,
                " died",
                "Retries are spent. They wait to be resubmitted or discarded.",
            )
        ]
    first = groups[0]
    what = f"{first.error_type}: {first.message}" if first.message else first.error_type
    if first.count == dead:
        of_one = " died of one error" if dead > 1 else " died"
        types = first.types[0] if len(first.types) == 1 else f"{len(first.types)} types"
        return [
            Need(
                "dead",
                f"{plural(dead, 'job')} of ",
                types,
                url,
                of_one,
                shortened(what, 160),
                action="Open dead letters",
            )
        ]
    sample = f" of the newest {count(sampled)}" if sampled < dead else ""
    are = "is" if first.count == 1 else "are"
    cause = f"{count(first.count)}{sample} {are} one error of {', '.join(first.types[:2])}: {shortened(what, 120)}"
    return [Need("dead", "", plural(dead, "job"), url, " died", cause, action="Open dead letters")]


def _pool_needs(pool: dict[str, Any], overall: Overall) -> list[Need]:
    name, ready = pool["name"], pool["ready"]
    url = jobs_url(pool=name, state="ready")
    oldest = pool["oldest_ready_age_seconds"]
    if pool["paused"]:
        since = read_moment(pool["paused"].get("at"))
        if (
            ready
            and not pool["paused"].get("until")
            and since
            and (overall.now - since).total_seconds() > LONG_PAUSE_SECONDS
        ):
            cause = f"{paused_words(pool['paused'])} Nothing says when it ends."
            return [
                Need(
                    "warning",
                    "Pool ",
                    name,
                    url,
                    f" is paused with {plural(ready, 'ready job')}",
                    cause,
                    action="Show the jobs",
                )
            ]
        return []
    if unserved(pool):
        waited = f"The oldest has waited {duration(oldest)}. " if oldest else ""
        only = "No worker of this pool is alive." if overall.workers else "No worker is alive at all."
        return [
            Need(
                "warning",
                "Pool ",
                name,
                url,
                f" has {plural(ready, 'ready job')} and no worker",
                waited + only,
                command=f"python manage.py runworkers --pool {name}",
            )
        ]
    if oldest and oldest > LATE_SECONDS:
        growing = "" if pool["throughput_per_second"] else " It does not drain."
        cause = f"{plural(ready, 'job')} ready, {pool['leased']} of {pool['slots_actual']} slots busy.{growing}"
        return [Need("warning", "Pool ", name, url, f" is {age(oldest)} behind", cause, action="Show the jobs")]
    return []


def headline(overall: Overall, found: Sequence[Need]) -> str:
    if not overall.known:
        return "Nothing is known yet"
    if not found:
        return "Nothing needs you"
    number = NUMBERS[len(found)] if len(found) < len(NUMBERS) else count(len(found))
    return f"{number.capitalize()} thing{'s need' if len(found) > 1 else ' needs'} you"


def summary(overall: Overall) -> str:
    """One sentence on what runs, what waits and what failed."""
    if not overall.known:
        return "The store has not been read since this server started."
    running, dead = overall.count("leased") or 0, overall.count("dead") or 0
    waiting = sum(overall.count(state) or 0 for state in ("ready", "scheduled", "retry_wait", "blocked"))
    if not (running or waiting or dead or overall.count("succeeded") or overall.count("cancelled")):
        return "No job has been enqueued yet."
    runs = f"{plural(running, 'job')} {'runs' if running == 1 else 'run'}" if running else "No job runs"
    waits = f"{count(waiting)} {'waits' if waiting == 1 else 'wait'}" if waiting else "none waits"
    died = f"{count(dead)} {'is' if dead == 1 else 'are'} dead" if dead else "none is dead"
    return f"{runs}, {waits}, {died}."


def answers(overall: Overall) -> list[Answer]:
    """The five questions of an operator. Each answer says what it is over, and never answers from nothing."""
    return [_alive(overall), _late(overall), _failed(overall), _drain(overall), _keeping_up(overall)]


def _alive(overall: Overall) -> Answer:
    url = reverse("dashboard:workers")
    if overall.workers:
        detail = f"{plural(overall.workers, 'worker')} on {plural(overall.hosts, 'host')}"
        return Answer("Is anything running jobs?", "succeeded", "Yes", detail, url)
    waits = any(pool["ready"] or pool["leased"] for pool in overall.pools)
    return Answer("Is anything running jobs?", "warning" if waits else "", "No", "no worker is alive", url)


def _late(overall: Overall) -> Answer:
    late = [pool for pool in overall.pools if is_late(pool)]
    question = "Is anything late?"
    if not late:
        return Answer(
            question,
            "succeeded",
            "Nothing",
            f"no job is ready for over {duration(LATE_SECONDS)}",
            jobs_url(state="ready"),
        )
    worst = max(late, key=lambda pool: pool["oldest_ready_age_seconds"])
    detail = f"oldest in {shortened(worst['name'], 24)}" + (
        f", and {plural(len(late) - 1, 'more pool')}" if len(late) > 1 else ""
    )
    return Answer(
        question, "warning", age(worst["oldest_ready_age_seconds"]), detail, jobs_url(state="ready", pool=worst["name"])
    )


def _failed(overall: Overall) -> Answer:
    dead, retrying = overall.count("dead"), overall.count("retry_wait") or 0
    again = f"{count(retrying)} failed and will be retried" if retrying else "nothing waits for a retry"
    if not dead:
        return Answer("What failed for good?", "succeeded", "Nothing", again, reverse("dashboard:dead"))
    return Answer("What failed for good?", "dead", plural(dead, "job"), again, reverse("dashboard:dead"))


def _drain(overall: Overall) -> Answer:
    question, url = "When do the pools drain?", reverse("dashboard:pools")
    waiting = [pool for pool in overall.pools if pool["ready"]]
    if not waiting:
        return Answer(question, "succeeded", "Now", "no job is ready and waiting", url)
    stuck = [pool for pool in waiting if drains_in(pool) in ("never", "paused", "unknown")]
    known = [pool["predicted_wait_seconds"] for pool in waiting if pool not in stuck]
    stuck_words = ", ".join(f"{shortened(pool['name'], 24)} {drains_in(pool)}" for pool in stuck[:2])
    if not known:
        return Answer(question, "warning", drains_in(stuck[0]).capitalize(), stuck_words, url)
    slowest = max((pool for pool in waiting if pool not in stuck), key=lambda pool: pool["predicted_wait_seconds"])
    words = f"{shortened(slowest['name'], 24)} is last" + (f"; {stuck_words}" if stuck else "")
    seconds = slowest["predicted_wait_seconds"]
    return Answer(
        question, "warning" if stuck else "succeeded", "Now" if seconds < 5 else duration(seconds), words, url
    )


def drains_in(pool: dict[str, Any]) -> str:
    """How long until the pool's ready jobs have started: ``now``, ``11 min``, ``never``, ``paused``, ``unknown``."""
    if pool["paused"]:
        return "paused"
    if not pool["ready"]:
        return "now"
    if not pool["workers"]:
        return "never"
    stands_still = not pool["throughput_per_second"] and is_late(pool)
    if pool["predicted_wait_seconds"] is None or stands_still:
        return "unknown"
    return "now" if pool["predicted_wait_seconds"] < 5 else duration(pool["predicted_wait_seconds"])


def _keeping_up(overall: Overall) -> Answer:
    question, url = "How fast are we?", reverse("dashboard:pools")
    done = sum(pool["throughput_per_second"] or 0 for pool in overall.pools)
    busy = sum(pool["leased"] for pool in overall.pools)
    slots = sum(pool["slots_actual"] or 0 for pool in overall.pools)
    return Answer(question, "succeeded" if done else "", f"{rate(done)} jobs/s", busy_words(busy, slots), url)


def busy_words(busy: int, slots: int) -> str:
    return f"{count(busy)} of {count(slots)} slots busy" if slots else f"{count(busy)} running, no slots"


def is_late(pool: dict[str, Any]) -> bool:
    """True when a job is ready for too long, and nobody has paused the pool on purpose."""
    return (pool["oldest_ready_age_seconds"] or 0) > LATE_SECONDS and not pool["paused"]


def unserved(pool: dict[str, Any]) -> bool:
    """True when jobs are ready that nobody will run: no worker, and nobody has paused the pool on purpose."""
    return bool(pool["ready"] and not pool["workers"] and not pool["paused"])


def pool_state(pool: dict[str, Any]) -> tuple[str, str, str]:
    """How a pool is doing, as (mark, word, explanation). Healthy is plain: quiet is good."""
    if pool["paused"]:
        return "pause", "paused", paused_words(pool["paused"])
    if not pool["workers"]:
        return "warning" if unserved(pool) else "", "no worker", ""
    return "", "working" if pool["leased"] else "idle", ""


def paused_words(pause: dict[str, Any]) -> str:
    """``Paused by ana until 15:00: disk move.``"""
    words = "Paused"
    if pause.get("by"):
        words += f" by {pause['by']}"
    if until := read_moment(pause.get("until")):
        words += f" until {moment(until)}"
    if pause.get("reason"):
        words += f": {pause['reason']}"
    return words + "."


# --------------------------------------------------------------------------------------------------------------- job

TOLD_ANYWAY = ("due_at", "retry_at")
"""Reasons of ``api.explain`` that the story of a job tells already, with its error beside them."""


def reason(job: Job, overall: Overall) -> str:
    """One line: why the job is where it is, and what would change that."""
    now = overall.now
    match job.state:
        case JobState.SCHEDULED:
            return f"Starts in {age(max(0.0, (job.run_at - now).total_seconds()))}."
        case JobState.BLOCKED:
            return "Waits for the workflow nodes before it."
        case JobState.RETRY_WAIT:
            left = max(0.0, (job.run_at - now).total_seconds())
            return f"Attempt {job.attempt + 1} starts in {age(left)}. {error_line(job)}"
        case JobState.READY:
            return _why_ready(job, overall)
        case JobState.LEASED:
            return _why_running(job, now)
        case JobState.DEAD:
            return error_line(job) or "No error was recorded."
        case _:
            return ""


def _why_ready(job: Job, overall: Overall) -> str:
    """In the order of ``jobs.explain``, from what the page knows already; the job's own page asks ``explain``."""
    pool = next((pool for pool in overall.pools if pool["name"] == job.pool), None)
    if overall.paused:
        return f"Everything is p{paused_words(overall.paused)[1:]}"
    if pool and pool["paused"]:
        return f"Pool {job.pool} is p{paused_words(pool['paused'])[1:]}"
    if pool and not pool["workers"]:
        return f"No worker serves pool {job.pool}."
    if job.parked:
        return f"Parked: no live worker may run the type {job.type}. It is unknown to them, paused, or disabled."
    if pool and pool["max_running"] is not None and pool["leased"] >= pool["max_running"]:
        return f"Pool {job.pool} runs as many as it may at once: {pool['max_running']}."
    if job.throttled:
        return f"A limit of the type {job.type} holds it back: its key has its share."
    if job.attempt:
        return "Waits for a free slot, once more."
    return "Waits for a free slot."


def _why_running(job: Job, now: datetime) -> str:
    if job.cancel_requested:
        return "Cancelling: the handler has been asked to stop."
    if job.lease_expires_at and job.lease_expires_at < now:
        return "No sign of life from its worker; it is about to be taken back."
    if job.progress:
        return progress_of(job, now)
    return "Running." if job.started_at else "Handed to a worker, not started yet."


def progress_words(progress: dict[str, Any]) -> str:
    """``3 of 12: message``"""
    current, total, message = progress.get("current"), progress.get("total"), str(progress.get("message") or "")
    done = f"{current} of {total}" if total is not None else f"{current}" if current is not None else ""
    return f"{done}: {message}" if done and message else done or message


def progress_of(job: Job, now: datetime) -> str:
    """The same of a job; one whose handler has said nothing for long is called stalled."""
    words = progress_words(job.progress or {})
    silence = job.silence(now)
    return f"{words}. Stalled: nothing new for {age(silence.total_seconds())}." if silence else words


def error_line(job: Job, limit: int = 200) -> str:
    """``ValueError: the message`` on one line; empty when the job has no error."""
    if not job.error:
        return ""
    kind, message = str(job.error.get("type") or "Error"), str(job.error.get("message") or "")
    return shortened(f"{kind}: {message}" if message else kind, limit)


def what_happened(job: Job, overall: Overall) -> tuple[str, str]:
    """The story of the job as (finding, rest): the first sentence stands out."""
    now = overall.now
    starts = "attempt" if job.attempt == 1 else "attempts"
    match job.state:
        case JobState.SUCCEEDED:
            took = _span(job.started_at, job.finished_at)
            return f"Succeeded{f' in {took}' if took else ''}.", _tries(job)
        case JobState.DEAD:
            span = _span(_first_start(job), job.finished_at)
            crashed = f" {plural(job.crashes, 'of them crashed', 'of them crashed')} its worker." if job.crashes else ""
            tried = (
                f"Gave up after {job.attempt} {starts}{f' in {span}' if span else ''}."
                if job.attempt
                else "Died before its first attempt."
            )
            return (
                tried,
                f"{crashed} {_sentence(error_line(job))} It will not run again unless somebody resubmits it.".strip(),
            )
        case JobState.CANCELLED:
            return (
                "Cancelled.",
                f"Ended {age((now - job.finished_at).total_seconds())} ago; it can be resubmitted."
                if job.finished_at
                else "",
            )
        case JobState.SKIPPED:
            return "Skipped.", "Its condition in the workflow can no longer hold."
        case JobState.LEASED if job.cancel_requested:
            return "Cancelling.", "The handler has been asked to stop; the job ends as cancelled whatever it returns."
        case JobState.LEASED if job.started_at:
            limit = f" It may take {duration(job.timeout)} at most." if job.timeout else ""
            return (
                f"Running for {age((now - job.started_at).total_seconds())}.",
                f"Attempt {job.attempt} on {job.worker}.{limit}",
            )
        case JobState.RETRY_WAIT:
            return (
                f"Attempt {job.attempt} failed.",
                f"{_sentence(error_line(job))} {reason(job, overall).split('. ')[0]}.",
            )
        case JobState.SCHEDULED:
            return reason(job, overall), f"Scheduled for {moment(job.run_at)}."
        case _:
            first = reason(job, overall)
            waited = (
                f"Ready for {age((now - job.ready_at).total_seconds())}."
                if job.ready_at and job.state == JobState.READY
                else ""
            )
            return first, waited


def _tries(job: Job) -> str:
    if job.attempt <= 1:
        return "At the first attempt."
    return f"At attempt {job.attempt}."


def _sentence(text: str) -> str:
    return text if not text or text[-1] in ".!?…" else text + "."


def _first_start(job: Job) -> datetime | None:
    return next((attempt.started_at for attempt in job.attempts if attempt.started_at), job.started_at)


def _span(start: datetime | None, end: datetime | None) -> str:
    return duration(max(0.0, (end - start).total_seconds())) if start and end else ""
