"""What a monitoring system scrapes: who may, under which names, and at what cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from jobs import api
from jobs.engine import Completion, Failure, WorkerInfo, get_engine, new_token
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

TOKEN = "a token for scrapers"


@pytest.fixture
def scrape(settings: SettingsWrapper) -> Callable[[], dict[tuple[str, frozenset[tuple[str, str]]], float]]:
    """All samples by name and labels, as a scraper with the token gets them."""
    settings.SCHEDULER = {**settings.SCHEDULER, "METRICS_TOKEN": TOKEN}
    client = Client(headers={"host": "localhost", "authorization": f"Bearer {TOKEN}"})

    def read() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        response = client.get("/metrics")
        assert response.status_code == 200
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(response.content.decode())
            for sample in family.samples
        }

    return read


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return f"mainspring_{name}", frozenset(labels.items())


def work(succeed: int, fail: int, pool: str = "billing", type: str = "metrics.mail") -> None:
    """So many attempts that end well, and then badly."""
    engine = get_engine()
    api.enqueue_many(type, [{}] * (succeed + fail), pool=pool, allow_unknown=True)
    (route,) = engine.topology.partitions(pool)
    jobs = engine.leases.lease(route, worker="w", token=new_token(), limit=1000, lease_ms=10_000).jobs
    engine.leases.complete(route, [Completion(job.id, job.token, job.type, job.leased_at) for job in jobs[:succeed]])
    engine.leases.fail(
        route, [Failure(job.id, job.token, job.type, job.leased_at, "retry", 60_000) for job in jobs[succeed:]]
    )


class TestWhoMayScrape:
    def test_the_token_opens_without_a_login(self, scrape: Callable[[], Any]) -> None:
        assert scrape()[key("up")] == 1

    @pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer ü"])
    def test_another_token_does_not(self, scrape: Callable[[], Any], header: str) -> None:
        client = Client(headers={"host": "localhost", "authorization": header})
        response = client.get("/metrics")

        assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")

    @pytest.mark.parametrize("header", ["Bearer ", "Bearer x"])
    def test_without_a_token_in_the_settings_none_fits(self, header: str) -> None:
        client = Client(headers={"host": "localhost", "authorization": header})
        assert client.get("/metrics").status_code == 401

    @pytest.mark.parametrize(("role", "status"), [("anonymous", 401), ("stranger", 403), ("viewer", 200)])
    @pytest.mark.django_db
    def test_a_person_needs_the_permission_to_see(self, login: Login, role: str, status: int) -> None:
        assert login(role).get("/metrics").status_code == status

    def test_it_only_tells(self, scrape: Callable[[], Any]) -> None:
        client = Client(headers={"host": "localhost", "authorization": f"Bearer {TOKEN}"})
        assert client.post("/metrics").status_code == 405


def test_attempts_are_counted_by_pool_type_and_outcome(scrape: Callable[[], Any]) -> None:
    work(succeed=3, fail=2)

    samples = scrape()

    of_type = {"pool": "billing", "type": "metrics.mail"}
    assert samples[key("jobs_enqueued_total", **of_type)] == 5
    assert samples[key("attempts_started_total", **of_type)] == 5
    assert samples[key("attempts_finished_total", **of_type, outcome="succeeded")] == 3
    assert samples[key("attempts_finished_total", **of_type, outcome="failed")] == 2
    assert samples[key("jobs_retried_total", **of_type)] == 2
    assert samples[key("jobs", pool="billing", state="succeeded")] == 3
    assert samples[key("jobs", pool="billing", state="retry_wait")] == 2


def test_waiting_and_running_are_histograms_that_agree_with_the_counters(scrape: Callable[[], Any]) -> None:
    work(succeed=4, fail=0)

    samples = scrape()

    of_type = {"pool": "billing", "type": "metrics.mail"}
    for name in ("job_wait_seconds", "job_run_seconds"):
        bounds = [
            (label["le"], number)
            for (sample, labels), number in samples.items()
            if sample == f"mainspring_{name}_bucket" and (label := dict(labels))
        ]
        ordered = [number for _, number in sorted(bounds, key=lambda bound: float(bound[0]))]
        assert ordered == sorted(ordered)
        assert ordered[-1] == samples[key(f"{name}_count", **of_type)] == 4
        assert samples[key(f"{name}_sum", **of_type)] >= 0


def test_counters_only_grow(scrape: Callable[[], Any]) -> None:
    work(succeed=1, fail=1)
    before = scrape()
    for _ in range(3):
        work(succeed=2, fail=1)
        after = scrape()
        counters = [name for name in before if name[0].endswith(("_total", "_bucket", "_count"))]
        assert counters
        assert all(after[name] >= before[name] for name in counters)
        before = after


def test_what_an_external_autoscaler_needs_is_told_for_each_pool(scrape: Callable[[], Any]) -> None:
    api.enqueue_many("metrics.mail", [{}] * 30, pool="billing", allow_unknown=True)
    assert scrape()[key("pool_load_ratio", pool="billing")] == float("inf")

    common: dict[str, Any] = {"host": "h", "hostname": "box", "pid": 1, "started_at_ms": 5_000, "state": "consuming"}
    info = WorkerInfo(id="h.1", pools={"billing": 10}, rss=2**20, cpu_seconds=1.5, running=4, version="9", **common)
    get_engine().workers.beat([info], ttl_ms=60_000)
    samples = scrape()

    assert samples[key("pool_load_ratio", pool="billing")] == 3.0
    assert samples[key("pool_slots", pool="billing")] == 10
    assert samples[key("pool_oldest_ready_age_seconds", pool="billing")] >= 0
    assert samples[key("pool_predicted_wait_seconds", pool="billing")] > 0
    assert samples[key("worker_resident_memory_bytes", worker="h.1")] == 2**20
    assert samples[key("worker_cpu_seconds_total", worker="h.1")] == 1.5
    assert samples[key("worker_running_jobs", worker="h.1")] == 4
    assert samples[key("worker_info", worker="h.1", hostname="box", version="9")] == 1


def test_duplicates_and_stale_ends_are_counted(scrape: Callable[[], Any]) -> None:
    engine = get_engine()
    for _ in range(3):
        api.enqueue("metrics.mail", {}, pool="billing", unique_key="one", allow_unknown=True)
    (route,) = engine.topology.partitions("billing")
    (job,) = engine.leases.lease(route, worker="w", token="t1", limit=1, lease_ms=10_000).jobs
    engine.leases.complete(route, [Completion(job.id, "another token", job.type, job.leased_at)])

    samples = scrape()
    of_type = {"pool": "billing", "type": "metrics.mail"}
    assert samples[key("enqueue_duplicates_total", **of_type)] == 2
    assert samples[key("stale_completions_total", **of_type)] == 1


def test_while_the_store_is_away_only_that_is_told(
    scrape: Callable[[], Any], settings: SettingsWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.metrics.BUDGET_SECONDS", 0.2)
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": "redis://127.0.0.1:1/0"}

    assert scrape() == {key("up"): 0}


def test_names_and_types_follow_the_conventions_and_stand_in_the_reference(viewer: Client) -> None:
    work(succeed=1, fail=0)
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
    families = list(text_string_to_metric_families(viewer.get("/metrics").content.decode()))

    for family in families:
        assert family.documentation.endswith(".")
        assert family.name.startswith("mainspring_")
        shown = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{shown}`" in reference, shown


def test_a_scrape_costs_the_same_whatever_the_backlog(viewer: Client, shop: Shop) -> None:
    sent = 0
    send = redis.connection.AbstractConnection.send_packed_command

    def counting(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal sent
        sent += 1
        return send(self, command, *args, **kwargs)

    def cost() -> int:
        nonlocal sent
        sent = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(redis.connection.AbstractConnection, "send_packed_command", counting)
            assert viewer.get("/metrics").status_code == 200
        return sent

    shop.many(100)
    cost()
    few = cost()
    shop.many(3_000)

    assert cost() <= few <= 40


def test_openmetrics_is_told_to_who_asks_for_it(viewer: Client) -> None:
    response = viewer.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})

    assert response["Content-Type"].startswith("application/openmetrics-text")
    assert response.content.endswith(b"# EOF\n")
