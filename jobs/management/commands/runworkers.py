"""``manage.py runworkers``: one worker host."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from jobs.conf import get_settings
from jobs.engine import Engine, get_engine
from jobs.runtime.service import Service
from jobs.services.promoter import Promoter
from jobs.services.pruner import Pruner
from jobs.services.reconciler import Reconciler
from jobs.services.recoverer import Recoverer
from jobs.store import embedded
from jobs.worker.options import WorkerOptions
from jobs.worker.supervisor import Supervisor


class Command(BaseCommand):
    help = "Runs a worker host: leases jobs and runs them until it is told to stop."
    requires_system_checks = ()  # they import the URLs and all behind them, which no worker needs

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--pool",
            action="append",
            default=[],
            metavar="NAME",
            help="serve this pool; may be repeated (default: every pool)",
        )
        parser.add_argument(
            "--processes", type=_at_least(1), default=1, metavar="N", help="worker processes (default: 1)"
        )
        parser.add_argument(
            "--concurrency",
            type=_at_least(1),
            metavar="N",
            help="slots per process and pool (default: what the pool says)",
        )
        parser.add_argument("--burst", action="store_true", help="exit when nothing is ready, due or running")
        parser.add_argument(
            "--max-in-flight", type=_at_least(1), metavar="N", help="most jobs that one process holds, running or not"
        )
        parser.add_argument("--max-jobs", type=_at_least(1), metavar="N", help="replace a process after as many jobs")
        parser.add_argument(
            "--max-rss", type=_at_least(1), metavar="MB", help="replace a process that uses more memory"
        )
        parser.add_argument(
            "--grace", type=_seconds(0), metavar="SECONDS", help="time to finish running jobs at the end (default: 25)"
        )
        parser.add_argument(
            "--lease",
            type=_seconds(0.1),
            metavar="SECONDS",
            help="length of a lease (default: SCHEDULER_LEASE_SECONDS)",
        )
        parser.add_argument("--no-schedules", action="store_true", help="do not fire schedules from this host")
        parser.add_argument(
            "--health-port", type=_at_least(0), metavar="PORT", help="serve /livez and /readyz on loopback"
        )
        parser.add_argument("--reload", action="store_true", help="restart when source files change")

    def handle(self, *args: Any, **options: Any) -> None:
        _log_to_stderr(options["verbosity"])
        settings = get_settings()
        embedded.ensure(settings.redis_url, settings.var_dir)  # before the first fork, so that all children hold it
        engine = get_engine()
        worker_options = _worker_options(options, settings.grace_seconds, settings.lease_seconds)
        supervisor = Supervisor(engine, worker_options, _services(engine, worker_options))
        exit_code = supervisor.run()
        if supervisor.wants_restart:
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - our own command line again
        sys.exit(exit_code)


def _services(engine: Engine, options: WorkerOptions) -> list[Service]:
    """What a host does besides running jobs."""
    return [
        Promoter(engine),
        Recoverer(engine, options.lease_seconds),
        Pruner(engine),
        Reconciler(engine),
    ]


def _worker_options(options: dict[str, Any], grace_seconds: float, lease_seconds: float) -> WorkerOptions:
    max_rss = options["max_rss"]
    return WorkerOptions(
        pools=tuple(dict.fromkeys(options["pool"])),
        processes=options["processes"],
        concurrency=options["concurrency"],
        burst=options["burst"],
        max_in_flight=options["max_in_flight"],
        max_jobs=options["max_jobs"],
        max_rss_bytes=None if max_rss is None else max_rss << 20,
        grace_seconds=grace_seconds if options["grace"] is None else options["grace"],
        lease_seconds=lease_seconds if options["lease"] is None else options["lease"],
        schedules=not options["no_schedules"],
        health_port=options["health_port"],
        reload=options["reload"],
    )


def _at_least(least: int) -> Any:
    def whole_number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return whole_number


def _seconds(least: float) -> Any:
    def seconds(text: str) -> float:
        value = float(text)
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"must be at least {least:g} seconds, not {text}")
        return value

    return seconds


def _log_to_stderr(verbosity: int) -> None:
    """A worker without a logging set-up of its own still says what happens to it."""
    logger = logging.getLogger("jobs")
    if not logger.hasHandlers() and verbosity > 0:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
