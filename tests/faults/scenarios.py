"""The fault runs, each in a short and a long form: a scenario does harm on a stage, heals, and returns the report."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from jobs.core.job import JobSpec, LeasedJob, Route
from jobs.engine import Completion, Failure, new_token
from jobs.store.scripts import script
from tests.faults import nemesis
from tests.faults.checker.report import Expectations, Report, Violation
from tests.faults.endless import endless
from tests.faults.nemesis import Every, harm
from tests.faults.proxy import CLEAR, Weather
from tests.faults.schedules import schedules
from tests.faults.server import slow_scripts
from tests.faults.stage import SLOTS, Stage, stage
from tests.faults.workflows import workflows
from tests.faults.workload.jobs import POOL
from tests.support.runs import Runs

SCRIPT_LIMIT_MS = 50.0
NODES = 999
"""Of one run, all parents of its last node."""
CAP = 5
STEADY = 30.0
"""Slow jobs a second, half a second each: more run at any moment than one host has slots, so that each holds some."""
WORKER_VERBS = ("job_lease", "job_start", "job_renew", "job_complete", "job_fail", "job_release", "job_recover")


@dataclass(frozen=True)
class Profile:
    """How much of everything. A release is judged by ``long``; ``short`` is what every run of the tests can afford."""

    name: str
    jobs: int
    seconds: float  # how long the harm goes on, at least
    server_kills: int
    herd: int = 20_000
    poison_neighbours: int = 1_000
    patience: float = 30  # seconds more until each fault has taken effect


SHORT = Profile("short", jobs=1_050, seconds=7, server_kills=1, herd=6_000)
LONG = Profile("long", jobs=10_000, seconds=60, server_kills=5)
PROFILES = {profile.name: profile for profile in (SHORT, LONG)}

Scenario = Callable[[Path, Profile], Report]


def kills(folder: Path, profile: Profile) -> Report:
    """One host of three is killed every two seconds, and the server again and again, while everything is asked for."""
    with stage(folder) as run:
        _start_hosts(run, 3)
        rate = profile.jobs / 2 / profile.seconds
        for seed in range(2):
            run.start_producer(profile.jobs // 2, rate=rate, seed=seed)
        run.start_producer(int(profile.seconds * STEADY), mix="slow", rate=STEADY)  # whoever is killed holds some
        run.wait_for_claims()
        every = profile.seconds / (profile.server_kills + 0.5)
        harm(
            run,
            {
                "kill host": Every(2.0, nemesis.kill_host),
                "kill child": Every(3.1, nemesis.kill_child),
                "terminate host": Every(5.3, nemesis.terminate_host),
                "kill server": Every(every, nemesis.kill_server, at_most=profile.server_kills),
            },
            while_=run.producing,
            within=profile.seconds * 4 + 60,
            patience=profile.patience,
        )
        run.wait_for_producers()
        run.wait_until_drained()
        return run.judge(
            Expectations(
                faults=("kill host", "kill child", "terminate host", "kill server"), recoveries=1, slots={POOL: SLOTS}
            )
        )


def frozen_worker(folder: Path, profile: Profile) -> Report:
    """A host is stopped for three leases and woken: what it held runs elsewhere, it changes nothing, and it goes on."""
    with stage(folder, lease_seconds=1.0) as run:
        _start_hosts(run, 2)
        run.start_producer(int(STEADY * max(10, profile.seconds / 2)), mix="slow", rate=STEADY)
        run.wait_for_claims()
        harm(run, {"freeze host": Every(0.5, nemesis.freeze_host(leases=3.0))}, while_=run.producing, within=180)
        run.wait_for_producers()
        run.wait_until_drained()
        # It goes on: the other host ends, and what comes now is for the one that was frozen.
        run.hosts.pop(0).stop()
        run.enqueue("fault.nothing", [{"key": f"after:{number}"} for number in range(20)])
        run.wait_until_drained()
        return run.judge(Expectations(faults=("freeze host",), recoveries=1, zombies=1, slots={POOL: SLOTS}))


def held_interpreter(folder: Path, profile: Profile) -> Report:
    """A job holds the interpreter's lock for three leases: it keeps its lease and runs once."""
    with stage(folder, lease_seconds=1.0) as run:
        _start_hosts(run, 2)
        (greedy,) = run.enqueue("fault.greedy", [{"key": "greedy", "seconds": 3.5}])
        run.enqueue("fault.nothing", [{"key": f"neighbour:{number}"} for number in range(50)])
        run.wait_until_drained()
        report = run.judge(Expectations(slots={POOL: SLOTS}))
        if greedy in report.duplicates:
            report.violations.append(Violation("K6", greedy, f"ran {1 + report.duplicates[greedy]} times"))
        return report


