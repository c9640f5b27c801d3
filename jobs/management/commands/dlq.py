"""``dlq VERB``: the dead-letter list: jobs whose retries are spent or that failed for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs import api
from jobs.api import Mute, MuteKind
from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.exceptions import WrongState
from jobs.management import durations
from jobs.management.arguments import (
    Parser,
    Verbs,
    add_bulk,
    add_filters,
    add_ids,
    add_page,
    add_payload,
    add_reveal,
    is_filtered,
    job_filter,
    payload_from,
    type_pattern,
)
from jobs.management.base import VerbCommand
from jobs.management.columns import DEAD, GROUPS, MUTES, mute_dict, show_job, show_page
from jobs.management.errors import usage
from jobs.management.output import Output
from jobs.management.selection import (
    act_on,
    chosen_jobs,
    confirmed,
    dry_run,
    in_background,
    remove,
    whole_page,
    work_through,
)

GROUPED = 1_000
"""Of more dead jobs than these, the newest are grouped."""
DEAD_ONLY = (JobState.DEAD,)


class Command(VerbCommand):
    help = "Look through dead jobs, resubmit or discard them, and mute what is known."
    examples = """
        manage.py dlq groups
        manage.py dlq list --type email.send --since 1h
        manage.py dlq resubmit --all --search SMTPServerDisconnected --rate 10/s
        manage.py dlq discard --all --type old.report --dry-run
    """

    def verbs(self, verbs: Verbs) -> None:
        listing = verbs.add(
            "list",
            self.show_list,
            help="List dead jobs, newest first.",
            examples="""
                manage.py dlq list
                manage.py dlq list --pool critical --since 7d --json
            """,
        )
        add_filters(listing, states=False)
        add_page(listing)
        showing = verbs.add(
            "show", self.show, help="Show a dead job with its last error.", examples="manage.py dlq show ID"
        )
        add_ids(showing, many=False)
        add_reveal(showing)
        groups = verbs.add(
            "groups",
            self.groups,
            help="Group dead jobs by the error that killed them, the most frequent first.",
            examples="""
                manage.py dlq groups
                manage.py dlq groups --since 1h --json
            """,
        )
        add_filters(groups, states=False)
        resubmit = verbs.add(
            "resubmit",
            self.resubmit,
            help="Make dead jobs live again, attempts counted from the start.",
            examples="""
                manage.py dlq resubmit ID
                manage.py dlq resubmit ID --payload '{"to": "right@example.com", "subject": "Hello"}'
                manage.py dlq resubmit --all --type email.send --since 2h --dry-run
                manage.py dlq resubmit --all --type email.send --since 2h --rate 10/s --yes
            """,
        )
        add_bulk(resubmit, "every dead job that matches the filters", states=False)
        add_payload(resubmit, what="a corrected payload")
        resubmit.add_argument(
            "--rate", type=durations.rate, metavar="N/s", help="with --all: no faster than this: 10/s, 90/m"
        )
        discard = verbs.add(
            "discard",
            self.discard,
            help="Delete dead jobs with their history, for good.",
            examples="""
                manage.py dlq discard ID ID
                manage.py dlq discard --all --type old.report --yes
            """,
        )
        add_bulk(discard, "every dead job that matches the filters", states=False)
        mute = verbs.add(
            "mute",
            self.mute,
            help="Let an error, or a type, not shout for a while. Its dead jobs stay listed.",
            examples="""
                manage.py dlq mute --group FINGERPRINT --for 1d --reason "ticket 212"
                manage.py dlq mute --type crm.push --for 8h --reason "their maintenance"
            """,
        )
        _add_subject(mute)
        mute.add_argument("--for", dest="span", type=durations.duration, required=True, metavar="SPAN", help="8h, 1d")
        mute.add_argument("--reason", required=True, metavar="TEXT", help="why; others see it")
        _add_subject(
            verbs.add(
                "unmute", self.unmute, help="Let it shout again.", examples="manage.py dlq unmute --type crm.push"
            )
        )
        verbs.add("muted", self.muted, help="List what is muted now.", examples="manage.py dlq muted --json")

    def show_list(self, output: Output, *, limit: int, cursor: str | None, **options: Any) -> None:
        page = whole_page(output, job_filter(options, states=DEAD_ONLY), cursor=cursor, limit=limit)
        show_page(output, page, DEAD, empty="No dead job matches." if is_filtered(options) else "No job is dead.")

    def show(self, output: Output, *, ids: str, reveal: bool, **_options: Any) -> None:
        job = dead(ids)
        show_job(output, api.reveal(ids) if reveal else job, reveal=reveal)
        output.hint(f"\nResubmit it: manage.py dlq resubmit {job.id}")

    def groups(self, output: Output, **options: Any) -> None:
        with output.progress("group"):
            found = api.newest_dead(job_filter(options, states=DEAD_ONLY), GROUPED)
            groups = api.group_errors(found.jobs)
        if output.as_json:
            output.document({"items": [group.as_dict() for group in groups], "next_cursor": None})
        elif groups:
            output.table(GROUPS, groups)
            if not found.is_whole:
                output.note(f"Only the newest {len(found.jobs):,} are grouped: there may be more.")
        elif not found.is_whole:
            output.note("None of the newest dead jobs matches; older ones were not looked at.")
        else:
            output.hint("No job is dead.")

    def resubmit(self, output: Output, *, ids: list[str], rate: float | None, **options: Any) -> None:
        payload = payload_from(options)
        chosen = chosen_jobs(ids, options, states=DEAD_ONLY)
        if chosen is None:
            if rate is not None:
                raise usage("--rate is for --all: single jobs are resubmitted at once.", fix="Leave it out.")
            act_on(output, ids, lambda id: api.resubmit(dead(id).id, payload=payload), "resubmit")
        elif options["dry_run"]:
            dry_run(output, chosen, "resubmit", columns=DEAD)
        else:
            chosen = confirmed(output, chosen, "resubmit", yes=options["yes"])
            if options["background"]:
                if payload is not None:
                    raise usage("--background and --payload do not go together.", fix="Leave one of them out.")
                in_background(output, "resubmit", chosen, rate=rate)
                return
            steps = api.resubmit_matching(chosen, payload=payload, rate=rate)
            work_through(output, steps, doing="resubmit", did="Resubmitted")

    def mute(
        self, output: Output, *, group: str | None, type: str | None, span: timedelta, reason: str, **_options: Any
    ) -> None:
        _show_mutes(output, [api.mutes.mute(*_subject(group, type), span=span, reason=reason)])

    def unmute(self, output: Output, *, group: str | None, type: str | None, **_options: Any) -> None:
        if not api.mutes.unmute(*_subject(group, type)):
            raise WrongState(f"{group or type} is not muted.", state=None, fix="See 'manage.py dlq muted'.")
        _show_mutes(output, api.mutes.all())

    def muted(self, output: Output, **_options: Any) -> None:
        _show_mutes(output, api.mutes.all())

    def discard(self, output: Output, *, ids: list[str], **options: Any) -> None:
        chosen = chosen_jobs(ids, options, states=DEAD_ONLY)
        if chosen is None:
            remove(output, ids, "discarded", check=dead)
        elif options["dry_run"]:
            dry_run(output, chosen, "discard", columns=DEAD)
        else:
            chosen = confirmed(output, chosen, "discard", yes=options["yes"])
            if options["background"]:
                in_background(output, "discard", chosen)
                return
            work_through(output, api.discard_matching(chosen), doing="discard", did="Discarded")


def dead(id: str) -> Job:
    """The job, if it is in the dead-letter list; WrongState names the state it is in instead."""
    job = api.get_job(id)
    if job.state is not JobState.DEAD:
        raise WrongState(
            f"Job {id} is {job.state.value}, not dead.",
            state=job.state.value,
            fix=f"Look at it with 'manage.py jobs show {id}'.",
        )
    return job


def _add_subject(parser: Parser) -> None:
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("--group", metavar="FINGERPRINT", help="the error: see 'dlq groups'")
    subject.add_argument(
        "--type", type=type_pattern, metavar="TYPE", help="the job type; 'billing.*': all that begin so"
    )


def _subject(group: str | None, type: str | None) -> tuple[MuteKind, str]:
    return ("group", group) if group is not None else ("type", type or "")


def _show_mutes(output: Output, mutes: list[Mute]) -> None:
    if output.as_json:
        output.document({"items": [mute_dict(mute) for mute in mutes], "next_cursor": None})
    elif mutes:
        output.table(MUTES, mutes)
    else:
        output.hint("Nothing is muted.")
