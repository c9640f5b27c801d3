"""``schedules VERB``: what a cron expression would do."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobs import api
from jobs.core.schedule import Firing
from jobs.management.arguments import MAX_LIMIT, Verbs, positive
from jobs.management.base import VerbCommand
from jobs.management.durations import moment
from jobs.management.output import Column, Output

FIRINGS: tuple[Column[Firing], ...] = (
    Column("LOCAL", lambda firing: firing.as_dict()["local"]),
    Column("UTC", lambda firing: firing.as_dict()["utc"]),
    Column("WEEKDAY", lambda firing: f"{firing.local:%a}"),
)


class Command(VerbCommand):
    help = "See when cron expressions fire."
    examples = """
        manage.py schedules preview '30 2 * * MON-FRI'
        manage.py schedules preview '@daily' --timezone America/New_York --count 10
    """

    def verbs(self, verbs: Verbs) -> None:
        preview = verbs.add(
            "preview",
            self.preview,
            help="Show the next firings of a cron expression, in words too. Needs no server.",
            examples="""
                manage.py schedules preview '30 2 * * MON-FRI'
                manage.py schedules preview '0 0 12 L * *' --timezone Europe/Paris --from 2026-03-01
                manage.py schedules preview 'H 3 * * *' --name nightly --json | jq -r '.items[].utc'
            """,
        )
        preview.add_argument("expression", metavar="EXPR", help="five fields, or six with seconds first; in quotes")
        preview.add_argument("--timezone", metavar="TZ", help="IANA name of the time zone (default TIME_ZONE)")
        preview.add_argument("--count", type=positive, default=5, metavar="N", help="how many firings (default 5)")
        preview.add_argument(
            "--from", dest="start", type=moment, metavar="ISO", help="firings after this moment (default now)"
        )
        preview.add_argument(
            "--name", default="", metavar="NAME", help="name of the schedule: H in the expression draws from it"
        )

    def preview(
        self,
        output: Output,
        expression: str,
        timezone: str | None,
        count: int,
        start: datetime | None,
        name: str,
        **_options: Any,
    ) -> None:
        preview = api.schedules.preview(expression, timezone, min(count, MAX_LIMIT), start, name=name)
        if output.as_json:
            output.document(preview.as_dict())
            return
        output.facts(
            [("expression", preview.expression), ("time zone", preview.timezone), ("means", preview.description)]
        )
        output.heading("Next firings")
        output.table(FIRINGS, preview.items)
        for warning in preview.warnings:
            output.note(f"Warning: {warning}")