def poison(folder: Path, profile: Profile) -> Report:
    """One job kills its worker each time: it ends in the DLQ with the signal named, and all others finish."""
    with stage(folder) as run:
        run.start_host(processes=2)
        others = [{"key": f"good:{number}"} for number in range(profile.poison_neighbours)]
        run.enqueue("fault.nothing", others[::2])
        (pill,) = run.enqueue("fault.poison", [{"key": "poison", "padding": "x" * 100_000}])
        run.enqueue("fault.nothing", others[1::2])
        run.wait_until_drained()
        job = run.engine.jobs.get(pill)
        report = run.judge(Expectations(recoveries=1, slots={POOL: SLOTS}))
        if job.state != "dead" or job.crashes != 3:
            report.violations.append(Violation("K7", pill, f"is {job.state} after {job.crashes} crashes"))
        if "SIGKILL" not in str(job.error):
            report.violations.append(Violation("K15", pill, f"does not name the signal: {job.error}"))
        if report.numbers["ended succeeded"] != len(others):
            report.violations.append(Violation("K1", "neighbours", f"not all finished: {report.numbers}"))
        return report


def unknown_type(folder: Path, profile: Profile) -> Report:
    """No worker knows the type: its jobs are parked, nothing is charged, and they run when one arrives that does.

    Both hosts go on, as in a deployment that takes its time: what the old one leases and parks the new one has at once.
    """
    with stage(folder) as run:
        run.start_host()
        run.enqueue("fault.stranger", [{"key": f"stranger:{number}"} for number in range(20)])
        run.enqueue("fault.nothing", [{"key": f"familiar:{number}"} for number in range(50)])
        run.wait_until(lambda: run.counts()["succeeded"] >= 50, "the known jobs did not end")
        run.start_host(FAULTS_KNOWS_STRANGERS="1")
        run.wait_until_drained(within=240)
        for number in range(4):
            run.enqueue("fault.stranger", [{"key": f"latecomer:{number}"}])
            run.wait_until(lambda: run.live() == 0, "no host that knows the type had its job", within=8)
        return run.judge(Expectations(slots={POOL: SLOTS}))


def herd(folder: Path, profile: Profile) -> Report:
    """Thousands of jobs due in one millisecond, and as many orphaned leases: all run, no script takes long."""
    with stage(folder, lease_seconds=1.0) as run:
        route = run.engine.topology.route_for(POOL)
        run.enqueue("fault.nothing", [{"key": f"orphan:{number}"} for number in range(profile.herd)])
        _lease_everything(run, route)
        due_ms = run.engine.jobs.server_now_ms() + 3000
        run.enqueue("fault.nothing", [{"key": f"due:{number}"} for number in range(profile.herd)], run_at_ms=due_ms)
        _start_hosts(run, 2)
        run.wait_until_drained(within=120)
        slow = slow_scripts(run.client, SCRIPT_LIMIT_MS)
        report = run.judge(Expectations(slots={POOL: SLOTS}), every_way=False)
        report.numbers["script calls above 50 ms"] = len(slow)
        # The slow log counts time in which the server had no processor: it speaks only where there was one to have.
        if os.getloadavg()[0] <= (os.cpu_count() or 1):
            report.violations += [Violation("I18", name, f"a call of {took:.0f} ms") for name, took in slow]
        return report


