"""The five questions of an operator, with their answers, and the sentence below the headline.

Pure functions over what was read; nothing here asks the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from dashboard import standing
from dashboard.formats import age, count, duration, plural, rate, shortened
from dashboard.links import jobs_url
from dashboard.overall import Overall
from dashboard.standing import busy_words, drains_in, is_late


@dataclass(frozen=True)
class Answer:
    """One of the five questions with its answer."""

    question: str
    mark: str  # icon: "succeeded", "warning", "dead" or "" for unknown
    answer: str
    detail: str
    url: str


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
            f"no job is ready for over {duration(standing.LATE_SECONDS)}",
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


def _keeping_up(overall: Overall) -> Answer:
    question, url = "How fast are we?", reverse("dashboard:pools")
    done = sum(pool["throughput_per_second"] or 0 for pool in overall.pools)
    busy = sum(pool["leased"] for pool in overall.pools)
    slots = sum(pool["slots_actual"] or 0 for pool in overall.pools)
    return Answer(question, "succeeded" if done else "", f"{rate(done)} jobs/s", busy_words(busy, slots), url)
