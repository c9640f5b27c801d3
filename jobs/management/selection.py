"""The same verb over several jobs: by id one by one, or over all that match a filter.

What could not be done never hides behind what could: each refusal is shown with its id, and the exit code says whether
all of it failed for one reason (that reason's code) or part of it is done (6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from jobs import api
from jobs.api import BulkOperation, BulkProgress, JobFilter, Page
from jobs.core.bulk import USUAL, BulkAction
from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.core.wording import error_dict
from jobs.exceptions import SchedulerError, WrongState
from jobs.management.arguments import is_filtered, job_filter
from jobs.management.columns import JOBS, job_dict, operation_dict, operation_words, state_word
from jobs.management.errors import CommandFailed, Exit, exit_for, failure_of, sentence, usage
from jobs.management.interrupts import finishing_steps
from jobs.management.output import Column, Output

EVERY_ONE = 10**12
"""As many as match: the question was asked before the operation begins."""

ASK_FOR_THE_NUMBER_FROM = 1_000
"""Above this a person types the number instead of ``y``: a filter that was wrong shows in it."""
SAMPLE = 10


@dataclass
class Outcome:
    """What became of each id, in the order given."""

    done: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, SchedulerError] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def exit(self) -> Exit:
        if self.interrupted:
            return Exit.INTERRUPTED
        if not self.failed:
            return Exit.OK
        return exit_after(self.failed.values(), any_done=bool(self.done))


def exit_after(errors: Iterable[SchedulerError], *, any_done: bool) -> Exit:
    """The code of the one reason why all failed, or "partly done"."""
    codes = {exit_for(error) for error in errors}
    return codes.pop() if not any_done and len(codes) == 1 else Exit.PARTLY


def for_each(output: Output, ids: Iterable[str], act: Callable[[str], dict[str, Any]], *, doing: str) -> Outcome:
    """Carries out ``act`` on each id and goes on after a refusal. ``act`` answers what it made of the job, as JSON."""
    ids = list(dict.fromkeys(ids))
    outcome = Outcome()
    with finishing_steps() as interrupt, output.progress(doing, len(ids)) as step:
        for number, id in enumerate(ids, 1):
            try:
                outcome.done[id] = act(id)
            except SchedulerError as error:
                if len(ids) == 1:
                    raise
                outcome.failed[id] = error
                if exit_for(error) is Exit.UNREACHABLE:
                    # The rest would each wait for a server that is not there.
                    outcome.failed.update(dict.fromkeys(ids[number:], error))
                    break
            if interrupt.requested and number < len(ids):
                outcome.interrupted = True
                outcome.failed.update(dict.fromkeys(ids[number:], SchedulerError("Interrupted before its turn")))
                break
            step(number)
    return outcome


def report(output: Output, ids: Iterable[str], outcome: Outcome, show: Callable[[str, dict[str, Any]], None]) -> None:
    """One object for one id, ``{"items": […]}`` for several; then ends the command if something failed."""
    ids = list(dict.fromkeys(ids))
    if output.as_json:
        items = [
            outcome.done[id] if id in outcome.done else {"id": id, "error": error_dict(outcome.failed[id])}
            for id in ids
        ]
        output.document(items[0] if len(ids) == 1 else {"items": items})
    else:
        for id in ids:
            if id in outcome.done:
                show(id, outcome.done[id])
            else:
                output.note(_refusal(id, outcome.failed[id]))
    if outcome.failed:
        raise CommandFailed(
            f"{'Interrupted: ' if outcome.interrupted else ''}{len(outcome.failed)} of {_jobs(len(ids))} not done",
            exit=outcome.exit,
            code="interrupted" if outcome.interrupted else "partly_done" if outcome.done else "nothing_done",
            fix="The reason stands beside each id.",
        )


def act_on(output: Output, ids: Iterable[str], verb: Callable[[str], Job], doing: str) -> None:
    """A verb that answers the job as it is afterwards."""
    jobs: dict[str, Job] = {}

    def act(id: str) -> dict[str, Any]:
        jobs[id] = verb(id)
        return job_dict(jobs[id])

    outcome = for_each(output, ids, act, doing=doing)
    report(output, ids, outcome, lambda id, _: output.row(id, state_word(jobs[id])))


def remove(output: Output, ids: Iterable[str], did: str, *, check: Callable[[str], object] = lambda id: None) -> None:
    """Removes ended jobs for good; ``did`` is the word for it in the answer. ``check`` may refuse an id by raising."""

    def act(id: str) -> dict[str, Any]:
        check(id)
        api.discard(id)
        return {"id": id, did: True}

    outcome = for_each(output, ids, act, doing=did)
    report(output, ids, outcome, lambda id, _: output.row(id, did))


def whole_page(output: Output, filter: JobFilter, *, cursor: str | None, limit: int) -> Page:
    """A page as full as it can be. One read looks at so many jobs and no more; a narrow filter may need several."""
    items: list[Job] = []
    with output.progress("search") as step:
        while True:
            page = api.list_jobs(filter, cursor=cursor, limit=limit - len(items))
            items += page.items
            cursor = page.next_cursor
            if cursor is None or len(items) >= limit:
                return Page(items=items, next_cursor=cursor)
            step(len(items), note=f"{len(items):,} found")


def chosen_jobs(
    ids: list[str], options: dict[str, Any], *, states: tuple[JobState, ...] | None = None
) -> JobFilter | None:
    """The filter that ``--all`` and its filters describe, or None where single ids are named."""
    if ids and (options["all"] or is_filtered(options)):
        raise usage("Ids name the jobs, --all and filters match them.", fix="Give the one or the other.")
    if ids and options["dry_run"]:
        raise usage("--dry-run is for --all: with ids it is plain which jobs it would be.", fix="Leave it out.")
    if not ids and not options["all"]:
        raise usage(
            "Nothing says which jobs." if not is_filtered(options) else "Filters need --all.",
            fix="Name ids, or write --all with filters such as --type email.send.",
        )
    return None if ids else job_filter(options, states=states)


def dry_run(output: Output, filter: JobFilter, verb: str, *, columns: Sequence[Column[Job]]) -> None:
    """How many jobs it would be, and the first of them. Changes nothing."""
    count = _count(output, filter)
    sample = [api.shown(job) for job in api.list_jobs(filter, limit=SAMPLE).items] if count else []
    if output.as_json:
        output.document({"dry_run": True, "count": count, "sample": [job_dict(job) for job in sample]})
        return
    output.line(f"Would {verb} {_jobs(count)}{': the first are' if count > len(sample) else '.'}")
    if sample:
        output.table(columns, sample)


def confirmed(output: Output, filter: JobFilter, verb: str, *, yes: bool) -> JobFilter:
    """Asks the person at the terminal before many jobs change. In a script the answer is ``--yes`` or a refusal.

    Answers the filter as it was when the question was asked: what comes while a person thinks is not swept in.
    """
    if yes:
        return filter
    if not output.can_ask:
        raise usage(
            f"'{verb} --all' changes every matching job and nobody is here to confirm it.",
            fix="Look with --dry-run first, then give --yes.",
        )
    asked_at = api.stats.snapshot().server_time
    frozen = msgspec.structs.replace(filter, until=asked_at)
    count = _count(output, filter)
    if count == 0:
        return frozen
    question = f"{verb.capitalize()} {_jobs(count)}?"
    if count > ASK_FOR_THE_NUMBER_FROM:
        agreed = output.ask(f"{question} Type the number to confirm:").replace(",", "") == str(count)
    else:
        agreed = output.ask(f"{question} [y/N]").lower() in {"y", "yes"}
    if not agreed:
        raise CommandFailed("Nothing was changed", exit=Exit.FAILED, code="not_confirmed")
    return frozen


def in_background(output: Output, action: BulkAction, filter: JobFilter, *, rate: float | None = None) -> None:
    """Leaves it to worker hosts, and says how to watch them. What it is on was confirmed before."""
    show_operation(output, api.bulk.start(action, filter, confirmed=EVERY_ONE, rate=rate))


def on_all(
    output: Output,
    action: BulkAction,
    filter: JobFilter,
    options: dict[str, Any],
    *,
    pool: str | None = None,
    priority: int | None = None,
) -> None:
    """A bulk operation on all that match: here, or left to worker hosts. What could not be done makes it exit 6."""
    chosen = msgspec.structs.replace(filter, states=filter.states or USUAL[action])
    if options["dry_run"]:
        dry_run(output, chosen, action, columns=JOBS)
        return
    chosen = confirmed(output, chosen, action, yes=options["yes"])
    operation = api.bulk.start(action, chosen, confirmed=EVERY_ONE, pool=pool, priority=priority)
    if not options["background"]:
        operation = _finished(output, operation)
    show_operation(output, operation)
    if operation.refused:
        raise CommandFailed(
            f"{operation.refused:,} of {_jobs(operation.total)} not done",
            exit=Exit.PARTLY if operation.done else Exit.REFUSED,
            code="partly_done" if operation.done else "nothing_done",
            fix=f"See why: manage.py bulk show {operation.id}",
        )


def _finished(output: Output, operation: BulkOperation) -> BulkOperation:
    """Carries it out, beside worker hosts. Ctrl-C stops it for them too."""
    try:
        with output.progress(operation.request.action):
            return api.bulk.finish(operation.id)
    except KeyboardInterrupt:
        with suppress(WrongState):  # it is over
            api.bulk.stop(operation.id)
        show_operation(output, api.bulk.get(operation.id))
        raise


def show_operation(output: Output, operation: BulkOperation) -> None:
    """One bulk operation, and the command that shows how far it is."""
    if output.as_json:
        output.document(operation_dict(operation))
        return
    output.line(operation_words(operation))
    if not operation.is_over:
        output.hint(f"See how far it is: manage.py bulk show {operation.id}")


def work_through(output: Output, steps: Iterator[BulkProgress], *, doing: str, did: str) -> None:
    """Runs a bulk operation to its end and shows what became of it, also when it is cut short."""
    state = BulkProgress(total=0)
    ending: CommandFailed | None = None
    try:
        with finishing_steps() as interrupt, output.progress(doing) as step, closing(cast(Any, steps)):
            for state in steps:
                handled = state.done + state.failed_count
                step(handled, total=state.total)
                if interrupt.requested and handled < state.total:
                    ending = failure_of(KeyboardInterrupt())
                    break
    except (SchedulerError, KeyboardInterrupt) as error:
        ending = failure_of(error)
    if ending and not state.total:
        raise ending
    _show_bulk(output, state, did)
    if ending:
        if state.done and ending.exit is not Exit.INTERRUPTED:
            ending.exit = Exit.PARTLY
        ending.fix = f"{state.done:,} of {_jobs(state.total)} done; run it again for the rest. {ending.fix}"
        raise ending
    if state.failed_count:
        raise CommandFailed(
            f"{state.failed_count:,} of {_jobs(state.total)} not done",
            exit=exit_after(state.failed.values(), any_done=bool(state.done)),
            code="partly_done" if state.done else "nothing_done",
            fix="The reason stands beside each id.",
        )


def _show_bulk(output: Output, state: BulkProgress, did: str) -> None:
    if output.as_json:
        errors = [{"id": id, "error": error_dict(error)} for id, error in state.failed.items()]
        output.document({"count": state.total, "done": state.done, "failed": state.failed_count, "errors": errors})
        return
    for id, error in state.failed.items():
        output.note(_refusal(id, error))
    output.line(
        f"{did} {_jobs(state.done)}." if state.done == state.total else f"{did} {state.done:,} of {_jobs(state.total)}."
    )


def _refusal(id: str, error: SchedulerError) -> str:
    return f"{id}: {sentence(str(error))} {error.fix}".rstrip()


def _count(output: Output, filter: JobFilter) -> int:
    with output.progress("count"):
        return api.count_matching(filter)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
