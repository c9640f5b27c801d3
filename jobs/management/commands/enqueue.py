"""``enqueue TYPE``: asks for one job, or for many of the same."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from jobs import api
from jobs.api import JobHandle
from jobs.core.job import Job, iso
from jobs.core.states import JobState
from jobs.exceptions import JobTimeout, SchedulerError
from jobs.management import durations
from jobs.management.arguments import Parser, add_payload, pair, payload_from, positive
from jobs.management.base import SchedulerCommand
from jobs.management.errors import CommandFailed, Exit, failure_of, usage
from jobs.management.interrupts import finishing_steps
from jobs.management.output import Output
from jobs.management.waiting import ended_badly, wait_for

BATCH = 1_000
SHOWN_IDS = 1_000
"""With ``--count``, at most so many ids are printed."""


class Command(SchedulerCommand):
    help = "Enqueue a job of a type, or many of the same. Prints the id (with --json the job)."
    examples = """
        manage.py enqueue email.send --payload '{"to": "ana@example.com", "subject": "Hello"}'
        manage.py enqueue report.build --payload-file day.json --delay 5m --pool background
        echo '{"day": "2026-01-01"}' | manage.py enqueue report.build - --wait --json
        manage.py enqueue cache.warm --count 10000 --tag nightly
        manage.py enqueue crm.push --allow-unknown --unique-key customer:42
    """

    def options(self, parser: Parser) -> None:
        parser.add_argument("type", metavar="TYPE", help="name of a job type")
        add_payload(parser, what="keyword arguments")
        parser.add_argument("--pool", metavar="POOL", help="pool to wait in (default: the type's)")
        parser.add_argument("--priority", type=int, metavar="N", help="-100 to 100, higher runs first")
        when = parser.add_mutually_exclusive_group()
        when.add_argument("--delay", type=durations.seconds, metavar="SPAN", help="not before then: 90s, 5m, 2h")
        when.add_argument("--at", type=durations.moment, metavar="ISO8601", help="not before this time")
        parser.add_argument(
            "--max-retries", type=int, metavar="N", help="retries after a failure (default: the type's)"
        )
        parser.add_argument(
            "--timeout", type=durations.seconds, metavar="SPAN", help="longest run of one attempt: 30, 30s, 5m"
        )
        parser.add_argument(
            "--unique-key", metavar="KEY", help="one live job of this type and key; prints the one there is"
        )
        parser.add_argument("--id", metavar="ID", help="your own id for the job; refused (exit 4) when it is taken")
        parser.add_argument("--tag", action="append", default=None, metavar="TAG", help="may be given several times")
        parser.add_argument(
            "--meta", action="append", type=pair, default=None, metavar="KEY=VALUE", help="may be given several times"
        )
        parser.add_argument("--count", type=positive, metavar="N", help="enqueue N jobs with this payload")
        parser.add_argument(
            "--allow-unknown", action="store_true", help="accept a type that only the workers know, not this process"
        )
        parser.add_argument("--wait", action="store_true", help="wait for the end; exit 1 unless the job succeeds")
        parser.add_argument(
            "--wait-timeout", type=durations.seconds, metavar="SPAN", help="wait no longer than this (then exit 6)"
        )

    def run(self, output: Output, **options: Any) -> None:
        count = options["count"]
        if options["wait_timeout"] is not None and not options["wait"]:
            raise usage("--wait-timeout says how long to wait, but --wait is missing.", fix="Add --wait.")
        if count is not None and (options["id"] or options["unique_key"]):
            raise usage("--count asks for many jobs, --id and --unique-key for one.", fix="Leave one of them out.")
        order = Order(
            options["type"], payload_from(options) or {}, _using(options), options["wait"], options["wait_timeout"]
        )
        if count is None:
            enqueue_one(output, order)
        else:
            enqueue_many(output, order, count)


class Order(NamedTuple):
    """What the command line asks for. ``using``: options by their names in ``JobType.using``; ``limit``: seconds."""

    type: str
    payload: dict[str, Any]
    using: dict[str, Any]
    wait: bool
    limit: float | None


def enqueue_one(output: Output, order: Order) -> None:
    handle = api.enqueue(order.type, order.payload, **order.using)
    if order.wait:
        ended_badly(wait_for(output, handle.id, order.limit, extra={"existing": handle.existing}))
    elif output.as_json:
        output.document(handle.as_dict())
    elif output.rich:
        output.line(_said(handle))
    else:
        output.line(handle.id)


def enqueue_many(output: Output, order: Order, count: int) -> None:
    ids, failure = _in_batches(output, order, count)
    if failure and not ids:
        raise failure
    states = _wait_for_all(output, ids, order.limit) if order.wait and not failure else None
    if output.as_json:
        document: dict[str, Any] = {"count": len(ids), "ids": ids[:SHOWN_IDS]}
        output.document(document if states is None else document | {"states": states})
    elif output.rich:
        output.line(f"Enqueued {len(ids):,} × {order.type}.")
        output.facts((states or {}).items())
    else:
        for id in ids[:SHOWN_IDS]:
            output.line(id)
    if failure:
        raise failure
    if states:
        _judge(states, len(ids))


def _in_batches(output: Output, order: Order, count: int) -> tuple[list[str], CommandFailed | None]:
    """The ids of what was enqueued, and why that is not all of it."""
    ids: list[str] = []
    failure: CommandFailed | None = None
    try:
        with finishing_steps() as interrupt, output.progress(f"enqueue {order.type}", count) as step:
            while len(ids) < count and not interrupt.requested:
                batch = [order.payload] * min(BATCH, count - len(ids))
                ids.extend(handle.id for handle in api.enqueue_many(order.type, batch, **order.using))
                step(len(ids))
        if len(ids) < count:
            failure = failure_of(KeyboardInterrupt())
    except (SchedulerError, KeyboardInterrupt) as error:
        failure = failure_of(error)
    if failure and ids:
        failure.fix = f"{len(ids):,} of {count:,} jobs are enqueued. {failure.fix}"
        if failure.exit is not Exit.INTERRUPTED:
            failure.exit = Exit.PARTLY
    return ids, failure


def _using(options: dict[str, Any]) -> dict[str, Any]:
    """The options given, under the names of ``JobType.using``; what was not given is left to the job type."""
    using = {
        "pool": options["pool"],
        "priority": options["priority"],
        "delay": options["delay"],
        "run_at": options["at"],
        "max_retries": options["max_retries"],
        "timeout": options["timeout"],
        "unique_key": options["unique_key"],
        "id": options["id"],
        "tags": options["tag"],
        "meta": dict(options["meta"]) if options["meta"] else None,
        "allow_unknown": options["allow_unknown"] or None,
    }
    return {name: value for name, value in using.items() if value is not None}


def _said(handle: JobHandle) -> str:
    if handle.existing:
        return f"{handle.id}  was there already: {handle.type} in pool {handle.pool}, {handle.state}"
    when = f"due {iso(handle.run_at)}" if handle.state == JobState.SCHEDULED else str(handle.state)
    return f"{handle.id}  {handle.type} in pool {handle.pool}, {when}"


def _wait_for_all(output: Output, ids: list[str], limit: float | None) -> dict[str, int]:
    """State → number of jobs, when all have ended or the time is over."""
    until = None if limit is None else time.monotonic() + limit
    states: dict[str, int] = {}
    with output.progress("wait", len(ids)) as step:
        for number, id in enumerate(ids, 1):
            state = _state_at_the_end(id, until)
            states[state] = states.get(state, 0) + 1
            step(number)
    return states


def _state_at_the_end(id: str, until: float | None) -> str:
    try:
        job: Job = api.wait(id, timeout=None if until is None else max(0.0, until - time.monotonic()))
    except JobTimeout:
        job = api.get_job(id)
    return job.state.value


def _judge(states: dict[str, int], count: int) -> None:
    ended = sum(states.get(state, 0) for state in ("succeeded", "dead", "cancelled", "skipped"))
    if ended < count:
        raise CommandFailed(
            f"The time is over and {count - ended:,} of {count:,} jobs have not ended",
            exit=Exit.PARTLY,
            code="timed_out",
            fix="They go on: wait longer, or look with 'manage.py jobs list'.",
        )
    if states.get("succeeded", 0) < count:
        ends = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
        raise CommandFailed(f"Not all of {count:,} jobs succeeded: {ends}", exit=Exit.FAILED, code="job_failed")
