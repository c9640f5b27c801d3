"""``workflows diff``: a run beside an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec

from jobs import api
from jobs.api.workflows import Comparison, RunFacts
from jobs.core.differences import Difference
from jobs.core.workflow import Beside
from jobs.management.arguments import Verbs
from jobs.management.output import Column, Output
from jobs.management.run_columns import state_word

NODES: tuple[Column[Beside], ...] = (
    Column("NODE", lambda node: node.key, elastic=True),
    Column("STATE", lambda node: node.state),
    Column("BEFORE", lambda node: node.state_before),
    Column("TOOK", lambda node: _span(node.seconds), right=True),
    Column("TOOK BEFORE", lambda node: _span(node.seconds_before), right=True),
    Column("USUAL", lambda node: _span(node.usual), right=True),
    Column("DIFFERENT", lambda node: "; ".join(different(node))),
)


def add_diff_verb(verbs: Verbs) -> None:
    """Adds it."""
    verb = verbs.add(
        "diff",
        diff,
        help="Show a run beside an earlier one: what was defined otherwise, how nodes ended, how long they took.",
        examples="""
            manage.py workflows diff RUN
            manage.py workflows diff RUN OTHER --all
            manage.py workflows diff RUN --json | jq -r '.nodes[] | select(.is_news) | .key'
        """,
    )
    verb.add_argument("run_id", metavar="RUN", help="id of the run")
    verb.add_argument("other", nargs="?", metavar="OTHER", help="id of another; without it the last that succeeded")
    verb.add_argument("--all", action="store_true", dest="is_whole", help="also nodes about which nothing is different")


def diff(output: Output, *, run_id: str, other: str | None, is_whole: bool, **_options: Any) -> None:
    found = api.workflows.compare(run_id, other)
    if output.as_json:
        output.document(found.as_dict())
        return
    output.facts([*_facts(found), *(("payload", _written(each)) for each in found.payload)])
    shown = found.nodes if is_whole else found.news
    if shown:
        output.line("")
        output.table(NODES, shown)
    hidden = len(found.nodes) - len(shown)
    if hidden:
        output.note(f"{hidden:,} node{' is' if hidden == 1 else 's are'} as before: --all shows everything.")


def _facts(found: Comparison) -> Iterator[tuple[str, object]]:
    for name, run in (("run", found.run), ("against", found.other)):
        yield name, f"{run.id}  {_described(run)}"
    yield "usual", f"of {found.usual_of} earlier run{'' if found.usual_of == 1 else 's'}"


def _described(run: RunFacts) -> str:
    version = "" if run.version is None else f", version {run.version}"
    seconds = "" if run.seconds is None else f", {run.seconds:.1f} s"
    return f"{run.name}{version}: {state_word(run)}{seconds}"


def different(node: Beside) -> Iterator[str]:
    """What is different about a node, in words."""
    if node.state_before is None:
        yield "new"
    elif node.state is None:
        yield "not there any more"
    elif node.state != node.state_before:
        yield "ended otherwise"
    if node.changed:
        yield f"changed: {', '.join(node.changed)}"
    if node.times is not None:
        yield f"{node.times:.2g} times the usual"


def _written(one: Difference) -> str:
    before, after = ("nothing" if value is msgspec.UNSET else json.dumps(value) for value in (one.before, one.after))
    return f"{one.path}: {before} → {after}"


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
