"""Check K3: is there an order of one job's operations that the life of a job allows?

Each operation took effect at one instant between its invocation and its answer; one without an answer took effect at
any later instant or never. The search tries the orders that this permits and walks the automaton along them (Wing and
Gong's method). A job has a few dozen operations at most and they hardly overlap, so the search is short.

What the server does by itself – a due job becomes ready, a lease runs out – is not in any history, so the automaton may
take those steps at any time. Whether they came too early is for other checks (K5, K8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

WAITING, READY, LEASED = "waiting", "ready", "leased"
STOPPING = "stopping"
"""Leased, and asked to stop: whoever takes the lease back ends the job. The store calls it leased."""

ENDED = frozenset({"succeeded", "dead", "cancelled"})

State = tuple[str, str]  # name, token of the live lease or of the one that led here
ABSENT: State = ("absent", "")


@dataclass(frozen=True)
class Operation:
    """One action on one job. ``answer`` is the state it led to, "lost" or "refused", or "" when nobody knows."""

    name: str
    invoked: float
    answered: float  # infinity: no answer came
    token: str = ""
    answer: str = ""

    @property
    def optional(self) -> bool:
        """Nobody knows whether it happened."""
        return self.answered == inf


def explains(operations: Iterable[Operation], final: str | None) -> bool:
    """True when some order of the operations is a life of a job that ends in state ``final`` (None: do not care)."""
    ops = sorted(operations, key=lambda op: op.invoked)
    count = len(ops)
    everything = (1 << count) - 1
    obligatory = sum(1 << index for index, op in enumerate(ops) if not op.optional)
    seen: set[tuple[int, State]] = set()
    stack: list[tuple[int, State]] = [(0, ABSENT)]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        done, state = node
        if done & obligatory == obligatory and (final is None or final in _names(_reachable(state))):
            return True
        # An operation may come next if none that is still to come had been answered before it was invoked.
        horizon = min((op.answered for index, op in enumerate(ops) if not done >> index & 1), default=inf)
        for index in _bits(everything & ~done):
            op = ops[index]
            if op.invoked > horizon:
                break
            for before in _reachable(state):
                for after in _step(before, op):
                    stack.append((done | 1 << index, after))
    return False


def _bits(mask: int) -> Iterator[int]:
    index = 0
    while mask:
        if mask & 1:
            yield index
        mask >>= 1
        index += 1


def _reachable(state: State) -> set[State]:
    """``state`` and where the server may have taken the job by itself since."""
    name, token = state
    if name == WAITING:
        return {state, (READY, token), ("dead", "")}
    if name == READY:  # leased to someone who never heard of it, often enough to be buried
        return {state, ("dead", "")}
    if name == LEASED:  # the lease ran out: back in line, or a budget was spent
        return {state, (READY, ""), ("dead", "")}
    if name == STOPPING:  # the lease ran out
        return {state, ("cancelled", "")}
    return {state}


def _names(states: Iterable[State]) -> set[str]:
    """As the store calls them."""
    return {LEASED if name == STOPPING else name for name, _ in states}


def _step(state: State, op: Operation) -> Iterator[State]:
    """The states in which the job may be after ``op`` gave its answer in ``state``; none if it could not have."""
    name, token = state
    match op.name:
        case "enqueue":
            if name == "absent" and op.answer not in {"refused", "existing"}:
                yield (WAITING, "")
                yield (READY, "")
            if op.answer == "refused" or op.optional or (op.answer == "existing" and name != "absent"):
                yield state
        case "claim":
            if name == READY:
                yield (LEASED, op.token)
            elif op.optional or (
                name in {LEASED, STOPPING} and token == op.token
            ):  # a request sent again finds what it got
                yield state
        case "complete" | "fail" | "release" | "crash" | "park":
            yield from _ending(state, op)
        case "cancel":
            if op.answer == "cancelled" and name in {WAITING, READY, "cancelled"}:
                yield ("cancelled", "")
            elif op.answer in {LEASED, "refused", ""}:
                if name in {READY, LEASED} and op.answer != "refused":  # ready: leased to someone who never heard of it
                    yield (STOPPING, token)
                if name != LEASED or op.answer != LEASED:
                    yield state
                if op.optional and name in {WAITING, READY}:
                    yield ("cancelled", "")
        case "resubmit":
            if name in {"dead", "cancelled"} and op.answer != "refused":
                yield (READY, "")
            elif op.answer == "refused" or op.optional:
                yield state
        case _:
            raise ValueError(f"no such operation: {op.name}")


def _ending(state: State, op: Operation) -> Iterator[State]:
    """A worker gives its lease back in one of the ways there are. Only the token of the live lease may do so."""
    name, token = state
    holds = name in {LEASED, STOPPING} and token == op.token
    if op.answer == "lost":
        if not holds:
            yield state
        elif op.name != "complete":  # it was done, that answer was lost, and the store asked again for nothing
            for after in _after(op.name):
                yield (after, token)
        return
    if op.optional:
        yield state
        if holds:
            for after in _after(op.name):
                yield (after, token)
        return
    after = {"ok": "succeeded", "scheduled": WAITING, "retry_wait": WAITING}.get(op.answer, op.answer)
    if holds:
        yield (after, token)
    elif token == op.token and name in {after, READY if after == WAITING else after}:
        yield state  # the first answer was lost, and the same message sent again finds what it did


def _after(name: str) -> tuple[str, ...]:
    return {
        "complete": ("succeeded", "cancelled"),
        "fail": (WAITING, "dead", "cancelled"),
        "release": (READY, "cancelled"),
        "crash": (READY, "dead", "cancelled"),
        "park": (READY, "cancelled"),
    }[name]
