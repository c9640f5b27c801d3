"""The verbs of ``workflows`` that are about runs: starting, looking, waiting, and what people do to them."""

from __future__ import annotations

import json
import time
from typing import Any

from jobs import api
from jobs.api.workflows import NodeView, RunFacts
from jobs.core.workflow import RunState
from jobs.exceptions import JobTimeout, PayloadInvalid
from jobs.management import durations
from jobs.management.arguments import Parser, Verbs, add_page, payload_from, read_input
from jobs.management.errors import CommandFailed, Exit, usage
from jobs.management.output import Output
from jobs.management.run_columns import RUNS, counted, named, show_run

LOOK_SECONDS = 1.0
"""How often the display moves while a run is waited for. The end itself is seen at once."""
PAGE = 1000


def add_run_verbs(verbs: Verbs) -> None:
    """Adds all of them."""
    _starting(verbs)
    _looking(verbs)
    _steering(verbs)
    _answering(verbs)


# --- starting ---------------------------------------------------------------------------------------------------------


def _starting(verbs: Verbs) -> None:
    starting = verbs.add(
        "start",
        start,
        help="Start a run of a stored workflow, or of one in a file.",
        examples="""
            manage.py workflows start nightly --payload '{"day": "2026-03-01"}'
            manage.py workflows start --file nightly.json --wait
            manage.py workflows start nightly --json | jq -r .id
        """,
    )
    starting.add_argument("name", nargs="?", metavar="NAME", help="name of a stored workflow")
    starting.add_argument("--file", metavar="FILE", help="JSON of a workflow in place of a stored one; - = stdin")
    starting.add_argument("--payload", metavar="JSON", help="the payload of the run as a JSON object")
    starting.add_argument("--payload-file", metavar="FILE", help="a file that holds it; - = standard input")
    starting.add_argument("--id", metavar="ID", help="your id of the run; a second start with it starts nothing")
    starting.add_argument(
        "--allow-unknown", action="store_true", help="accept job types that only the workers know, not this process"
    )
    starting.add_argument("--wait", action="store_true", help="wait for the end; exit 1 unless the run succeeds")
    starting.add_argument(
        "--wait-timeout", type=durations.seconds, metavar="SPAN", help="wait no longer than this (then exit 6)"
    )


def start(output: Output, *, name: str | None, file: str | None, **options: Any) -> None:
    if (name is None) == (file is None):
        raise usage("What is to be started?", fix="Give the name of a stored workflow, or --file FILE.")
    if options["wait_timeout"] is not None and not options["wait"]:
        raise usage("--wait-timeout says how long to wait, but --wait is missing.", fix="Add --wait.")
    if file == options["payload_file"] == "-":
        raise usage("Standard input cannot hold the workflow and the payload.", fix="Put one of them into a file.")
    what = name if file is None else read_input(file, "workflow")
    run = api.workflows.start(
        what or "", payload_from({"stdin": False, **options}), id=options["id"], allow_unknown=options["allow_unknown"]
    )
    if options["wait"]:
        _wait(output, run.id, options["wait_timeout"])
    elif output.as_json:
        output.document(api.workflows.shown_document(run.id))
    else:
        output.row(run.id, run.state)


# --- looking ----------------------------------------------------------------------------------------------------------


def _looking(verbs: Verbs) -> None:
    listing = verbs.add(
        "list",
        show_list,
        help="List runs, newest first.",
        examples="""
            manage.py workflows list
            manage.py workflows list --name nightly --state failed
        """,
    )
    listing.add_argument("--name", metavar="NAME", help="only runs of this workflow")
    listing.add_argument(
        "--state", choices=[state.value for state in RunState], metavar="STATE", help="only runs in this state"
    )
    add_page(listing)
    showing = verbs.add(
        "show",
        show,
        help="Show a run: how each of its nodes stands, as a graph, and why.",
        examples="""
            manage.py workflows show RUN
            manage.py workflows show RUN --json | jq -r '.nodes[] | select(.state == "dead") | .key'
        """,
    )
    _run(showing)
    waiting = verbs.add(
        "wait",
        wait,
        help="Wait until a run has ended; exit 1 unless it succeeded.",
        examples="manage.py workflows wait RUN --timeout 10m",
    )
    _run(waiting)
    waiting.add_argument("--timeout", type=durations.seconds, metavar="SPAN", help="wait no longer (then exit 6)")


