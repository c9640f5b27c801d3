"""What a page of the dashboard costs with a million jobs, beside the same page with a thousand.

Processor time of the web process and of the server per request, so that a busy machine does not change the figures;
round trips to the server and queries of the database, which are counted; and the time that a reader waits, which a busy
machine does change. What pages remember for some seconds is forgotten before each request.

The thousand and the million are made in the same minutes, in namespaces of their own: pages also tell what was done
lately, and that costs by the time that it took, not by the backlog.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any, NamedTuple

from benchmarks.project import BATCH, Seeder, session_of, set_up
from benchmarks.server import BenchmarkServer

FEW, MANY, SHORT_MANY = 1_000, 1_000_000, 50_000
ROUNDS, SHORT_ROUNDS = 40, 8
SLICES = 100
"""Each namespace gets a hundredth of its jobs in turn."""

RATIO_BAR, P95_BAR = 1.3, 0.2

PATHS = (
    "/dashboard/",
    "/dashboard/jobs/",
    "/dashboard/jobs/?state=ready",
    "/dashboard/jobs/?state=scheduled",
    "/dashboard/jobs/?state=succeeded",
    "/dashboard/jobs/?search=funds",
    "/dashboard/jobs/?state=dead&pool=billing",
    "/dashboard/dead/",
    "/dashboard/pools/",
    "/dashboard/pools/?name=billing",
    "/dashboard/workers/",
    "/dashboard/topology/",
    "/dashboard/schedules/",
    "/dashboard/workflows/",
    "/dashboard/charts/",
    "/dashboard/audit/",
    "/dashboard/snapshot/",
)


class Cost(NamedTuple):
    """Of one page: median processor time and the 95th percentile of the wait, seconds; how often it asks whom."""

    cpu: float
    p95: float
    round_trips: int
    queries: int


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Whether every page keeps both bars."""
    rounds = SHORT_ROUNDS if short else ROUNDS
    many = SHORT_MANY if short else MANY
    with BenchmarkServer(persistent=persistent) as server:
        set_up(server)
        client = _client()
        for _ in range(SLICES):
            for namespace, number in (("few", FEW), ("many", many)):
                with _namespace(namespace):
                    Seeder().make(number // SLICES, batch=min(BATCH, number // SLICES // len(Seeder.MIX)))
        _settle(server)
        few, lots = (_costs(client, server, namespace, rounds) for namespace in ("few", "many"))
    rows = [
        {
            "page": path,
            "cpu_ms": round(1000 * lots[path].cpu, 1),
            "ratio": round(lots[path].cpu / few[path].cpu, 2),
            "p95_ms": round(1000 * lots[path].p95, 1),
            "round_trips": [few[path].round_trips, lots[path].round_trips],
            "queries": [few[path].queries, lots[path].queries],
        }
        for path in PATHS
    ]
    holds = all(row["ratio"] <= RATIO_BAR and row["p95_ms"] <= 1000 * P95_BAR for row in rows)  # type: ignore[operator]
    _tell(rows, many, as_json=as_json)
    return holds


@contextmanager
def _namespace(name: str) -> Iterator[None]:
    """In here the project has other jobs."""
    from django.conf import settings
    from django.test import override_settings

    with override_settings(SCHEDULER={**settings.SCHEDULER, "NAMESPACE": name}):
        yield


def _costs(client: Any, server: BenchmarkServer, namespace: str, rounds: int) -> dict[str, Cost]:
    with _namespace(namespace):
        return {path: _cost(client, server, path, rounds) for path in PATHS}


def _client() -> Any:
    from django.conf import settings
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client()
    client.cookies["sessionid"] = session_of("ana")
    return client


def _settle(server: BenchmarkServer) -> None:
    """Waits until the server is done with what seeding left it to do: its processor time counts here."""
    until = time.monotonic() + 120
    spent = server.cpu_seconds()
    while time.monotonic() < until:
        time.sleep(1)
        before, spent = spent, server.cpu_seconds()
        if spent - before < 0.01 and not server.client.info("persistence")["aof_rewrite_in_progress"]:
            return


def _cost(client: Any, server: BenchmarkServer, path: str, rounds: int) -> Cost:
    from dashboard import reads

    spent, waits = [], []
    for number in range(rounds + 3):
        reads.forget()
        cpu, began = time.process_time() + server.cpu_seconds(), time.perf_counter()
        response = client.get(path)
        waited = time.perf_counter() - began
        assert response.status_code == 200, (path, response.status_code)
        if number >= 3:  # the first ones load scripts and compile templates
            spent.append(time.process_time() + server.cpu_seconds() - cpu)
            waits.append(waited)
    return Cost(median(spent), quantiles(waits, n=20)[-1], *_asked(client, path))


def _asked(client: Any, path: str) -> tuple[int, int]:
    """Round trips to the server and queries of the database, with nothing remembered."""
    import redis
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from dashboard import reads

    reads.forget()
    connection_class: Any = redis.connection.AbstractConnection
    send, trips = connection_class.send_packed_command, 0

    def counting(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal trips
        trips += 1
        return send(self, command, *args, **kwargs)

    connection_class.send_packed_command = counting
    try:
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
    finally:
        connection_class.send_packed_command = send
    return trips, len(queries)


def _tell(rows: list[dict[str, Any]], many: int, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"jobs": many, "beside": FEW, "pages": rows}))
        return
    print(f"{many:,} jobs beside {FEW:,}: processor time per page, its ratio, and the wait (p95)")
    for row in rows:
        asked = f"{'→'.join(map(str, row['round_trips']))} trips, {'→'.join(map(str, row['queries']))} queries"
        print(f"  {row['page']:<40} {row['cpu_ms']:>6.1f} ms × {row['ratio']:.2f} {row['p95_ms']:>7.1f} ms  {asked}")
