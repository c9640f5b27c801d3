"""``/metrics``: what a monitoring system scrapes, in Prometheus' text or OpenMetrics format.

Everything is read from the store at the moment of the scrape, so all web processes tell the same, and totals survive
restarts. The cost is constant in the backlog. While the store is away only ``mainspring_up 0`` is told: a figure that
is missing raises no false alarm, and an old one would hide a true one. ``docs/reference/metrics.md`` lists the names.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder

from dashboard.api.access import caller_of
from dashboard.api.errors import TooManyRequests, Unauthorized, answer_to
from dashboard.overall import UNREACHABLE
from dashboard.permissions import VIEW, requires
from jobs import api
from jobs.core.figures import OUTCOMES, Figures
from jobs.core.histogram import PER_DOUBLING, Histogram, upper_ms
from jobs.core.states import JobState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from jobs.api import Pool, Worker
    from jobs.api.schedules import LateSchedule

log = logging.getLogger(__name__)

BUDGET_SECONDS = 5.0
"""A scrape gives up in less than the ten seconds that scrapers wait."""

DOUBLINGS = 23
"""Bounds of the histograms: 1 ms, 2 ms, 4 ms … 70 min. Finer ones are kept in the store; see ``stats.durations``."""

COUNTERS = {
    "enqueued": ("jobs_enqueued", "Jobs created."),
    "started": ("attempts_started", "Attempts: times that a worker took a job to run it."),
    "retried": ("jobs_retried", "Failed attempts after which the job waits for another."),
    "dead": ("jobs_dead", "Jobs that went to the dead-letter list."),
    "resubmitted": ("jobs_resubmitted", "Dead or cancelled jobs that were made live again."),
    "duplicates": (
        "enqueue_duplicates",
        "Enqueues that made no job, because one of the same id or unique key is there.",
    ),
    "stale": ("stale_completions", "Ends of attempts that were refused, because the lease was somebody else's."),
}
"""Figure → name and meaning of its counter."""


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"mainspring_{name}", text, labels=labels)


class Collector:
    """Reads the store once for each scrape."""

    def collect(self) -> Iterator[Metric]:
        try:
            with api.budget(BUDGET_SECONDS):
                pools = api.pools.list()
                figures = api.stats.by_pool_and_type()
                workers = [worker for worker in api.workers.list() if worker.alive]
                late, is_paused = api.schedules.late(), api.scheduler.paused() is not None
        except UNREACHABLE as error:
            log.warning("metrics.store_away %s", error)
            yield _up(False)
            return
        yield _up(True)
        yield from _of_pools(pools)
        yield from _of_types(figures)
        yield from _of_workers(workers)
        yield from _of_schedules(late, is_paused)


def _up(is_up: bool) -> Metric:
    family = _gauge("up", "1 while the store answers. While it does not, nothing else is told.")
    family.add_metric([], int(is_up))
    return family


def _of_pools(pools: Sequence[Pool]) -> Iterator[Metric]:
    jobs = _gauge("jobs", "Jobs in each state.", "pool", "state")
    for pool in pools:
        for state in JobState:
            jobs.add_metric([pool.name, state.value], pool.count(state))
    yield jobs
    for name, text, value in (
        (
            "pool_parked_jobs",
            "Ready jobs that no worker runs, as their type is unknown or paused.",
            lambda pool: pool.parked,
        ),
        ("pool_slots", "Slots that are there, over all workers.", lambda pool: pool.slots_actual),
        ("pool_slots_wanted", "Slots wanted per worker process.", lambda pool: pool.slots),
        ("pool_workers", "Live worker processes that serve the pool.", lambda pool: pool.workers),
        ("pool_paused", "1 while the pool is paused.", lambda pool: int(pool.paused is not None)),
        (
            "pool_max_running_jobs",
            "Most jobs that may run at once, where a limit is set.",
            lambda pool: pool.max_running,
        ),
        (
            "pool_oldest_ready_age_seconds",
            "How long the job that waits longest has been ready; 0 where none waits.",
            lambda pool: pool.oldest_ready_age_seconds or 0.0,
        ),
        (
            "pool_predicted_wait_seconds",
            "How long a job that is enqueued now will wait; missing while nobody can know it.",
            lambda pool: pool.predicted_wait_seconds,
        ),
        ("pool_load_ratio", "(ready + running) / slots: for autoscalers. +Inf for jobs without slots.", _load),
    ):
        family = _gauge(name, text, "pool")
        for pool in pools:
            if (number := value(pool)) is not None:
                family.add_metric([pool.name], number)
        yield family


def _load(pool: Pool) -> float:
    if pool.load is not None:
        return pool.load
    return math.inf if pool.ready - pool.parked + pool.leased else 0.0


def _of_types(figures: dict[str, dict[str, Figures]]) -> Iterator[Metric]:
    rows = [([pool, name], of_type) for pool, types in figures.items() for name, of_type in types.items()]
    for figure, (name, text) in COUNTERS.items():
        family = CounterMetricFamily(f"mainspring_{name}", text, labels=["pool", "type"])
        for labels, of_type in rows:
            family.add_metric(labels, of_type.count(figure))
        yield family
    finished = CounterMetricFamily(
        "mainspring_attempts_finished", "Attempts that ended, by how.", labels=["pool", "type", "outcome"]
    )
    for labels, of_type in rows:
        for outcome in OUTCOMES:
            finished.add_metric([*labels, outcome], of_type.count(outcome))
    yield finished
    wait = HistogramMetricFamily(
        "mainspring_job_wait_seconds", "From ready to taken by a worker.", labels=["pool", "type"]
    )
    run = HistogramMetricFamily(
        "mainspring_job_run_seconds", "Of attempts that succeeded: from start to end.", labels=["pool", "type"]
    )
    for labels, of_type in rows:
        wait.add_metric(labels, _buckets(of_type.wait), of_type.wait.total_ms / 1000)
        run.add_metric(labels, _buckets(of_type.run), of_type.run.total_ms / 1000)
    yield wait
    yield run


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative, at whole doublings of a millisecond."""
    bounds = [doubling * PER_DOUBLING for doubling in range(DOUBLINGS)]
    inner = [(f"{upper_ms(bound) / 1000:g}", float(histogram.count_up_to(bound))) for bound in bounds]
    return [*inner, ("+Inf", float(histogram.count))]