def show_list(
    output: Output, *, name: str | None, state: str | None, limit: int, cursor: str | None, **_options: Any
) -> None:
    page = api.workflows.list(name=name, state=state, cursor=cursor, limit=limit)
    if output.as_json:
        items = [api.workflows.shown_facts(run) for run in page.items]
        output.document({"items": items, "next_cursor": page.next_cursor})
        return
    if page.items:
        output.table(RUNS, page.items)
    else:
        output.hint("No run." if name or state else "There is no run yet: see 'workflows start'.")
    if page.next_cursor:
        output.note(f"There are more: --cursor {page.next_cursor}")


def show(output: Output, *, run_id: str, **_options: Any) -> None:
    _show(output, run_id)


def wait(output: Output, *, run_id: str, timeout: float | None, **_options: Any) -> None:
    _wait(output, run_id, timeout)


def _show(output: Output, run_id: str) -> None:
    if output.as_json:
        output.document(api.workflows.shown_document(run_id))
    else:
        show_run(output, api.workflows.get(run_id), _nodes(run_id))


def _nodes(run_id: str) -> list[NodeView]:
    found: list[NodeView] = []
    while page := api.workflows.nodes(run_id, len(found), PAGE, live=True):
        found += page
    return api.shown_nodes(found)


def _wait(output: Output, run_id: str, limit: float | None) -> None:
    """Shows the run when it has ended. Ends the command with 6 where the time was too short, with 1 where it failed."""
    until = None if limit is None else time.monotonic() + limit
    try:
        run = _watched(output, run_id, until)
    except KeyboardInterrupt:
        raise CommandFailed(
            f"Interrupted: run {run_id} goes on", exit=Exit.INTERRUPTED, code="interrupted", fix=_again(run_id)
        ) from None
    _show(output, run_id)
    if not run.is_over:
        raise CommandFailed(
            f"Run {run_id} is {run.state}: the time to wait is over",
            exit=Exit.PARTLY,
            code="timed_out",
            fix=f"It goes on. {_again(run_id)}",
        )
    if run.state != RunState.SUCCEEDED:
        raise CommandFailed(
            f"Run {run_id} is {run.state}",
            exit=Exit.FAILED,
            code=f"run_{run.state}",
            fix=f"See 'manage.py workflows show {run_id}'.",
        )


def _watched(output: Output, run_id: str, until: float | None) -> RunFacts:
    with output.progress(f"wait for {run_id}") as step:
        while True:
            left = LOOK_SECONDS if until is None else min(LOOK_SECONDS, until - time.monotonic())
            try:
                return api.workflows.wait(run_id, timeout=max(0.0, left))
            except JobTimeout:
                run = api.workflows.get(run_id)
            if run.is_over or (until is not None and time.monotonic() >= until):
                return run
            step(0, note=counted(run.counts))


def _again(run_id: str) -> str:
    return f"Wait again with 'manage.py workflows wait {run_id}'."


# --- steering ---------------------------------------------------------------------------------------------------------


def _steering(verbs: Verbs) -> None:
    cancelling = verbs.add(
        "cancel",
        cancel,
        help="Stop a run: what waits never starts, what runs is asked to stop, nodes marked always run.",
        examples='manage.py workflows cancel RUN --reason "wrong day"',
    )
    _run(cancelling)
    _reason(cancelling)
    retrying = verbs.add(
        "retry",
        retry,
        help="Run again what failed and what was skipped because of it, or one node and all that comes after it.",
        examples="""
            manage.py workflows retry RUN --dry-run
            manage.py workflows retry RUN --from load
        """,
    )
    _run(retrying)
    retrying.add_argument("--from", dest="node", metavar="NODE", help="from this node on, whatever it ended as")
    retrying.add_argument("--dry-run", action="store_true", help="only list what would run again")
    retrying.add_argument("--yes", action="store_true", help="do not ask")
    pausing = verbs.add(
        "pause",
        pause,
        help="Start nothing more of a run, retries included; what runs goes on.",
        examples='manage.py workflows pause RUN --reason "disk move"',
    )
    _run(pausing)
    _reason(pausing)
    resuming = verbs.add("resume", resume, help="End a pause.", examples="manage.py workflows resume RUN")
    _run(resuming)


def cancel(output: Output, *, run_id: str, reason: str, **_options: Any) -> None:
    _changed(output, api.workflows.cancel(run_id, reason=reason))


def pause(output: Output, *, run_id: str, reason: str, **_options: Any) -> None:
    _changed(output, api.workflows.pause(run_id, reason=reason))


