"""``jobs VERB``: looks at jobs and acts on single ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from jobs import api
from jobs.api import LogPage, Reason
from jobs.core.job import Job
from jobs.core.states import LIVE
from jobs.management import durations
from jobs.management.arguments import (
    Verbs,
    add_bulk,
    add_filters,
    add_ids,
    add_page,
    add_reveal,
    is_filtered,
    job_filter,
)
from jobs.management.base import VerbCommand
from jobs.management.columns import JOBS, job_dict, show_job, show_logs, show_page
from jobs.management.errors import usage
from jobs.management.output import Output
from jobs.management.selection import (
    act_on,
    chosen_jobs,
    confirmed,
    dry_run,
    for_each,
    in_background,
    on_all,
    remove,
    report,
    whole_page,
    work_through,
)
from jobs.management.tailing import ends_quietly, tail_all, tail_one
from jobs.management.waiting import ended_badly, wait_for


class Command(VerbCommand):
    help = "List, show, follow, cancel, retry, run now, move, prioritize, delete and wait for jobs."
    examples = """
        manage.py jobs list --state dead --pool critical --since 2h
        manage.py jobs show ID
        manage.py jobs cancel ID ID ID
    """

    def verbs(self, verbs: Verbs) -> None:
        listing = verbs.add(
            "list",
            self.show_list,
            help="List jobs: live ones in the order in which they run, then ended ones, newest first.",
            examples="""
                manage.py jobs list
                manage.py jobs list --state retry_wait --state dead --type email.send
                manage.py jobs list --tag nightly --since 7d --limit 1000 --json
            """,
        )
        add_filters(listing)
        add_page(listing)
        showing = verbs.add(
            "show",
            self.show,
            help="Show everything about a job: payload, attempts, error, result, and why it does not run.",
            examples="""
                manage.py jobs show ID
                manage.py jobs show ID --json | jq .error.message
            """,
        )
        add_ids(showing)
        add_reveal(showing)
        showing.add_argument("--logs", action="store_true", help="also what its attempts have logged through ctx.log")
        add_bulk(
            verbs.add(
                "cancel",
                self.cancel,
                help="Cancel jobs. A waiting job ends at once; a running one is asked to stop.",
                examples="""
                    manage.py jobs cancel ID ID
                    manage.py jobs cancel --all --type report.build --state ready --dry-run
                    manage.py jobs cancel --all --tag nightly --yes
                """,
            ),
            "every job that has not ended and matches the filters",
        )
        add_ids(
            verbs.add(
                "retry",
                self.retry,
                help="Retry now: ends the wait of a failed job, resubmits a dead or cancelled one.",
                examples="manage.py jobs retry ID",
            )
        )
        add_ids(
            verbs.add(
                "run-now",
                self.run_now,
                help="Let jobs that wait for their time start now.",
                examples="manage.py jobs run-now ID",
            )
        )
        moving = verbs.add(
            "move",
            self.move,
            help="Move waiting jobs to another pool. Each goes on there under a new id.",
            examples="""
                manage.py jobs move ID --to background
                manage.py jobs move --all --pool default --type report.build --to background --yes
            """,
        )
        add_bulk(moving, "every job that waits and matches the filters")
        moving.add_argument("--to", required=True, metavar="POOL", help="the pool where they go on")
        prioritizing = verbs.add(
            "prioritize",
            self.prioritize,
            help="Give waiting jobs another priority.",
            examples="""
                manage.py jobs prioritize ID --to 50
                manage.py jobs prioritize --all --tag nightly --to -20 --yes
            """,
        )
        add_bulk(prioritizing, "every job that waits and matches the filters")
        prioritizing.add_argument(
            "--to", required=True, type=int, metavar="N", help="the priority: -100 to 100, higher runs first"
        )
        add_ids(
            verbs.add(
                "delete",
                self.delete,
                help="Delete ended jobs with their history, for good. Cancel a live job first.",
                examples="manage.py jobs delete ID ID",
            )
        )
        waiting = verbs.add(
            "wait",
            self.wait,
            help="Wait until a job has ended. Exit 0: succeeded, 1: it did not, 6: the time is over.",
            examples="""
                manage.py jobs wait ID --timeout 5m
                manage.py jobs wait ID --json | jq .result
            """,
        )
        add_ids(waiting, many=False)
        waiting.add_argument("--timeout", type=durations.seconds, metavar="SPAN", help="wait no longer: 30s, 5m")

        tailing = verbs.add(
            "tail",
            self.tail,
            help="Follow jobs as they change state; with an ID, one job's changes, log and progress until its end.",
            examples="""
                manage.py jobs tail --pool critical --state dead
                manage.py jobs tail ID
                manage.py jobs tail --json | jq -r 'select(.state == "dead") | .id'
            """,
        )
        tailing.add_argument("id", metavar="ID", nargs="?", help="id of a job")
        add_filters(tailing)

    def show_list(self, output: Output, *, limit: int, cursor: str | None, **options: Any) -> None:
        page = whole_page(output, job_filter(options), cursor=cursor, limit=limit)
        show_page(output, page, JOBS, empty="No job matches.")

    def show(self, output: Output, *, ids: list[str], reveal: bool, logs: bool, **_options: Any) -> None:
        found: dict[str, Job] = {}
        pages: dict[str, LogPage] = {}
        reasons: dict[str, Reason | None] = {}

        def read(id: str) -> dict[str, Any]:
            found[id] = api.reveal(id) if reveal else api.get_job(id)
            reasons[id] = reason = api.explain(id)
            document = job_dict(found[id], reveal=reveal) | {"reason": reason.as_dict() if reason else None}
            if logs:
                page = api.job_logs(found[id])
                pages[id] = page if reveal else api.shown_log(found[id], page)
                document["logs"] = pages[id].as_dict()
            return document

        def show(id: str, _: object) -> None:
            show_job(output, found[id], reveal=reveal, reason=reasons[id])
            if logs:
                show_logs(output, pages[id])

        report(output, ids, for_each(output, ids, read, doing="read"), show)

    def cancel(self, output: Output, *, ids: list[str], **options: Any) -> None:
        chosen = chosen_jobs(ids, options)
        if chosen is None:
            act_on(output, ids, api.cancel, "cancel")
            return
        chosen = msgspec.structs.replace(chosen, states=chosen.states or tuple(LIVE))
        if options["dry_run"]:
            dry_run(output, chosen, "cancel", columns=JOBS)
        else:
            chosen = confirmed(output, chosen, "cancel", yes=options["yes"])
            if options["background"]:
                in_background(output, "cancel", chosen)
                return
            work_through(output, api.cancel_matching(chosen), doing="cancel", did="Cancelled")

    def retry(self, output: Output, *, ids: list[str], **_options: Any) -> None:
        act_on(output, ids, api.retry, "retry")

    def run_now(self, output: Output, *, ids: list[str], **_options: Any) -> None:
        act_on(output, ids, api.run_now, "run now")

    def move(self, output: Output, *, ids: list[str], to: str, **options: Any) -> None:
        if (chosen := chosen_jobs(ids, options)) is not None:
            on_all(output, "move", chosen, options, pool=to)
            return
        outcome = for_each(output, ids, lambda id: job_dict(api.move(id, to)), doing="move")
        report(output, ids, outcome, lambda id, job: output.row(id, f"goes on as {job['id']}"))

    def prioritize(self, output: Output, *, ids: list[str], to: int, **options: Any) -> None:
        if (chosen := chosen_jobs(ids, options)) is not None:
            on_all(output, "prioritize", chosen, options, priority=to)
            return
        act_on(output, ids, lambda id: api.prioritize(id, to), "prioritize")

    def delete(self, output: Output, *, ids: list[str], **_options: Any) -> None:
        remove(output, ids, "deleted")

    def tail(self, output: Output, *, id: str | None, **options: Any) -> None:
        if id is None:
            ends_quietly(partial(tail_all, output, job_filter(options)))
        elif options["state"] or is_filtered(options):
            raise usage("Filters choose among jobs, and an ID names one.", fix="Give one or the other.")
        else:
            ends_quietly(partial(tail_one, output, id))

    def wait(self, output: Output, *, ids: str, timeout: float | None, **_options: Any) -> None:
        ended_badly(wait_for(output, ids, timeout))