def full_batches(folder: Path, profile: Profile) -> Report:
    """Every batched verb by hand, a thousand jobs at once: what the server's processor spends on one script call.

    The median of the calls is judged: a machine that is busy with other things makes some of them dearer.
    """
    with stage(folder) as run:
        leases, route = run.engine.leases, run.engine.topology.route_for(POOL)
        took: defaultdict[str, list[float]] = defaultdict(list)
        run_script = run.engine.store.run

        def timed(name: str, *arguments: Any, **options: Any) -> Any:
            before = run.server_cpu_seconds()
            answer = run_script(name, *arguments, **options)
            took[name].append((run.server_cpu_seconds() - before) * 1000)
            return answer

        def lease() -> list[LeasedJob]:
            return leases.lease(route, worker="w", token=new_token(), limit=1000, lease_ms=500).jobs

        run.engine.store.run = timed  # type: ignore[method-assign, assignment]
        run.engine.jobs.enqueue(JobSpec(type="fault.nothing", pool=POOL, delay_ms=1), [b"{}"] * profile.herd)
        time.sleep(0.01)
        while leases.promote(route, 1000).promoted:
            pass
        error = b'{"type": "E", "message": "", "traceback": "' + b"x" * 1000 + b'"}'
        for _ in range(3):
            held = lease()
            leases.start(route, [(job.id, job.token, job.leased_at) for job in held])
            leases.renew(route, [(job.id, job.token) for job in held], 500)
            leases.release(route, [(job.id, job.token) for job in held], charged=True)
            leases.complete(
                route, [Completion(job.id, job.token, job.type, job.leased_at, b"1" * 100) for job in lease()]
            )
            leases.fail(
                route, [Failure(job.id, job.token, job.type, job.leased_at, "retry", 0, 0, error) for job in lease()]
            )
            leases.park(route, [(job.id, job.token, job.type) for job in lease()])
            leases.unpark(route, ["fault.nothing"])
        while jobs := lease():
            leases.start(route, [(job.id, job.token, job.leased_at) for job in jobs])
        nodes = [f"node:{number}" for number in range(NODES)]
        Runs(run.engine).start(
            *({"key": key, "type": "fault.nothing"} for key in nodes),
            {"key": "last", "type": "fault.nothing", "depends_on": nodes},
        )
        time.sleep(0.6)
        while leases.recover(route).recovered:
            pass
        report = Report(numbers={f"{name}, ms": median(calls) for name, calls in took.items()})
        report.violations += [
            Violation("I18", name, f"{usual:.1f} of the server's processor")
            for name, usual in report.numbers.items()
            if usual > SCRIPT_LIMIT_MS
        ]
        return report


