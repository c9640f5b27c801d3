"""Random graphs of workflows, and an oracle that says how each of their nodes must end."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from jobs.core.states import JobState
from jobs.core.workflow import Edge, Node, RunState

SUCCEEDED, DEAD, CANCELLED, SKIPPED = JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.SKIPPED
FAILURES = (DEAD, CANCELLED)


def random_nodes(random: Random, count: int) -> list[Node]:
    """A graph in a random order of writing, with every kind of edge and join."""
    nodes = []
    for number in range(count):
        fan_in = min(number, random.choice([0, 1, 1, 1, 2, 3, 8]))
        edges: dict[str, list[str]] = {}
        for parent in random.sample(range(number), fan_in):
            edges.setdefault(random.choice(["depends_on", "on_success", "on_failure", "on_complete"]), []).append(
                f"n{parent}"
            )
        join = random.choice(["all", "all", "any", random.randint(1, fan_in)]) if fan_in else "all"
        nodes.append(Node(key=f"n{number}", type="t", join=join, **{kind: tuple(keys) for kind, keys in edges.items()}))
    random.shuffle(nodes)
    return nodes


def wanted_of(node: Node) -> int:
    parents = len(list(node.edges()))
    return {"all": parents, "any": min(1, parents)}.get(node.join, node.join)  # type: ignore[call-overload]


def holds(edge: Edge, end: JobState) -> bool:
    if edge is Edge.SUCCESS:
        return end is SUCCEEDED
    return end in FAILURES if edge is Edge.FAILURE else True


def oracle(nodes: list[Node], outcomes: dict[str, JobState], forced: Collection[str] = ()) -> dict[str, JobState]:
    """How each node ends, worked out in topological order from what each would do if it ran.

    ``forced``: these count as succeeded, whatever their parents did.
    """
    fates: dict[str, JobState] = {}
    for each in sorted(nodes, key=lambda node: int(node.key[1:])):
        satisfied = sum(holds(edge, fates[parent]) for parent, edge in each.edges())
        fates[each.key] = outcomes[each.key] if satisfied >= wanted_of(each) else SKIPPED
        if each.key in forced:
            fates[each.key] = SUCCEEDED
    return fates


def verdict(nodes: list[Node], fates: dict[str, JobState]) -> RunState:
    covered = {
        parent
        for each in nodes
        if fates[each.key] is not SKIPPED
        for parent, edge in each.edges()
        if edge is not Edge.SUCCESS
    }
    uncovered = {fates[key] for key in fates if fates[key] in FAILURES and key not in covered}
    return RunState.FAILED if DEAD in uncovered else RunState.CANCELLED if uncovered else RunState.SUCCEEDED
