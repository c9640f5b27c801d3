"""The verbs of ``workflows`` that are about stored definitions: the list, versions, files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobs import api
from jobs.api.workflows import DefinitionView, VersionView
from jobs.exceptions import WorkflowInvalid
from jobs.management.arguments import REVEALED, Parser, Verbs, positive, read_input
from jobs.management.errors import usage
from jobs.management.output import Column, Output

DEFINITIONS: tuple[Column[DefinitionView], ...] = (
    Column("NAME", lambda one: one.name),
    Column("VERSION", lambda one: one.version, right=True),
    Column("NODES", lambda one: one.nodes, right=True),
    Column("RUNS", lambda one: one.totals.ended, right=True),
    Column("SUCCEEDED", lambda one: _share(one.totals.success_rate), right=True),
    Column("MEDIAN", lambda one: one.totals.median, right=True),
    Column("LAST", lambda one: one.last[0].state if one.last else None),
    Column("CHANGED", lambda one: one.changed_at),
    Column("DESCRIPTION", lambda one: one.description, elastic=True),
)
VERSIONS: tuple[Column[VersionView], ...] = (
    Column("VERSION", lambda version: version.number, right=True),
    Column("AT", lambda version: version.at),
    Column("BY", lambda version: version.by),
    Column("NODES", lambda version: version.nodes, right=True),
    Column("CHANGES", lambda version: _changes(version), elastic=True),
)


def add_definition_verbs(verbs: Verbs) -> None:
    """Adds all of them."""
    listing = verbs.add(
        "definitions",
        show_list,
        help="List workflows with how their runs went in the last days.",
        examples="manage.py workflows definitions --days 7",
    )
    listing.add_argument("--days", type=positive, default=30, metavar="N", help="runs that ended since (default 30)")
    versions = verbs.add(
        "versions",
        show_versions,
        help="Show what a stored workflow has been, newest first.",
        examples="manage.py workflows versions nightly",
    )
    _name(versions)
    restoring = verbs.add(
        "restore",
        restore,
        help="Make a stored workflow what it was in a version; that is a new version.",
        examples="manage.py workflows restore nightly 3",
    )
    _name(restoring)
    restoring.add_argument("version", type=positive, metavar="VERSION", help="number of the version")
    deleting = verbs.add(
        "delete",
        delete,
        help="Remove a stored workflow. Its runs go on, its versions are kept.",
        examples="manage.py workflows delete nightly",
    )
    _name(deleting)
    _files(verbs)


def _files(verbs: Verbs) -> None:
    exporting = verbs.add(
        "export",
        export,
        help="Write stored workflows as JSON to standard output; of one name, what `validate --file` reads.",
        examples="""
            manage.py workflows export nightly > nightly.json
            manage.py workflows export > workflows.json
        """,
    )
    exporting.add_argument("names", nargs="*", metavar="NAME", help="only these workflows")
    importing = verbs.add(
        "import",
        import_,
        help="Store workflows as a file says; all of it is checked before the first is stored.",
        examples="""
            manage.py workflows import nightly.json
            manage.py workflows import workflows.json --dry-run
        """,
    )
    importing.add_argument("file", metavar="FILE", help="one workflow, or what export wrote; - = standard input")
    importing.add_argument("--dry-run", action="store_true", help="only check, and say what would change")


def show_list(output: Output, *, days: int, **_options: Any) -> None:
    found = api.workflows.definitions(days=days)
    if output.as_json:
        output.document({"items": [one.as_dict() for one in found], "next_cursor": None})
    elif found:
        output.table(DEFINITIONS, found)
    else:
        output.hint("No workflow is stored, and none has run: see 'workflows import'.")


def show_versions(output: Output, *, name: str, **_options: Any) -> None:
    found = api.workflows.versions(name)
    if not found:
        api.workflows.definition(name)  # says what there is, where there is none of the name
    if output.as_json:
        output.document({"items": [version.as_dict() for version in found], "next_cursor": None})
    else:
        output.table(VERSIONS, found)


def restore(output: Output, *, name: str, version: int, **_options: Any) -> None:
    made = api.workflows.restore(name, version)
    if output.as_json:
        output.document(made.as_dict())
    else:
        output.row(made.name, f"version {made.version}")


def delete(output: Output, *, name: str, **_options: Any) -> None:
    api.workflows.forget(name)
    if output.as_json:
        output.document({"name": name, "deleted": True})
    else:
        output.row(name, "deleted")


def export(output: Output, *, names: list[str], **_options: Any) -> None:
    found = api.workflows.export(names or None)
    if any(_hides(node) for one in found for node in one["nodes"]):
        output.note(REVEALED)
    document: Any = found[0] if len(names) == 1 else {"workflows": [*found]}
    if output.as_json:
        output.document(document)
    else:
        output.text(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))


def _hides(node: Mapping[str, Any]) -> bool:
    payload = node.get("payload")
    return bool(api.shown_value(node.get("type", ""), payload) != payload)


def import_(output: Output, *, file: str, dry_run: bool, **_options: Any) -> None:
    done = api.workflows.import_(_documents(read_input(file, "workflow")), dry_run=dry_run)
    if output.as_json:
        output.document({"dry_run": dry_run, **done._asdict()})
        return
    for outcome, names in done._asdict().items():
        for name in names:
            output.row(name, outcome)


def _documents(raw: bytes) -> list[Mapping[str, Any]]:
    """The workflows of a file: one, or several as export writes them."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise WorkflowInvalid(f"This is no JSON: {error}", fix="See 'workflows export'.") from None
    if isinstance(found, dict) and isinstance(found.get("workflows"), list):
        found = found["workflows"]
    elif isinstance(found, dict):
        found = [found]
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise usage("The file holds no workflows.", fix='Write one, or {"workflows": […]}.')
    return found


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the stored workflow")


def _share(rate: float | None) -> str | None:
    return None if rate is None else f"{rate:.0%}"


def _changes(version: VersionView) -> str | None:
    parts = (("+", version.added), ("-", version.removed), ("~", version.changed))
    return " ".join(f"{sign}{key}" for sign, keys in parts for key in keys[:20]) or None
