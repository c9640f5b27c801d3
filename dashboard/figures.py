"""The live figures: every number of the whole that stands on a page, by key, as the text that is shown.

Pages print them and the WebSocket sends those that changed; both come from here, so they cannot disagree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from django.utils import timezone

from dashboard import needs, questions, standing
from dashboard.formats import UNKNOWN, count, duration, plural, rate
from dashboard.overall import Overall
from jobs.core.states import JobState


@timezone.override(UTC)
def figures(overall: Overall) -> dict[str, str]:
    """Key → text, the same for every reader: whatever names a moment in them names it in UTC.

    Keys of pools are ``pool.NAME.WHAT`` (a name may hold dots; nothing takes keys apart).
    """
    found = _counts({f"states.{state}": overall.count(str(state)) for state in JobState})
    urgent = needs.needs(overall)
    answers = questions.answers(overall)
    found["headline"] = needs.headline(overall, urgent)
    found["summary"] = questions.summary(overall)
    for number, answer in enumerate(answers):
        found[f"answers.{number}.answer"] = answer.answer
        found[f"answers.{number}.detail"] = answer.detail
    found |= _node_figures(overall)
    found |= _counts({"dead.loud": overall.loud_dead if overall.known else None})
    busy, slots = 0, 0
    for pool in overall.pools:
        found |= _pool_figures(pool)
        busy, slots = busy + pool["leased"], slots + (pool["slots_actual"] or 0)
    unserved = sum(standing.unserved(pool) for pool in overall.pools)
    oldest = max((pool["oldest_ready_age_seconds"] or 0 for pool in overall.pools), default=0)
    found["pools.unserved"] = count(unserved)
    found["pools.busy"] = standing.busy_words(busy, slots)
    found["pools.slots"] = f"of {plural(slots, 'slot')}" if slots else "no slots"
    parked = standing.parked(overall.pools)
    found["pools.oldest"] = (
        f"oldest {duration(oldest)}" if oldest else f"{count(parked)} parked" if parked else "none waits"
    )
    found["schedules.late"] = count(len(overall.late)) if overall.known else UNKNOWN
    found["workers.count"] = f"{plural(overall.workers, 'worker')} on {plural(overall.hosts, 'host')}"
    found["trouble"] = trouble(overall, len(urgent))
    found["favicon"] = "dead" if overall.loud_dead else "warning" if urgent or overall.trouble else ""
    found["shape"] = _shape(overall, urgent, answers)
    return found


def version(found: dict[str, str]) -> str:
    """The same figures have the same version, in whichever process they were read."""
    return hashlib.blake2s(json.dumps(found, sort_keys=True).encode(), digest_size=8).hexdigest()


def _counts(numbers: Mapping[str, int | None]) -> dict[str, str]:
    """As people read them; those that are rounded also to the last one, under ``exact.`` and the same key."""
    found = {key: count(number) for key, number in numbers.items()}
    exact = {key: f"{number:,}" for key, number in numbers.items() if number is not None}
    return found | {f"exact.{key}": text for key, text in exact.items() if text != found[key]}


def _node_figures(overall: Overall) -> dict[str, str]:
    """Nodes have no job while they wait, nor when they were skipped: no count of jobs tells of them."""
    nodes = overall.nodes
    if nodes is None:
        return dict.fromkeys(("nodes.waiting", "nodes.skipped"), UNKNOWN) | {"nodes.runs": ""}
    more = "" if nodes.is_whole else "+"
    return {
        "nodes.waiting": f"{count(nodes.waiting)}{more}",
        "nodes.runs": f"in {count(nodes.runs)}{more} run{'' if nodes.runs == 1 else 's'}" if nodes.waiting else "",
        "nodes.skipped": f"{count(nodes.skipped)}{more}",
    }


def _pool_figures(pool: dict[str, Any]) -> dict[str, str]:
    name = pool["name"]
    oldest = pool["oldest_ready_age_seconds"]
    shown = {
        "oldest": duration(oldest) if oldest else "none",
        "slots": f"{count(pool['leased'])}/{count(pool['slots_actual'] or 0)}",
        "bar": f"{pool['leased']}/{max(1, pool['slots_actual'] or 0)}",
        "throughput": rate(pool["throughput_per_second"]),
        "new": rate(round(pool["enqueued_per_second"], 1)),  # one job now and then is no rate that pages need follow
        "drains": standing.drains_in(pool),
    }
    counted = ("ready", "scheduled", "retry_wait", "leased", "dead", "workers")
    counts = _counts({f"pool.{name}.{what}": pool[what] for what in counted})
    return counts | {f"pool.{name}.{what}": text for what, text in shown.items()}


def trouble(overall: Overall, urgent: int) -> str:
    """What a tab's title begins with: ``3 need you, 5,041 dead``; empty when all is well."""
    dead = overall.loud_dead
    words = []
    if overall.trouble:
        words.append("store unreachable")
    elif urgent:
        words.append(f"{urgent} need{'s' if urgent == 1 else ''} you")
    if dead:
        words.append(f"{count(dead)} dead")
    return ", ".join(words)


def _shape(overall: Overall, urgent: list[needs.Need], answers: list[questions.Answer]) -> str:
    """Changes when more than numbers changed: an open page then fetches its panel anew."""
    parts = [need.key for need in urgent]
    parts += [f"{answer.question} {answer.mark}" for answer in answers]
    parts += ["/".join((pool["name"], *standing.pool_state(pool))) for pool in overall.pools]
    parts += overall.late
    parts += [str(overall.hosts), str(overall.workers), overall.trouble]
    return hashlib.blake2s("\n".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
