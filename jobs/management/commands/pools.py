"""``pools VERB``: the pools, what waits in them, and their switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from msgspec import UNSET

from jobs import api
from jobs.core.wording import did_you_mean
from jobs.management import durations
from jobs.management.arguments import Parser, Verbs, add_pause, not_negative, positive
from jobs.management.base import VerbCommand
from jobs.management.output import Output
from jobs.management.serving import POOLS, pool_rows, show_autoscale, show_pool


class Command(VerbCommand):
    help = "List and show pools, size them by hand or let a machine do it, limit, pause and resume them."
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
            help="Set the slots per worker process; running workers follow within a second.",
            examples="manage.py pools scale background 20",
        )
        _name(scale)
        scale.add_argument(
            "slots", type=not_negative, metavar="N", help="slots per worker process; 0 takes nothing from the pool"
        )
        limit = verbs.add(
            "limit",
            self.limit,
            help="Limit what runs at once on all hosts together, or what may wait.",
            examples="""
                manage.py pools limit media --max-running 5
                manage.py pools limit default --max-pending 100000
                manage.py pools limit media --max-running none
            """,
        )
        _name(limit)
        for option, words in (
            ("--max-running", "jobs at once, over all hosts; none: as many as there are slots"),
            ("--max-pending", "waiting jobs, beyond which new ones are refused; none: any number"),
        ):
            limit.add_argument(option, type=_number_or_none, default=UNSET, metavar="N|none", help=words)
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
        add_pause(pause)
        _name(verbs.add("resume", self.resume, help="End a pause.", examples="manage.py pools resume critical"))

        self._autoscale(
            verbs.add(
                "autoscale",
                self.autoscale,
                help="Let the slots follow how long jobs wait. Without options, show the rule and its last decisions.",
                examples="""
                    manage.py pools autoscale media --dry-run --min 2 --max 20 --target-wait 10s --tolerance 2s
                    manage.py pools autoscale media --on
                    manage.py pools autoscale media
                """,
            )
        )

    @staticmethod
    def _autoscale(parser: Parser) -> None:
        _name(parser)
        mode = parser.add_mutually_exclusive_group()
        for word, value, what in (
            ("--on", "on", "decisions are carried out"),
            ("--dry-run", "dry_run", "decisions are recorded and not carried out"),
            ("--off", "off", "the slots are as set by hand"),
        ):
            mode.add_argument(word, dest="mode", action="store_const", const=value, help=what)
        add = parser.add_argument
        add("--min", dest="min_slots", type=not_negative, metavar="N", help="never fewer slots per worker process")
        add("--max", dest="max_slots", type=positive, metavar="N", help="never more slots per worker process")
        for option, field, what in (
            ("--target-wait", "target_wait_seconds", "how long a job should wait: 500ms, 5s, 1m"),
            ("--tolerance", "tolerance_seconds", "off by no more than this, nothing is changed"),
            ("--cooldown", "cooldown_seconds", "at least so long between two changes"),
        ):
            add(option, dest=field, type=durations.seconds, metavar="SPAN", help=what)

    def show_list(self, output: Output, **_options: Any) -> None:
        pools = api.pools.list()
        if output.as_json:
            output.document({"items": [pool.as_dict() for pool in pools], "next_cursor": None})
        elif pools:
            output.table(POOLS, pool_rows(pools))
        else:
            output.hint("There is no pool yet: the first job or worker of a pool makes it.")

    def show(self, output: Output, *, name: str, **_options: Any) -> None:
        show_pool(output, api.pools.get(name), api.pools.settings(name))

    def scale(self, output: Output, *, name: str, slots: int, **_options: Any) -> None:
        with _told_if_new(output, name):
            show_pool(output, api.pools.scale(name, slots))

    def limit(
        self, output: Output, *, name: str, max_running: api.pools.Limit, max_pending: api.pools.Limit, **_options: Any
    ) -> None:
        with _told_if_new(output, name):
            show_pool(output, api.pools.limit(name, max_running=max_running, max_pending=max_pending))

    def autoscale(self, output: Output, *, name: str, mode: str | None, **options: Any) -> None:
        numbers = {field: options[field] for field in AUTOSCALE if options[field] is not None}
        if mode or numbers:
            with _told_if_new(output, name):
                api.pools.autoscale(name, mode=mode, **numbers)
        show_autoscale(output, name, api.pools.settings(name), api.pools.scalings(name))

    def pause(self, output: Output, *, name: str, reason: str, span: timedelta | None, **_options: Any) -> None:
        with output.progress("wait for what was handed out"):
            pool = api.pools.pause(name, reason=reason, until=span)
        show_pool(output, pool)

    def resume(self, output: Output, *, name: str, **_options: Any) -> None:
        show_pool(output, api.pools.resume(name))


@contextmanager
def _told_if_new(output: Output, name: str) -> Iterator[None]:
    """A pool may be sized before its first job; a name that was mistyped should not become one unnoticed."""
    known = [pool.name for pool in api.pools.list()]
    yield
    if name not in known:
        output.note(f"There was no pool {name!r}; now there is. {did_you_mean(name, known)}".rstrip())


AUTOSCALE = ("min_slots", "max_slots", "target_wait_seconds", "tolerance_seconds", "cooldown_seconds")


def _number_or_none(text: str) -> int | None:
    return None if text == "none" else not_negative(text)


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="POOL", help="name of the pool")