def _of_workers(workers: list[Worker]) -> Iterator[Metric]:
    hosts = _gauge("hosts", "Worker hosts that are alive.")
    hosts.add_metric([], sum(worker.is_host for worker in workers))
    yield hosts
    processes = _gauge("workers", "Worker processes that are alive.")
    processes.add_metric([], sum(not worker.is_host for worker in workers))
    yield processes
    info = _gauge(
        "worker_info", "1 for each host and worker: where it runs, and which version.", "worker", "hostname", "version"
    )
    for worker in workers:
        info.add_metric([worker.id, worker.hostname, worker.version], 1)
    yield info
    for name, text, value in (
        ("worker_running_jobs", "Jobs that it runs now.", lambda worker: worker.running),
        ("worker_slots", "Jobs that it may run at once.", lambda worker: sum(worker.pools.values())),
        ("worker_resident_memory_bytes", "Memory of the process that is in RAM.", lambda worker: worker.rss),
        ("worker_heartbeat_age_seconds", "Since it was last heard of.", lambda worker: worker.heartbeat_age_seconds),
        ("worker_start_time_seconds", "When it started, Unix time.", lambda worker: worker.started_at_ms / 1000),
        ("worker_draining", "1 while it takes nothing new and is about to end.", lambda worker: int(worker.is_leaving)),
        ("worker_paused", "1 while its host is paused.", lambda worker: int(worker.paused is not None)),
    ):
        family = _gauge(name, text, "worker")
        for worker in workers:
            family.add_metric([worker.id], value(worker))
        yield family
    cpu = CounterMetricFamily("mainspring_worker_cpu_seconds", "Processor time it has used.", labels=["worker"])
    for worker in workers:
        cpu.add_metric([worker.id], worker.cpu_seconds)
    yield cpu


def _of_schedules(late: Sequence[LateSchedule], is_paused: bool) -> Iterator[Metric]:
    for name, text, value in (
        ("scheduler_paused", "1 while the whole scheduler is paused.", is_paused),
        ("schedules_late", "Schedules that should have fired and did not; no more than 1,000 are told.", len(late)),
        (
            "schedule_lateness_seconds",
            "How long the firing that waits longest has been due; 0 where none is late.",
            max((one.seconds for one in late), default=0.0),
        ),
    ):
        family = _gauge(name, text)
        family.add_metric([], value)
        yield family


REGISTRY = CollectorRegistry(auto_describe=False)
REGISTRY.register(Collector())


@require_safe
def metrics(request: HttpRequest) -> HttpResponseBase:
    """For a scraper with the token of ``SCHEDULER["METRICS_TOKEN"]`` or one of the API that may look, or for whoever
    may see the dashboard.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if not scheme:
        return _for_people(request)
    if scheme.lower() == "bearer" and api.stats.is_metrics_token(token.strip()):
        return _exposition(request)
    try:
        caller_of(request).refuse_without(VIEW)
    except (Unauthorized, TooManyRequests, PermissionDenied, DatabaseError) as error:
        return answer_to(request, error)
    return _exposition(request)


def _exposition(request: HttpRequest) -> HttpResponseBase:
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(REGISTRY), content_type=content_type)


_for_people = requires(VIEW, machine=True)(_exposition)
metrics.required_permissions = _for_people.required_permissions  # type: ignore[attr-defined]  # for the walk over URLs
