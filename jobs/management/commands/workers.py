"""``workers VERB``: the worker processes that are or were just now alive."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs import api
from jobs.api import Worker
from jobs.management.arguments import Parser, Verbs, add_pause
from jobs.management.base import VerbCommand
from jobs.management.output import Output
from jobs.management.serving import ENDED, WORKERS, show_worker


class Command(VerbCommand):
    help = "List and show workers, pause and resume a host, and ask them to drain or stop."
    examples = """
        manage.py workers list
        manage.py workers pause ID --reason "disk is full" --for 1h
        manage.py workers drain ID
    """

    def verbs(self, verbs: Verbs) -> None:
        listing = verbs.add(
            "list",
            self.show_list,
            help="List workers with what they serve and run.",
            examples="""
                manage.py workers list
                manage.py workers list --ended
                manage.py workers list --json | jq '.items[] | select(.alive | not)'
            """,
        )
        listing.add_argument(
            "--ended",
            action="store_true",
            help="list the hosts that ended in good order within the last hour, and why, instead",
        )
        _id(verbs.add("show", self.show, help="Show one worker and its jobs.", examples="manage.py workers show ID"))
        pause = verbs.add(
            "pause",
            self.pause,
            help="Let a host take no new jobs, from within a second on. What runs goes on; it ends with the host.",
            examples="""
                manage.py workers pause ID --reason "disk is full"
                manage.py workers pause ID --for 1h
            """,
        )
        _id(pause)
        add_pause(pause)
        _id(verbs.add("resume", self.resume, help="End the pause of a host.", examples="manage.py workers resume ID"))
        _id(
            verbs.add(
                "drain",
                self.drain,
                help="Let a worker finish what it runs, however long, take nothing new, and end.",
                examples="manage.py workers drain ID",
            )
        )
        _id(
            verbs.add(
                "stop",
                self.stop,
                help="Stop a worker as SIGTERM does: what runs has the grace time, the rest is handed back.",
                examples="manage.py workers stop ID",
            )
        )

    def show_list(self, output: Output, *, ended: bool, **_options: Any) -> None:
        if ended:
            self._show_ended(output)
            return
        workers = api.workers.list()
        if output.as_json:
            output.document({"items": [worker.as_dict() for worker in workers], "next_cursor": None})
        elif workers:
            output.table(WORKERS, workers)
        else:
            output.hint("No worker is running. Start one: manage.py runworkers")

    @staticmethod
    def _show_ended(output: Output) -> None:
        hosts = api.workers.ended()
        if output.as_json:
            output.document({"items": [host.as_dict() for host in hosts], "next_cursor": None})
        elif hosts:
            output.table(ENDED, hosts)
        else:
            output.hint("No host has ended in good order within the last hour.")

    def show(self, output: Output, *, id: str, **_options: Any) -> None:
        show_worker(output, api.workers.get(id))

    def pause(self, output: Output, *, id: str, reason: str, span: timedelta | None, **_options: Any) -> None:
        show_worker(output, api.workers.pause(id, reason=reason, until=span))

    def resume(self, output: Output, *, id: str, **_options: Any) -> None:
        show_worker(output, api.workers.resume(id))

    def drain(self, output: Output, *, id: str, **_options: Any) -> None:
        _asked(output, api.workers.drain(id), "drain")

    def stop(self, output: Output, *, id: str, **_options: Any) -> None:
        _asked(output, api.workers.stop(id), "stop")


def _id(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="id of the worker")


def _asked(output: Output, worker: Worker, command: str) -> None:
    if output.as_json:
        output.document(worker.as_dict() | {"command": command})
    else:
        output.row(worker.id, f"asked to {command}")