def lost_scripts(folder: Path, profile: Profile) -> Report:
    """SCRIPT FLUSH every 100 ms under load: nobody sees an error."""
    with stage(folder) as run:
        _start_hosts(run, 2)
        run.start_producer(profile.jobs // 2, rate=profile.jobs / 2 / profile.seconds)
        run.wait_for_claims()
        harm(run, {"flush scripts": Every(0.1, nemesis.flush_scripts)}, while_=run.producing, within=180)
        run.wait_for_producers()
        run.wait_until_drained()
        report = run.judge(Expectations(faults=("flush scripts",), slots={POOL: SLOTS}))
        for host in run.hosts:
            if "NOSCRIPT" in (log := (folder / f"{host.name}.log").read_text()):
                report.violations.append(Violation("H14", host.name, log[-500:]))
        if failed := report.numbers["enqueues unknown"] + report.numbers["enqueues refused"]:
            report.violations.append(Violation("H14", "producer", f"{failed:.0f} enqueues failed"))
        return report


def bad_weather(folder: Path, profile: Profile) -> Report:
    """Requests and replies are lost, cut and repeated between everybody and the server."""
    repeatable = tuple(script(name).sha.encode() for name in WORKER_VERBS)
    weather = Weather(lose_reply=0.01, lose_request=0.01, cut_reply=0.01, repeat=0.02, repeatable=repeatable)
    with stage(folder, through_proxy=True) as run:
        _start_hosts(run, 2)
        run.start_producer(profile.jobs // 2, rate=profile.jobs / 2 / profile.seconds)
        run.wait_for_claims()
        with run.history.fault("bad weather") as proof:
            run.proxy.weather = weather
            harm(run, {"drop connections": Every(1.5, nemesis.drop_connections)}, while_=run.producing, within=240)
            run.proxy.weather = CLEAR
            proof.update(run.proxy.taken)
        run.wait_for_producers()
        run.wait_until_drained()
        return run.judge(Expectations(faults=("bad weather", "drop connections"), slots={POOL: SLOTS}))


def lost_answers(folder: Path, profile: Profile) -> Report:
    """One in five answers to a producer is lost after the server has done what was asked: each wish makes one job."""
    with stage(folder, through_proxy=True) as run:
        run.start_host(SCHEDULER_REDIS_URL=run.server.url)
        with run.history.fault("lost answers") as proof:
            run.proxy.weather = Weather(lose_reply=0.2)
            run.start_producer(profile.jobs // 5, mix="singly")
            run.wait_for_producers(within=240)
            proof.update(run.proxy.taken)
        run.wait_until_drained()
        return run.judge(Expectations(faults=("lost answers",), slots={POOL: SLOTS}))


def silent_server(folder: Path, profile: Profile) -> Report:
    """The server stands still, connected and silent, for longer than a lease; then it goes on."""
    with stage(folder, lease_seconds=1.0) as run:
        _start_hosts(run, 2)
        run.start_producer(int(profile.seconds * 20), mix="work", rate=20)
        run.wait_for_claims()
        harm(run, {"freeze server": Every(2.0, nemesis.freeze_server(1.5))}, while_=run.producing, within=180)
        run.wait_for_producers()
        run.wait_until_drained()
        return run.judge(Expectations(faults=("freeze server",), slots={POOL: SLOTS}))


def pauses(folder: Path, profile: Profile) -> Report:
    """The pool is paused and resumed under load, while hosts die and leases run out: nothing is leased in a pause."""
    with stage(folder, lease_seconds=1.0) as run:
        _start_hosts(run, 2)
        run.start_producer(int(profile.seconds * STEADY), mix="slow", rate=STEADY)
        run.wait_for_claims()
        harm(run, {"pause": Every(1.0, nemesis.pause(1.5))}, while_=run.producing, within=180)
        run.wait_for_producers()
        run.wait_until_drained()
        return run.judge(Expectations(faults=("pause",), recoveries=1, slots={POOL: SLOTS}))


def limits(folder: Path, profile: Profile) -> Report:
    """A pool where five may run on three hosts with ten slots each, and two of each key, while hosts are killed and
    frozen for longer than their leases: nowhere are there more at once, and all of them run."""
    with stage(folder, lease_seconds=1.0) as run:
        run.engine.pools.configure(POOL, max_running=CAP)
        _start_hosts(run, 3)
        count = 2_000 if profile is LONG else 180
        for kind, options in (
            ("stepped", {}),
            ("keyed", {"concurrency_key": "a"}),
            ("keyed", {"concurrency_key": "b"}),
        ):
            payloads = [
                {"key": f"{kind}{options}:{number}", "steps": 60 if number % 10 == 0 else 3}
                for number in range(ceil(count / 3))
            ]
            run.enqueue(f"fault.{kind}", payloads, **options)
        run.wait_for_claims()
        harm(
            run,
            {"freeze host": Every(1.0, nemesis.freeze_host(leases=2.0)), "kill host": Every(3.0, nemesis.kill_host)},
            while_=lambda: run.live() > 0,
            within=profile.jobs / 10 + 240,
        )
        run.wait_until_drained()
        return run.judge(
            Expectations(
                faults=("kill host", "freeze host"),
                recoveries=1,
                slots={POOL: SLOTS},
                at_once={f"pool {POOL}": CAP, "key a": 2, "key b": 2},
            )
        )


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        kills,
        frozen_worker,
        schedules,
        full_batches,
        held_interpreter,
        poison,
        endless,
        unknown_type,
        herd,
        lost_scripts,
        bad_weather,
        lost_answers,
        silent_server,
        pauses,
        limits,
        workflows,
    )
}


def _lease_everything(run: Stage, route: Route) -> None:
    """A worker that takes all there is and is never heard of again."""
    while run.engine.leases.lease(route, worker="ghost", token=new_token(), limit=1000, lease_ms=500).jobs:
        pass


def _start_hosts(run: Stage, count: int) -> None:
    for _ in range(count):
        run.start_host()
    run.wait_for_hosts()  # or much of what is asked for would wait until they have started, and meet no harm
