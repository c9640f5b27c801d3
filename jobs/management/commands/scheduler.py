"""``scheduler VERB``: the whole system at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs import api
from jobs.core.states import JobState
from jobs.management.arguments import Verbs, add_pause
from jobs.management.base import VerbCommand
from jobs.management.output import Output
from jobs.management.serving import POOLS, pause_words, pool_rows


class Command(VerbCommand):
    help = "Show how the whole system stands, pause and resume all of it."
    examples = """
        manage.py scheduler status
        manage.py scheduler pause --reason "database move" --for 1h
        manage.py scheduler resume
    """

    def verbs(self, verbs: Verbs) -> None:
        verbs.add(
            "status",
            self.status,
            help="Show jobs by state, pools and workers.",
            examples="""
                manage.py scheduler status
                manage.py scheduler status --json | jq .states.dead
            """,
        )
        pause = verbs.add(
            "pause",
            self.pause,
            help="Start nothing more, in any pool. What runs goes on; a pause survives every restart.",
            examples="""
                manage.py scheduler pause --reason "database move"
                manage.py scheduler pause --for 30m
            """,
        )
        add_pause(pause)
        verbs.add(
            "resume",
            self.resume,
            help="End that pause. Pools and types that were paused by themselves stay so.",
            examples="manage.py scheduler resume",
        )

    def status(self, output: Output, **_options: Any) -> None:
        _show(output, api.scheduler.status())

    def pause(self, output: Output, *, reason: str, span: timedelta | None, **_options: Any) -> None:
        with output.progress("wait for what was handed out"):
            status = api.scheduler.pause(reason=reason, until=span)
        _show(output, status)

    def resume(self, output: Output, **_options: Any) -> None:
        _show(output, api.scheduler.resume())


def _show(output: Output, status: dict[str, Any]) -> None:
    if output.as_json:
        output.document(status)
        return
    output.facts(
        [
            ("state", pause_words(status["paused"]) or ("hosts paused" if _are_hosts_paused() else "on")),
            ("hosts", status["hosts"]),
            ("workers", status["workers"]),
            ("server time", status["server_time"]),
        ]
    )
    output.heading("Jobs")
    output.facts((state.value, status["states"].get(state.value, 0)) for state in JobState)
    output.heading("Pools")
    output.table(POOLS, pool_rows(api.pools.list()))


def _are_hosts_paused() -> bool:
    """Whether each worker host that is alive is paused on its own."""
    hosts = [worker for worker in api.workers.list() if worker.is_host and worker.alive]
    return bool(hosts) and all(host.paused for host in hosts)
