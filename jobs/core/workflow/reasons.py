"""Why a node of a run waits, or never ran: from how its parents stand, in one sentence for pages and commands."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow.definition import Edge
from jobs.core.workflow.drawing import listed
from jobs.core.workflow.graph import Graph
from jobs.core.workflow.run import HOLDS

WORDS = {
    JobState.LEASED: "running",
    JobState.READY: "under way",
    JobState.RETRY_WAIT: "waits for a retry",
    JobState.BLOCKED: "waits itself",
}
"""State → what is said of a parent in it, where that is another word."""

_WISH = {Edge.SUCCESS: "", Edge.FAILURE: " to fail", Edge.COMPLETE: " to end"}
_ONLY = {Edge.SUCCESS: "after its success", Edge.FAILURE: "after its failure", Edge.COMPLETE: "after its end"}


def why_waiting(graph: Graph, states: Mapping[str, JobState], key: str) -> str:
    """``Waits for load (running) and clean (scheduled).``

    ``states``: how each node stands; one that is missing has not been released.
    """
    parents = graph.parents[key]
    open_ = {parent: kind for parent, kind in parents.items() if _state(states, parent) not in TERMINAL}
    if not open_:
        return "Is about to be released." if parents else "Waits for the run to begin."
    missing = graph.wanted(key) - sum(_state(states, parent) in HOLDS[kind] for parent, kind in parents.items())
    word = "and" if missing >= len(open_) else "or"
    number = f"{missing} of " if 1 < missing < len(open_) else ""
    phrases = [
        listed([f"{parent} ({_word(states, parent)})" for parent, of in open_.items() if of is kind], word)
        + _WISH[kind]
        for kind in Edge
        if kind in open_.values()
    ]
    return f"Waits for {number}{f' {word} '.join(phrases)}."


def why_skipped(graph: Graph, states: Mapping[str, JobState], key: str) -> str:
    """``load is dead, and it runs only after its success.``"""
    parents = graph.parents[key]
    broken = {
        parent: kind
        for parent, kind in parents.items()
        if (state := _state(states, parent)) in TERMINAL and state not in HOLDS[kind]
    }
    if not broken:
        return "Its condition could no longer hold."
    kinds = set(broken.values())
    wanted = graph.wanted(key)
    of = (
        ""
        if wanted == len(parents)
        else f" of {wanted} of its {len(parents)} parents"
        if wanted > 1
        else " of a parent"
    )
    if len(kinds) > 1:
        return f"{_are(states, list(broken))}, which is not what it waits for."
    only = _ONLY[kinds.pop()].replace("its", "the" if of else "their" if len(broken) > 1 else "its")
    return f"{_are(states, list(broken))}, and it runs only {only}{of}."


def _are(states: Mapping[str, JobState], parents: list[str]) -> str:
    """``load is dead``, ``a and b succeeded``."""
    found = {_state(states, parent) for parent in parents}
    names = listed(parents, "and")
    verb = "are" if len(parents) > 1 else "is"
    if len(found) > 1:
        return f"{names} ended otherwise"
    state = found.pop()
    return f"{names} {state}" if state is JobState.SUCCEEDED else f"{names} {verb} {state}"


def _state(states: Mapping[str, JobState], key: str) -> JobState:
    return states.get(key, JobState.BLOCKED)


def _word(states: Mapping[str, JobState], key: str) -> str:
    state = _state(states, key)
    return WORDS.get(state, str(state))
