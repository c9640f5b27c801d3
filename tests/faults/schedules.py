"""The fault run of schedules: hosts are killed and frozen while schedules fire each second and are edited all the time.

Judged by what there is in the end: the nominal times of the jobs of each schedule are every one from the first to the
last, each once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from jobs.core.job import Job
from jobs.engine import JobFilter
from tests.faults import nemesis
from tests.faults.checker.report import Report, Violation
from tests.faults.nemesis import Every, harm
from tests.faults.stage import ROOT, Stage, stage

if TYPE_CHECKING:
    from tests.faults.scenarios import Profile

FAST, SLOW = 50, 20
"""Schedules of one second, and of one minute."""
GRACE_SECONDS = 3600.0
"""Hosts may be killed faster than a loaded machine can start them. What is judged is that nothing is lost or doubled;
how late it was is a number of the report."""
SETTLE_SECONDS = 60.0
"""After the last harm: at most as long until what is due has been fired."""


def schedules(folder: Path, profile: Profile) -> Report:
    """Hosts are killed, stopped and frozen at random; some schedule is edited every 200 ms, by every way there is."""
    is_long = profile.name == "long"
    with stage(folder, fires_schedules=True) as run:
        run.manage("migrate", "--verbosity", "0")
        _store_schedules(run)
        for _ in range(5 if is_long else 3):
            run.start_host()
        run.wait_until(lambda: len(_jobs(run)) >= FAST, "no schedule fired")
        editor = _start_editor(run)
        try:
            end = time.monotonic() + (300 if is_long else profile.seconds)
            harm(
                run,
                {
                    "kill": Every(4, nemesis.kill_host),
                    "freeze": Every(5, nemesis.freeze_host(leases=4)),
                    "stop": Every(6, nemesis.terminate_host, at_most=1_000 if is_long else 1),
                },
                while_=lambda: time.monotonic() < end,
                within=900,
            )
        finally:
            editor.kill()
            editor.wait()
        run.wait_until(lambda: not _overdue(run), "what was due was not fired", SETTLE_SECONDS)
        for host in run.hosts:
            host.stop()
        report = Report(violations=list(_violations(run)))
        lateness = [job.created_at - job.fire_time for job in _jobs(run) if job.fire_time]
        report.numbers = {"median lateness ms": median(lateness).total_seconds() * 1000}
        report.numbers |= {
            "worst lateness s": max(lateness).total_seconds(),
            "jobs": float(len(_jobs(run))),
            "edits": float(_edits(folder)),
        }
        if not _edits(folder):
            report.violations.append(Violation("S0", "editor", "it edited nothing"))
        return report


def _overdue(run: Stage) -> bool:
    return bool(run.engine.schedules.overdue(run.engine.schedules.server_now_ms() - 2_000))


def _store_schedules(run: Stage) -> None:
    common = {"job_type": "fault.tick", "grace_seconds": GRACE_SECONDS}
    items = [{"name": f"fast-{number}", "kind": "interval", "interval_seconds": 1, **common} for number in range(FAST)]
    items += [{"name": f"slow-{number}", "cron": "* * * * *", **common} for number in range(SLOW)]
    file = run.folder / "schedules.json"
    file.write_text(json.dumps({"schedules": items}))
    run.manage("schedules", "import", str(file))


def _start_editor(run: Stage) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.editor", str(run.folder / "edits")],
        cwd=ROOT,
        env=run.environment("editor"),
    )


def _edits(folder: Path) -> int:
    file = folder / "edits"
    return len(file.read_bytes().splitlines()) if file.exists() else 0


def _jobs(run: Stage) -> list[Job]:
    found: list[Job] = []
    cursor = None
    while True:
        page = run.engine.jobs.page(JobFilter(type="fault.tick"), cursor=cursor, limit=1000)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _violations(run: Stage) -> Iterator[Violation]:
    fired: dict[str, Counter[int]] = {}
    for job in _jobs(run):
        if job.schedule is None or job.fire_time is None:
            yield Violation("S1", job.id, "it does not know its schedule or its time")
            continue
        fired.setdefault(job.schedule, Counter())[round(job.fire_time.timestamp() * 1000)] += 1
    for name in (*(f"fast-{number}" for number in range(FAST)), *(f"slow-{number}" for number in range(SLOW))):
        yield from _unlike_the_rule(name, fired.get(name, Counter()))
    names = [f"fast-{number}" for number in range(FAST)]
    for name, live in zip(names, run.engine.schedules.read(names, records=100), strict=True):
        for record in live.records:
            if record.outcome != "fired":
                yield Violation("S4", name, f"{record.due} was skipped: {record.reason}")


def _unlike_the_rule(name: str, fired: Counter[int]) -> Iterator[Violation]:
    step = 1_000 if name.startswith("fast") else 60_000
    for nominal, times in fired.items():
        if times > 1:
            yield Violation("S2", name, f"{nominal} fired {times} times")
    if not fired:
        if step == 1_000:
            yield Violation("S3", name, "it never fired")
        return
    expected = set(range(min(fired), max(fired) + 1, step))
    for nominal in sorted(expected - fired.keys()):
        yield Violation("S3", name, f"{nominal} did not fire")
    for nominal in sorted(fired.keys() - expected):
        yield Violation("S3", name, f"{nominal} is none of its times")
