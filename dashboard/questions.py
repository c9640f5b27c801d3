"""The five questions of an operator, with their answers, and the sentence below the headline.

Pure functions over what was read; nothing here asks the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from dashboard import standing
from dashboard.formats import UNKNOWN, age, count, duration, plural, rate, shortened
from dashboard.links import jobs_url
from dashboard.overall import Overall
from dashboard.standing import drains_in, has_waiting, is_late, pause_of, unserved, waits_long
from jobs.core.states import JobState

ALLOWED = 0.05
"""Over half a minute a little less may be done than comes: the next minute makes up for it."""


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
    ended = overall.day.ended if overall.day else 0
    if not (ended or any(overall.count(str(state)) for state in JobState)):
        return "There is no job." if overall.pools else "No job has been enqueued yet."  # a pool comes with its first
    runs = f"{plural(running, 'job')} {'runs' if running == 1 else 'run'}" if running else "No job runs"
    waits = f"{count(waiting)} {'waits' if waiting == 1 else 'wait'}" if waiting else "none waits"
    died = f"{count(dead)} {'is' if dead == 1 else 'are'} dead" if dead else "none is dead"
    now = f"{runs}, {waits}, {died}."
    return (
        f"{now} In 24 hours {count(ended)} ended, {overall.day.share} of them well." if overall.day and ended else now
    )


def answers(overall: Overall) -> list[Answer]:
    """The five questions of an operator. Each answer says what it is over, and never answers from nothing."""
    return [_alive(overall), _late(overall), _failed(overall), _drain(overall), _keeping_up(overall)]


def _alive(overall: Overall) -> Answer:
    question, url = "Is the scheduler alive?", reverse("dashboard:workers")
    if overall.workers:
        detail = f"{plural(overall.workers, 'worker')} on {plural(overall.hosts, 'host')}"
        return Answer(question, "succeeded", "Yes", detail, url)
    waits = overall.overdue_since or any(pool["ready"] or pool["leased"] for pool in overall.pools)
    return Answer(question, "warning" if waits else "", "No", "no worker is alive", url)


def _no_job(overall: Overall) -> str:
    """Those of types that no worker may run stand in no line: they are named, and wait for no slot."""
    parked = standing.parked(overall.pools)
    return f"nothing but {plural(parked, 'parked job')}" if parked else "no job"


def _beside_it(overall: Overall) -> str:
    """Nobody knows since when these are ready."""
    parked = standing.parked(overall.pools)
    return f"; {count(parked)} {'is' if parked == 1 else 'are'} parked" if parked else ""


def _except_paused(overall: Overall) -> str:
    """Pools whose jobs wait for long because somebody wants it so."""
    held = [shortened(pool["name"], 24) for pool in overall.pools if waits_long(pool) and pause_of(pool)]
    more = f" and {plural(len(held) - 2, 'more pool')}" if len(held) > 2 else ""
    return f", except in {', '.join(held[:2])}{more} (paused)" if held else ""


def _late(overall: Overall) -> Answer:
    late = [pool for pool in overall.pools if is_late(pool)]
    question = "Is anything late?"
    if not late and overall.overdue_since:
        since = age((overall.now - overall.overdue_since).total_seconds())
        return Answer(question, "warning", since, "jobs are due, and no worker is alive", jobs_url(state="scheduled"))
    if not late:
        in_line = f"no job in line is ready for over {duration(standing.LATE_SECONDS)}"
        detail = f"{in_line}{_except_paused(overall)}{_beside_it(overall)}"
        return Answer(question, "succeeded", "Nothing", detail, jobs_url(state="ready"))
    worst = max(late, key=lambda pool: pool["oldest_ready_age_seconds"])
    detail = f"oldest in {shortened(worst['name'], 24)}" + (
        f", and {plural(len(late) - 1, 'more pool')}" if len(late) > 1 else ""
    )
    url = jobs_url(state="ready", pool=worst["name"])
    return Answer(question, "warning", age(worst["oldest_ready_age_seconds"]), detail, url)


def _failed(overall: Overall) -> Answer:
    dead, retrying, day = overall.count("dead"), overall.count("retry_wait") or 0, overall.day
    url = reverse("dashboard:dead")
    if day is None or dead is None:
        return Answer("What failed in 24 hours?", "", UNKNOWN, "nothing is known yet", url)
    in_all = f"{count(dead)} dead in all" if dead else "none is dead"
    waits = f", {count(retrying)} to be retried" if retrying else ""
    if day.release:
        question, died = "What failed since the deploy?", day.died_since
        detail = f"{shortened(day.release, 16)}; {in_all}"
    else:
        question, died, detail = "What failed in 24 hours?", day.died, in_all
    mark = "dead" if died else "succeeded"
    return Answer(question, mark, plural(died, "job") if died else "Nothing", detail + waits, url)


def _drain(overall: Overall) -> Answer:
    question, url = "When do the pools drain?", reverse("dashboard:pools")
    waiting = [pool for pool in overall.pools if has_waiting(pool)]
    if not waiting and overall.overdue_since:
        return Answer(question, "warning", "Never", "jobs are due, and no worker is alive", url)
    if not waiting:
        return Answer(question, "succeeded", "Now", f"{_no_job(overall)} is ready and waiting", url)
    stuck = [pool for pool in waiting if drains_in(pool) in ("never", "paused", "growing", "unknown")]
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
    """Over half a minute: whether as much is done as comes, where anything waits at all."""
    question, url = "Are we keeping up?", reverse("dashboard:charts")
    done = sum(pool["throughput_per_second"] or 0 for pool in overall.pools)
    new = sum(pool["enqueued_per_second"] or 0 for pool in overall.pools)
    detail = f"{rate(round(done, 1))}/s done, {rate(round(new, 1))}/s new"
    in_line = [pool for pool in overall.pools if has_waiting(pool)]
    waiting = [pool for pool in in_line if not pause_of(pool)]
    if not overall.known:
        return Answer(question, "", UNKNOWN, "nothing is known yet", url)
    if in_line and not waiting:
        return Answer(question, "", "Paused", detail, url)
    if overall.overdue_since and not waiting:
        return Answer(question, "warning", "No", "jobs are due, and no worker is alive", url)
    if not waiting or (done and done >= new) or all(drains_in(pool) == "now" for pool in waiting):
        ahead = f", by {rate(done - new)}/s" if waiting and done - new >= 0.5 else ""
        return Answer(question, "succeeded", f"Yes{ahead}", detail, url)
    if not done:
        late = any(is_late(pool) or unserved(pool) for pool in waiting)
        return Answer(question, "warning" if late else "succeeded", "No" if late else "Yes", detail, url)
    behind = new - done
    if behind < ALLOWED * new:
        return Answer(question, "succeeded", "Yes", detail, url)
    return Answer(question, "warning", f"No, by {rate(behind)}/s", detail, url)
