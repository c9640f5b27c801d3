"""``runworkers``: one worker host."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jobs import __version__
from jobs.api.producer import led_through
from jobs.conf import Settings, get_settings
from jobs.core.records import hide_secrets_in_records, log_to_stderr, name_jobs_in_records
from jobs.core.redaction import Redaction
from jobs.engine import Engine, get_engine
from jobs.engine.redaction import hidden_by
from jobs.exceptions import SchedulerError
from jobs.management.arguments import Parser
from jobs.management.base import SchedulerCommand
from jobs.management.durations import seconds
from jobs.management.errors import CommandFailed, usage
from jobs.runtime.hook import Hook
from jobs.runtime.process import new_host_id
from jobs.runtime.service import Service
from jobs.services.archivist import Archivist
from jobs.services.autoscaler import Autoscaler
from jobs.services.backlog import BacklogNotes
from jobs.services.bulk import BulkWorker
from jobs.services.deadlines import DeadlineService
from jobs.services.definitions import Definitions
from jobs.services.historian import Historian
from jobs.services.limiter import Limiter
from jobs.services.pauses import PauseKeeper
from jobs.services.promoter import Promoter
from jobs.services.pruner import Pruner
from jobs.services.queue_watch import QueueWatch
from jobs.services.reconciler import Reconciler
from jobs.services.recoverer import Recoverer
from jobs.services.relay import RelayService
from jobs.services.run_recorder import RunRecorder
from jobs.services.ticker import Ticker
from jobs.services.undertaker import Undertaker
from jobs.store import embedded
from jobs.store.topology import checked_pool
from jobs.worker.options import WorkerOptions
from jobs.worker.supervisor import Supervisor

MOST_SLOTS = 1000
"""Threads of one pool in one process. More processes do more than more threads would."""

MOST_WEIGHT = 1000

SHORTEST_LEASE = 0.1
"""Seconds. It is renewed at a third of it: less would be lost to the moods of a scheduler."""


class Command(SchedulerCommand):
    help = "Run a worker host: lease jobs and run them until told to stop. Ctrl-C or SIGTERM stops it in good order."
    examples = """
        manage.py runworkers
        manage.py runworkers --pool critical --pool default --processes 4
        manage.py runworkers --burst
    """

    def options(self, parser: Parser) -> None:
        add = parser.add_argument
        add(
            "--pool",
            action="append",
            default=[],
            type=_pool,
            metavar="NAME[:WEIGHT]",
            help="serve this pool; may be repeated (default: all). Weights are for --shared-slots",
        )
        add("--processes", type=_at_least(1), default=1, metavar="N", help="worker processes (default: 1)")
        add(
            "--concurrency",
            type=_between(1, MOST_SLOTS),
            metavar="N",
            help="slots per process and pool (default: the pool's)",
        )
        add(
            "--shared-slots",
            type=_between(1, MOST_SLOTS),
            metavar="N",
            help="all pools of a process share N slots, by weight; idle ones are used by the others",
        )
        add("--burst", action="store_true", help="exit when nothing is ready, due or running")
        add("--max-in-flight", type=_at_least(1), metavar="N", help="most jobs that one process holds, running or not")
        add("--max-jobs", type=_at_least(1), metavar="N", help="replace a process after it has run as many jobs")
        add("--max-rss", type=_at_least(1), metavar="MB", help="replace a process that uses more memory")
        add("--grace", type=seconds, metavar="SECONDS", help="time for running jobs to finish at the end (default: 25)")
        add("--lease", type=_lease, metavar="SECONDS", help="length of a lease (default: SCHEDULER_LEASE_SECONDS)")
        add("--no-schedules", action="store_true", help="do not fire schedules from this host")
        add("--health-port", type=_at_least(0), metavar="PORT", help="serve /livez and /readyz on the loopback address")
        add("--reload", action="store_true", help="restart when source files change")

    def handle(self, *_args: Any, **options: Any) -> None:
        # Not the handle of other commands: a host has no deadline for its talks with the store.
        if options["verbosity"] > 0:
            log_to_stderr()
        name_jobs_in_records()
        hide_secrets_in_records(Redaction(get_settings().redact_keys), hidden_by)
        try:
            supervisor = _supervisor(_worker_options(options, get_settings()))
            exit_code = supervisor.run()
        except SchedulerError as error:
            raise CommandFailed.of(error) from error
        if supervisor.wants_restart:
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - our own command line again
        sys.exit(exit_code)


def _supervisor(options: WorkerOptions) -> Supervisor:
    settings = get_settings()
    embedded.ensure(settings.redis_url, settings.var_dir)  # before the first fork, so that all children hold it
    engine = get_engine()
    options = replace(options, configured=_configured(engine))
    return Supervisor(engine, options, _services(engine, options), version=settings.version or __version__)


def _configured(engine: Engine) -> dict[str, int]:
    """What people have set for pools by now: the command line of this host goes before it, and before nothing that a
    machine decides. A store that is away is waited for by the workers, not here."""
    try:
        settings = engine.pools.settings()
    except SchedulerError:
        return {}
    return {
        name: stored.slots for name, stored in settings.items() if stored.slots is not None and not stored.is_autoscaled
    }


def _services(engine: Engine, options: WorkerOptions) -> list[Service]:
    """What a host does besides running jobs."""
    return [
        Promoter(engine),
        Limiter(engine),
        PauseKeeper(engine),
        Autoscaler(engine, new_host_id()),
        Recoverer(engine, options.lease_seconds),
        RelayService(engine),
        DeadlineService(engine),
        RunRecorder(engine),
        Pruner(engine),
        BulkWorker(engine),
        Archivist(engine.settings.audit_days),
        Historian(engine),
        BacklogNotes(engine),
        Reconciler(engine),
        *(_schedules(engine) if options.schedules else ()),
        *_hooks(engine),
    ]


def _hooks(engine: Engine) -> Iterator[Service]:
    """What the project wants to be called for, where it does."""
    settings = engine.settings
    if settings.on_dead:
        yield Undertaker(engine, Hook(settings.on_dead))
    if settings.on_long_queue:
        yield QueueWatch(engine, Hook(settings.on_long_queue), settings.long_queue_seconds)


def _schedules(engine: Engine) -> tuple[Service, Service]:
    definitions = Definitions(engine)
    return definitions, Ticker(engine, definitions, through=led_through)


def _worker_options(options: dict[str, Any], settings: Settings) -> WorkerOptions:
    max_rss, grace, lease = options["max_rss"], options["grace"], options["lease"]
    weights = {checked_pool(name): weight for name, weight in options["pool"]}
    if options["shared_slots"] is None and any(weight != 1 for weight in weights.values()):
        raise usage("Weights of pools need --shared-slots N.", fix="Without it each pool has slots of its own.")
    return WorkerOptions(
        pools=tuple(weights),
        shared_slots=options["shared_slots"],
        weights=weights,
        processes=options["processes"],
        concurrency=options["concurrency"],
        burst=options["burst"],
        max_in_flight=options["max_in_flight"],
        max_jobs=options["max_jobs"],
        max_rss_bytes=None if max_rss is None else max_rss << 20,
        grace_seconds=settings.grace_seconds if grace is None else grace,
        lease_seconds=settings.lease_seconds if lease is None else lease,
        schedules=not options["no_schedules"],
        health_port=options["health_port"],
        reload=options["reload"],
    )


def _pool(text: str) -> tuple[str, int]:
    """``NAME`` or ``NAME:WEIGHT``."""
    name, colon, weight = text.partition(":")
    return name, _between(1, MOST_WEIGHT)(weight) if colon else 1


def _at_least(least: int) -> Callable[[str], int]:
    return _between(least, sys.maxsize)


def _between(least: int, most: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise ArgumentTypeError(f"must be at least {least}, not {value}")
        if value > most:
            raise ArgumentTypeError(f"must be at most {most}, not {value}")
        return value

    return whole_number


def _lease(text: str) -> float:
    length = seconds(text)
    if length < SHORTEST_LEASE:
        raise ArgumentTypeError(f"must be at least {SHORTEST_LEASE:g} seconds, not {text}")
    return length
