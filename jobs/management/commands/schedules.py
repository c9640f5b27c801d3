"""``schedules VERB``: stored schedules, what they did and will do, and what a cron expression would do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from jobs import api
from jobs.api.schedules import BackfillProgress, Imported, ScheduleStatus
from jobs.core.schedule import Firing
from jobs.management import durations
from jobs.management.arguments import MAX_LIMIT, REVEALED, Parser, Verbs, positive
from jobs.management.base import VerbCommand
from jobs.management.durations import moment
from jobs.management.errors import CommandFailed, Exit, usage
from jobs.management.output import Column, Output
from jobs.management.schedule_columns import CHANGES, FIRED, MINUTES, SCHEDULES, Shown, facts_of

FIRINGS: tuple[Column[Firing], ...] = (
    Column("LOCAL", lambda firing: firing.as_dict()["local"]),
    Column("UTC", lambda firing: firing.as_dict()["utc"]),
    Column("WEEKDAY", lambda firing: f"{firing.local:%a}"),
)
LARGEST_FILE = 50_000_000


class Command(VerbCommand):
    help = "List and show schedules, act on them, and see when cron expressions fire."
    examples = """
        manage.py schedules list
        manage.py schedules show nightly
        manage.py schedules backfill nightly --from 2026-03-01 --to 2026-03-08 --dry-run
        manage.py schedules preview '30 2 * * MON-FRI'
    """

    def verbs(self, verbs: Verbs) -> None:
        self._looking(verbs)
        self._acting(verbs)
        self._files(verbs)
        self._previewing(verbs)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _looking(self, verbs: Verbs) -> None:
        listing = verbs.add(
            "list",
            self.show_list,
            help="List schedules with their next and last firing.",
            examples="""
                manage.py schedules list
                manage.py schedules list --late
                manage.py schedules list --json | jq -r '.items[] | select(.error != "") | .name'
            """,
        )
        listing.add_argument("--late", action="store_true", help="only those that should have fired and did not")
        showing = verbs.add(
            "show",
            self.show,
            help="Show one schedule: its definition, its next and last firings, its history.",
            examples="manage.py schedules show nightly",
        )
        _name(showing)
        showing.add_argument("--count", type=positive, default=5, metavar="N", help="firings to come (default 5)")
        forecast = verbs.add(
            "forecast",
            self.forecast,
            help="Show what will fire, minute by minute, and which minutes are crowded.",
            examples="""
                manage.py schedules forecast
                manage.py schedules forecast --hours 6 --crowded
            """,
        )
        forecast.add_argument("--hours", type=positive, default=24, metavar="N", help="how far ahead (default 24)")
        forecast.add_argument("--crowded", action="store_true", help="only minutes that are too much")

    def show_list(self, output: Output, *, late: bool, **_options: Any) -> None:
        rows = api.schedules.list()
        stands = api.schedules.status([row.name for row in rows], firings=1)
        shown = [Shown(row, stands.get(row.name, ScheduleStatus(name=row.name))) for row in rows]
        shown = [one for one in shown if one.status.late_seconds is not None or not late]
        if output.as_json:
            output.document({"items": [one.as_dict() for one in shown], "next_cursor": None})
        elif shown:
            output.table(SCHEDULES, shown)
            self._warn_of_late(output, shown)
        else:
            output.hint(
                "No schedule is late." if late else "There is no schedule yet: make one in the admin or in code."
            )

    @staticmethod
    def _warn_of_late(output: Output, shown: list[Shown]) -> None:
        late = [one for one in shown if one.status.late_seconds is not None]
        if late:
            output.note(f"Warning: {len(late):,} of {len(shown):,} are late: {late[0].status.late_why}.")

    def show(self, output: Output, *, name: str, count: int, **_options: Any) -> None:
        if output.as_json:
            output.document(api.schedules.shown_document(name, count))
            return
        row = api.schedules.get(name)
        stands = api.schedules.status([name])[name]
        coming = api.schedules.coming(name, count)
        output.facts(facts_of(row, stands))
        if coming:
            output.heading("Next firings")
            output.table((Column[datetime]("UTC", lambda at: at),), [*coming])
        if stands.firings:
            output.heading("Last firings")
            output.table(FIRED, stands.firings)
        output.heading("History")
        output.table(CHANGES, api.schedules.changes(name))

    def forecast(self, output: Output, *, hours: int, crowded: bool, **_options: Any) -> None:
        with output.progress("forecast"):
            forecast = api.schedules.forecast(hours=hours)
        items = forecast.crowded if crowded else forecast.minutes
        if output.as_json:
            output.document({**forecast.as_dict(), "items": [item.as_dict() for item in items]})
            return
        if items:
            output.table(MINUTES, items)
        else:
            output.hint("No minute is crowded." if crowded else "Nothing will fire.")
        output.note(f"{forecast.total:,} firings in {hours} hours; crowded minutes: {len(forecast.crowded):,}.")

    # --- acting -------------------------------------------------------------------------------------------------------

    def _acting(self, verbs: Verbs) -> None:
        running = verbs.add(
            "run",
            self.run_now,
            help="Make a job of it now. Its rhythm does not move.",
            examples="manage.py schedules run nightly",
        )
        _name(running)
        pausing = verbs.add(
            "pause",
            self.pause,
            help="Record its firings as skipped from now on; they are never made up.",
            examples='manage.py schedules pause nightly --reason "stocktaking"',
        )
        _name(pausing)
        pausing.add_argument("--reason", default="", metavar="TEXT", help="why; shown wherever the schedule is")
        resuming = verbs.add("resume", self.resume, help="End a pause.", examples="manage.py schedules resume nightly")
        _name(resuming)
        backfill = verbs.add(
            "backfill",
            self.backfill,
            help="Make the jobs of all firings between two moments that have none.",
            examples="""
                manage.py schedules backfill nightly --from 2026-03-01 --to 2026-03-08 --dry-run
                manage.py schedules backfill nightly --from 2026-03-01 --to 2026-03-08 --rate 2/s --yes
            """,
        )
        _name(backfill)
        backfill.add_argument(
            "--from", dest="start", type=moment, required=True, metavar="ISO", help="from this moment"
        )
        backfill.add_argument("--to", dest="end", type=moment, required=True, metavar="ISO", help="up to here")
        backfill.add_argument("--rate", type=durations.rate, metavar="N/s", help="no faster than this: 10/s, 90/m")
        backfill.add_argument("--yes", action="store_true", help="do not ask")
        backfill.add_argument("--dry-run", action="store_true", help="only say how many; make none")

    def run_now(self, output: Output, *, name: str, **_options: Any) -> None:
        handle = api.schedules.run(name)
        if output.as_json:
            output.document(handle.as_dict())
        else:
            output.row(handle.id, handle.state)

    def pause(self, output: Output, *, name: str, reason: str, **_options: Any) -> None:
        api.schedules.pause(name, reason=reason)
        self._show_state(output, name)

    def resume(self, output: Output, *, name: str, **_options: Any) -> None:
        api.schedules.resume(name)
        self._show_state(output, name)

    @staticmethod
    def _show_state(output: Output, name: str) -> None:
        row = api.schedules.get(name)
        if output.as_json:
            output.document(api.schedules.shown_fields(row.as_dict()))
        else:
            output.row(name, api.schedules.state_word(row, None))

    def backfill(
        self,
        output: Output,
        *,
        name: str,
        start: datetime,
        end: datetime,
        rate: float | None,
        yes: bool,
        dry_run: bool,
        **_options: Any,
    ) -> None:
        with output.progress("count"):
            count = api.schedules.backfill_count(name, start, end)
        if dry_run:
            if output.as_json:
                output.document({"dry_run": True, "count": count})
            else:
                output.line(f"Would make up to {_jobs(count)}.")
            return
        _confirm(output, f"Make up to {_jobs(count)} of {name}?", yes=yes)
        ended = BackfillProgress(0, 0, count)
        with output.progress("backfill", count) as step:
            for ended in api.schedules.backfill(name, start, end, rate=rate):
                step(ended.made + ended.there)
        if output.as_json:
            output.document({"count": ended.total, "made": ended.made, "there": ended.there})
        else:
            there = f"; {ended.there:,} were there already" if ended.there else ""
            output.line(f"Made {_jobs(ended.made)}{there}.")

    # --- files --------------------------------------------------------------------------------------------------------

    def _files(self, verbs: Verbs) -> None:
        exporting = verbs.add(
            "export",
            self.export,
            help="Write definitions as JSON to standard output.",
            examples="""
                manage.py schedules export > schedules.json
                manage.py schedules export nightly weekly
            """,
        )
        exporting.add_argument("names", nargs="*", metavar="NAME", help="only these schedules")
        importing = verbs.add(
            "import",
            self.import_,
            help="Create and change schedules as a file says; all of it is checked before the first is stored.",
            examples="""
                manage.py schedules import schedules.json --dry-run
                manage.py schedules import schedules.json
            """,
        )
        importing.add_argument("file", metavar="FILE", help="what export wrote; - is standard input")
        importing.add_argument("--dry-run", action="store_true", help="only check, and say what would change")

    def export(self, output: Output, *, names: list[str], **_options: Any) -> None:
        items = api.schedules.export(names or None)
        if any(api.schedules.shown_fields(item) != item for item in items):
            output.note(REVEALED)
        text = json.dumps({"schedules": items}, indent=2, ensure_ascii=True, allow_nan=False)
        if output.as_json:
            output.document({"schedules": list(items)})
        else:
            output.text(text)

    def import_(self, output: Output, *, file: str, dry_run: bool, **_options: Any) -> None:
        done = api.schedules.import_(_read(file), dry_run=dry_run)
        if output.as_json:
            output.document({"dry_run": dry_run, **done._asdict()})
            return
        for name, outcome in _outcomes(done):
            output.row(name, outcome)

    # --- previewing ---------------------------------------------------------------------------------------------------

    def _previewing(self, verbs: Verbs) -> None:
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


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the schedule")


def _confirm(output: Output, question: str, *, yes: bool) -> None:
    if yes:
        return
    if not output.can_ask:
        raise usage(
            "A backfill makes many jobs and nobody is here to confirm it.",
            fix="Look with --dry-run first, then give --yes.",
        )
    if output.ask(f"{question} [y/N]").lower() not in {"y", "yes"}:
        raise CommandFailed("Nothing was made", exit=Exit.FAILED, code="not_confirmed")


def _read(file: str) -> list[dict[str, Any]]:
    try:
        raw = sys.stdin.buffer.read(LARGEST_FILE + 1) if file == "-" else Path(file).read_bytes()[: LARGEST_FILE + 1]
        if len(raw) > LARGEST_FILE:
            raise usage(f"The file {file!r} is larger than {LARGEST_FILE:,} bytes.", fix="Split it.")
        found = json.loads(raw)
    except (OSError, ValueError) as error:  # covers wrong JSON and bytes that are not UTF-8
        reason = getattr(error, "strerror", None) or error
        raise usage(
            f"The file {file!r} cannot be read: {reason}.", fix="Give what 'schedules export' wrote."
        ) from error
    items = found.get("schedules") if isinstance(found, dict) else found
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise usage(f"The file {file!r} holds no list of schedules.", fix='Write {"schedules": [{…}, …]}.')
    return items


def _outcomes(done: Imported) -> Iterator[tuple[str, str]]:
    words = {"skipped": "skipped: the code declares it"}
    for outcome, names in done._asdict().items():
        yield from ((name, words.get(outcome, outcome)) for name in names)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
