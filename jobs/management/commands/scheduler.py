"""``scheduler VERB``: the whole system at once."""

from __future__ import annotations

from typing import Any

from jobs import api
from jobs.core.states import JobState
from jobs.management.arguments import Verbs
from jobs.management.base import VerbCommand
from jobs.management.columns import POOLS, pause_words
from jobs.management.output import Output


class Command(VerbCommand):
    help = "Show how the whole system stands."
    examples = """
        manage.py scheduler status
        manage.py scheduler status --json | jq .states.dead
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

    def status(self, output: Output, **_options: Any) -> None:
        status = api.scheduler.status()
        if output.as_json:
            output.document(status)
            return
        output.facts(
            [
                ("state", pause_words(status["paused"]) or "open"),
                ("hosts", status["hosts"]),
                ("workers", status["workers"]),
                ("server time", status["server_time"]),
            ]
        )
        output.heading("Jobs")
        output.facts((state.value, status["states"].get(state.value, 0)) for state in JobState)
        output.heading("Pools")
        output.table(POOLS, status["pools"])