def resume(output: Output, *, run_id: str, **_options: Any) -> None:
    _changed(output, api.workflows.resume(run_id))


def retry(output: Output, *, run_id: str, node: str | None, dry_run: bool, yes: bool, **_options: Any) -> None:
    """What will run again is listed first; on a terminal it is asked for."""
    plan = api.workflows.retry_plan(run_id, node)
    listed = {"again": list(plan.again), "waiting": list(plan.waiting), "dropped": list(plan.dropped)}
    if dry_run:
        if output.as_json:
            output.document({"dry_run": True, **listed})
            return
        for outcome, keys in listed.items():
            for key in keys:
                output.row(key, outcome)
        return
    if not output.as_json:
        _tell_plan(output, plan)
    if output.can_ask and not yes and output.ask("Go on? [y/N]").lower() not in {"y", "yes"}:
        raise CommandFailed("Nothing was changed", exit=Exit.FAILED, code="not_confirmed")
    found = api.workflows.retry(run_id, node)
    if output.as_json:
        output.document({**api.workflows.shown_document(run_id), **listed})
    else:
        output.row(found.id, found.state)


def _tell_plan(output: Output, plan: Any) -> None:
    output.note(f"Runs again now: {named(plan.again) or 'nothing'}.")
    if plan.waiting:
        output.note(f"Waits for that: {named(plan.waiting)}.")
    if plan.dropped:
        output.note(f"Goes, and is made anew: {named(plan.dropped)}.")


def _changed(output: Output, run: RunFacts) -> None:
    if output.as_json:
        output.document(api.workflows.shown_document(run.id))
    else:
        output.row(run.id, run.state)


# --- answering --------------------------------------------------------------------------------------------------------


def _answering(verbs: Verbs) -> None:
    signalling = verbs.add(
        "signal",
        signal,
        help="Tell a run that something has happened for which nodes of it wait, now or later.",
        examples="""manage.py workflows signal RUN delivered --payload '{"parcel": 7}'""",
    )
    _run(signalling)
    signalling.add_argument("signal", metavar="NAME", help="name of the signal")
    signalling.add_argument("--payload", metavar="JSON", help="the result of those nodes, any JSON")
    skipping = verbs.add(
        "skip",
        skip,
        help="Count a node as succeeded without running it: what comes after it goes on.",
        examples="""
            manage.py workflows skip RUN load --reason "loaded by hand"
            manage.py workflows skip RUN extract --result '{"rows": []}'
        """,
    )
    _run(skipping)
    skipping.add_argument("node", metavar="NODE", help="key of the node")
    skipping.add_argument("--result", metavar="JSON", help="what its children find as its result; none without it")
    _reason(skipping)
    for verb, run, words in (
        ("approve", approve, "Say yes to a node that waits for approval."),
        ("reject", reject, "Say no to a node that waits for approval: it fails."),
    ):
        deciding = verbs.add(verb, run, help=words, examples=f'manage.py workflows {verb} RUN NODE --comment "seen"')
        _run(deciding)
        deciding.add_argument("node", metavar="NODE", help="key of the node")
        deciding.add_argument("--comment", default="", metavar="TEXT", help="why; kept with the node")


def skip(output: Output, *, run_id: str, node: str, result: str | None, reason: str, **_options: Any) -> None:
    _changed(output, api.workflows.skip(run_id, node, result=_json(result, "result"), reason=reason))


def signal(output: Output, *, run_id: str, signal: str, payload: str | None, **_options: Any) -> None:
    ended = api.workflows.signal(run_id, signal, _json(payload, "payload"))
    if output.as_json:
        output.document({**api.workflows.shown_document(run_id), "ended": ended})
    else:
        output.row(run_id, f"{ended:,} node{'' if ended == 1 else 's'} went on" if ended else "kept for later")


def approve(output: Output, *, run_id: str, node: str, comment: str, **_options: Any) -> None:
    _changed(output, api.workflows.approve(run_id, node, comment=comment))


def reject(output: Output, *, run_id: str, node: str, comment: str, **_options: Any) -> None:
    _changed(output, api.workflows.reject(run_id, node, comment=comment))


def _json(text: str | None, what: str) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PayloadInvalid(
            f"The {what} is not JSON: {error}.", fix="Put text into double quotes: '\"text\"'."
        ) from None


def _run(parser: Parser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id of the run")


def _reason(parser: Parser) -> None:
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; shown wherever the run is")
