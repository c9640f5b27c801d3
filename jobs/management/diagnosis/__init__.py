"""The checks of ``doctor``: each looks at one thing that makes jobs late, lost or doubled when it is wrong.

A check answers findings; a failed one names the setting and says what to do. No check trusts anything: the store, the
database and the channel layer may each be down or hang, and the others are still looked at. So they run side by side,
and one that has not answered in time is itself a finding.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from django.db import connections

from jobs.exceptions import SchedulerError
from jobs.management.diagnosis.finding import Finding, first_line
from jobs.management.diagnosis.project import check_migrations, check_settings, check_time_zone
from jobs.management.diagnosis.schedules import check_schedules
from jobs.management.diagnosis.store import check_store_then_channel_layer

__all__ = ["CHECKS", "Finding", "diagnose"]

ALLOWED_SECONDS = 9.0
"""What has not answered by then hangs. With the start of the process it stays below the 15 seconds of every command."""

Check = Callable[[], Iterable[Finding]]

CHECKS: dict[str, Check] = {
    "settings": check_settings,
    "store": check_store_then_channel_layer,
    "database": check_migrations,
    "schedules": check_schedules,
    "time zone": check_time_zone,
}
"""In the order in which they are shown."""


def diagnose(checks: dict[str, Check] | None = None, *, allowed_seconds: float = ALLOWED_SECONDS) -> list[Finding]:
    """Runs all checks side by side and answers what they found, in order."""
    checks = CHECKS if checks is None else checks
    found: dict[str, list[Finding]] = {name: [] for name in checks}
    # Daemon threads: one that hangs for good must not keep the process alive.
    threads = {
        name: threading.Thread(target=_run, args=(name, check, found[name]), daemon=True)
        for name, check in checks.items()
    }
    for thread in threads.values():
        thread.start()
    over = time.monotonic() + allowed_seconds
    for name, thread in threads.items():
        thread.join(max(0.0, over - time.monotonic()))
        if thread.is_alive():
            found[name].append(
                Finding(
                    name,
                    "failed",
                    f"No answer within {allowed_seconds:.0f} seconds.",
                    "",
                    "Something hangs: see what it connects to.",
                )
            )
    return [finding for name in checks for finding in found[name]]


def _run(name: str, check: Check, found: list[Finding]) -> None:
    try:
        found.extend(check())
    except Exception as error:  # a check that breaks is a finding too
        fix = error.fix if isinstance(error, SchedulerError) else ""
        found.append(Finding(name, "failed", f"{type(error).__name__}: {first_line(error)}", "", fix))
    finally:
        connections.close_all()  # this thread's own
