"""The fault run of schedules: hosts are killed and frozen while schedules fire each second and are edited all the time.

Judged by what there is in the end: the nominal times of the jobs of each schedule are every one from the first that the
store planned to the end of the harm, each once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

from jobs.core.job import Job
from jobs.engine import JobFilter
from jobs.runtime.process import tied
from tests.faults import nemesis
from tests.faults.checker.report import Report, Violation
from tests.faults.nemesis import Every, harm
from tests.faults.stage import ROOT, Stage, stage

if TYPE_CHECKING:
    from tests.faults.scenarios import Profile

FAST, SLOW = 50, 20
"""Schedules of one second, and of one minute."""
NAMES = [*(f"fast-{number}" for number in range(FAST)), *(f"slow-{number}" for number in range(SLOW))]
GRACE_SECONDS = 3600.0
"""Hosts may be killed faster than a loaded machine can start them. What is judged is that nothing is lost or doubled;
how late it was is a number of the report."""
SETTLE_SECONDS = 60.0
"""After the last harm: at most as long until what is due has been fired."""


def schedules(folder: Path, profile: Profile) -> Report:
    """Hosts are killed, stopped and frozen at random; some schedule is edited every 200 ms, by every way there is."""
    is_long = profile.name == "long"
    with stage(folder, fires_schedules=True, draw=Random(folder.name)) as run:
        run.manage("migrate", "--verbosity", "0")
        _store_schedules(run)
        first = {name: nominal for name, nominal in _next(run).items() if nominal is not None}
        for _ in range(5 if is_long else 3):
            run.start_host()
        run.wait_until(lambda: len(_jobs(run)) >= FAST, "no schedule fired")
        editor, began = _start_editor(run), time.monotonic()
        try:
            harm(
                run,
                {
                    "kill": Every(3, nemesis.kill_host),
                    "stop": Every(5, nemesis.terminate_host, at_most=1_000 if is_long else 1),
                    "freeze": Every(15 if is_long else 5, nemesis.freeze_host(leases=4)),
                },
                while_=lambda: time.monotonic() < began + (300 if is_long else profile.seconds),
                within=900,
            )
        finally:
            editor.kill()
            editor.wait()
        seconds, end = time.monotonic() - began, run.engine.schedules.server_now_ms()
        run.wait_until(lambda: _are_past(run, end), "what was due was not fired", SETTLE_SECONDS)
        run.wait_until(lambda: not _unlike_their_rows(run), "an edit did not reach the store", SETTLE_SECONDS)
        for host in run.hosts:
            host.stop()
        report = Report(violations=[*_misfired(run, first, end), *_skipped(run)])
        report.numbers = _numbers(run) | {"seconds of harm": seconds, "edits a second": _edits(folder) / seconds}
        if len(first) < FAST + SLOW or not _edits(folder):
            report.violations.append(Violation("S0", "schedules", "not all were stored, or none was edited"))
        return report


def _next(run: Stage) -> dict[str, int | None]:
    """The nominal time that each schedule will deal with next."""
    found = run.engine.schedules.read(NAMES)
    return {name: live.state.nominal if live.state else None for name, live in zip(NAMES, found, strict=True)}


def _are_past(run: Stage, end: int) -> bool:
    """Whether all that was due up to then has been dealt with."""
    return all(nominal is not None and nominal > end for nominal in _next(run).values())


def _unlike_their_rows(run: Stage) -> list[str]:
    """Schedules of which the store knows an older version than the database, or which say that something is wrong."""
    rows = {row["name"]: row for row in json.loads(run.manage("schedules", "list", "--json"))["items"]}
    found = []
    for name, live in zip(NAMES, run.engine.schedules.read(NAMES), strict=True):
        known = live.kept.stored.definition.as_dict() if live.kept else {}
        if not known or rows[name]["error"] or any(rows[name][field] != value for field, value in known.items()):
            found.append(name)
    return found


def _numbers(run: Stage) -> dict[str, float]:
    lateness = sorted((job.created_at - job.fire_time).total_seconds() for job in _jobs(run) if job.fire_time)
    return {
        "firings": float(len(lateness)),
        "median lateness ms": median(lateness) * 1000,
        "99th percentile s": lateness[len(lateness) * 99 // 100],
        "worst lateness s": lateness[-1],
    }


def _store_schedules(run: Stage) -> None:
    common = {"job_type": "fault.tick", "grace_seconds": GRACE_SECONDS}
    fast, slow = {"kind": "interval", "interval_seconds": 1}, {"cron": "* * * * *"}
    items = [{"name": name, **(fast if name.startswith("fast") else slow), **common} for name in NAMES]
    file = run.folder / "schedules.json"
    file.write_text(json.dumps({"schedules": items}))
    run.manage("schedules", "import", str(file))


def _start_editor(run: Stage) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.editor", str(run.folder / "edits")],
        cwd=ROOT,
        env=run.environment("editor"),
        preexec_fn=tied(),
    )


def _edits(folder: Path) -> int:
    """How many were made: a line that begins with ``#`` tells of one that found the database busy."""
    file = folder / "edits"
    return sum(line.isdigit() for line in file.read_text().splitlines()) if file.exists() else 0


def _jobs(run: Stage) -> list[Job]:
    found: list[Job] = []
    cursor = None
    while True:
        page = run.engine.jobs.page(JobFilter(type="fault.tick"), cursor=cursor, limit=1000)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _misfired(run: Stage, first: dict[str, int], end: int) -> Iterator[Violation]:
    """Where what fired is not the expected: every time of each rhythm from its first up to the end, each once."""
    fired: dict[str, Counter[int]] = {name: Counter() for name in NAMES}
    for job in _jobs(run):
        if job.schedule is None or job.fire_time is None:
            yield Violation("S1", job.id, "it does not know its schedule or its time")
            continue
        fired[job.schedule][round(job.fire_time.timestamp() * 1000)] += 1
    for name, start in first.items():
        step = 1_000 if name.startswith("fast") else 60_000
        for nominal, times in fired[name].items():
            if times > 1:
                yield Violation("S2", name, f"{nominal} fired {times} times")
            if nominal < start or (nominal - start) % step:
                yield Violation("S3", name, f"{nominal} is none of its times")
        for nominal in sorted(set(range(start, end + 1, step)) - fired[name].keys()):
            yield Violation("S3", name, f"{nominal} did not fire")


def _skipped(run: Stage) -> Iterator[Violation]:
    for name, live in zip(NAMES, run.engine.schedules.read(NAMES, records=1_000), strict=True):
        for record in live.records:
            if record.outcome != "fired":
                yield Violation("S4", name, f"{record.due} was skipped: {record.reason}")
