"""``pools VERB``: the pools, what waits in them, and their switches."""

from __future__ import annotations

import getpass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs import api
from jobs.management import durations
from jobs.management.arguments import Parser, Verbs, not_negative
from jobs.management.base import VerbCommand
from jobs.management.columns import POOLS, show_pool
from jobs.management.output import Output


class Command(VerbCommand):
    help = "List and show pools, change their slots, pause and resume them."
    examples = """
        manage.py pools list
        manage.py pools pause critical --reason "mail provider is down" --for 1h
        manage.py pools scale background 20
    """

    def verbs(self, verbs: Verbs) -> None:
        verbs.add(
            "list",
            self.show_list,
            help="List pools with what waits and runs in them.",
            examples="""
                manage.py pools list
                manage.py pools list --json | jq '.items[] | select(.ready > 1000) | .name'
            """,
        )
        _name(verbs.add("show", self.show, help="Show one pool.", examples="manage.py pools show default"))
        scale = verbs.add(
            "scale",
            self.scale,
            help="Set the slots per worker process; running workers follow within seconds.",
            examples="manage.py pools scale background 20",
        )
        _name(scale)
        scale.add_argument(
            "slots", type=not_negative, metavar="N", help="slots per worker process; 0 takes nothing from the pool"
        )
        pause = verbs.add(
            "pause",
            self.pause,
            help="Start nothing more from this pool. What runs goes on; a pause survives every restart.",
            examples="""
                manage.py pools pause critical --reason "mail provider is down"
                manage.py pools pause media --for 1h
            """,
        )
        _name(pause)
        pause.add_argument("--reason", default="", metavar="TEXT", help="why; shown wherever the pool is")
        pause.add_argument(
            "--for", dest="span", type=durations.duration, metavar="SPAN", help="resume by itself after: 30m, 1h"
        )
        _name(verbs.add("resume", self.resume, help="End a pause.", examples="manage.py pools resume critical"))

    def show_list(self, output: Output, **_options: Any) -> None:
        documents = [pool.as_dict() for pool in api.pools.list()]
        if output.as_json:
            output.document({"items": documents, "next_cursor": None})
        elif documents:
            output.table(POOLS, documents)
        else:
            output.hint("There is no pool yet: the first job or worker of a pool makes it.")

    def show(self, output: Output, *, name: str, **_options: Any) -> None:
        show_pool(output, api.pools.get(name))

    def scale(self, output: Output, *, name: str, slots: int, **_options: Any) -> None:
        show_pool(output, api.pools.scale(name, slots))

    def pause(self, output: Output, *, name: str, reason: str, span: timedelta | None, **_options: Any) -> None:
        until = None if span is None else timezone.now() + span
        show_pool(output, api.pools.pause(name, by=operator(), reason=reason, until=until))

    def resume(self, output: Output, *, name: str, **_options: Any) -> None:
        show_pool(output, api.pools.resume(name))


def operator() -> str:
    """Who stands behind a command, for the pause that others will see."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return "command line"


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="POOL", help="name of the pool")
