"""``types VERB``: the job types, and holding one of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from jobs import api
from jobs.management.arguments import Parser, Verbs, add_pause
from jobs.management.base import VerbCommand
from jobs.management.output import Output
from jobs.management.serving import TYPES, type_state


class Command(VerbCommand):
    help = "List job types, pause and resume them."
    examples = """
        manage.py types list
        manage.py types pause email.send --reason "wrong template" --for 1h
        manage.py types resume email.send
    """

    def verbs(self, verbs: Verbs) -> None:
        verbs.add(
            "list",
            self.show_list,
            help="List the job types that this process knows, or that are paused.",
            examples="""
                manage.py types list
                manage.py types list --json | jq '.items[] | select(.paused) | .name'
            """,
        )
        pause = verbs.add(
            "pause",
            self.pause,
            help="Start no more jobs of this type, in any pool. They are kept and wait.",
            examples="manage.py types pause email.send --reason 'wrong template'",
        )
        _name(pause)
        add_pause(pause)
        resume = verbs.add("resume", self.resume, help="End a pause.", examples="manage.py types resume email.send")
        _name(resume)

    def show_list(self, output: Output, **_options: Any) -> None:
        documents = [_document(name) for name in sorted(api.types.names())]
        if output.as_json:
            output.document({"items": documents, "next_cursor": None})
        elif documents:
            output.table(TYPES, documents)
        else:
            output.hint("This process knows no job type.")

    def pause(self, output: Output, *, name: str, reason: str, span: timedelta | None, **_options: Any) -> None:
        with output.progress("wait for what was handed out"):
            api.types.pause(name, reason=reason, until=span)
        _show(output, name)

    def resume(self, output: Output, *, name: str, **_options: Any) -> None:
        api.types.resume(name)
        _show(output, name)


def _show(output: Output, name: str) -> None:
    document = _document(name)
    if output.as_json:
        output.document(document)
    else:
        output.facts([("type", name), ("state", type_state(document))])


def _document(name: str) -> dict[str, Any]:
    pause = api.types.paused().get(name)
    known = api.job_types().get(name)
    return {
        "name": name,
        "pool": known.pool if known else None,
        "paused": msgspec.to_builtins(pause) if pause else None,
        "enabled": name not in api.types.disabled(),
    }


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="TYPE", help="name of the job type")
