"""Searches the histories and the final state of a run for everything that the guarantees forbid.

``check`` returns a ``Report`` with three separate lists: *violations* (must be empty), *allowed losses* (acknowledged
at a level that a fault of the run does not cover) and *duplicates* (jobs that ran more often than they had to, which
at-least-once permits and which is published). A run in which no fault took effect, nothing had to be recovered or
nothing stale was refused proves nothing, and is reported as a violation too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tests.faults.checker.checks import CHECKS
from tests.faults.checker.figures import numbers_of, wanted_runs
from tests.faults.checker.histories import Histories
from tests.faults.checker.report import Expectations, FinalJob, Report
from tests.faults.history import Event


def check(events: Iterable[Event], final: Mapping[str, FinalJob], expected: Expectations) -> Report:
    """All checks over one run. ``final`` holds each job that exists at the end, by id."""
    histories = Histories(events)
    report = Report()
    for check_one in CHECKS:
        report.violations.extend(check_one(histories, final, expected))
    executions = Counter(job for job, _ in histories.runs())
    report.duplicates = {
        job: extra for job, count in executions.items() if (extra := count - wanted_runs(histories, job)) > 0
    }
    report.numbers = numbers_of(histories, final, executions)
    return report
