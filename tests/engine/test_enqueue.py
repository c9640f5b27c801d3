"""Creating jobs: what comes back, what is stored, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.core.job import JobSpec, moment
from jobs.core.states import JobState
from jobs.engine import Engine
from jobs.exceptions import JobNotFound, OptionInvalid, PayloadTooLarge
from tests.support.clock import ManualClock
from tests.support.steps import Steps, everything


def test_a_job_is_ready_at_once_and_reads_back_as_it_was_asked_for(engine: Engine, clock: ManualClock) -> None:
    now = moment(clock.now_ms())
    spec = JobSpec(
        type="email.send",
        pool="critical",
        priority=5,
        max_retries=7,
        max_crashes=2,
        timeout=12.5,
        tags=("a", "b"),
        meta={"tenant": "x"},
        concurrency_key="c",
        rate_key="r",
    )

    [created] = engine.jobs.enqueue(spec, [b'{"to":"a@example.com"}'])

    assert (created.state, created.run_at, created.existing) == ("ready", now, False)
    job = engine.jobs.get(created.id)
    assert (job.id, job.type, job.pool, job.state) == (created.id, "email.send", "critical", JobState.READY)
    assert (job.priority, job.max_retries, job.max_crashes, job.timeout) == (5, 7, 2, 12.5)
    assert (job.payload, job.tags, job.meta) == ({"to": "a@example.com"}, ["a", "b"], {"tenant": "x"})
    assert (job.concurrency_key, job.rate_key, job.unique_key) == ("c", "r", None)
    assert (job.created_at, job.run_at, job.ready_at) == (now, now, now)
    assert (job.attempt, job.crashes, job.fencing_token, job.attempts) == (0, 0, 0, [])
    assert [job.leased_at, job.started_at, job.finished_at, job.worker, job.error, job.result] == [None] * 6


def test_many_jobs_come_back_in_the_order_of_their_payloads(engine: Engine) -> None:
    payloads = [b'{"n":%d}' % number for number in range(2_500)]

    created = engine.jobs.enqueue(JobSpec(type="t"), payloads)

    ids = [job.id for job in created]
    assert ids == sorted(set(ids))
    jobs = engine.jobs.get_many([ids[0], ids[999], ids[1_000], ids[2_499]])
    assert [job.payload["n"] for job in jobs if job] == [0, 999, 1_000, 2_499]


def test_no_payloads_make_no_jobs(engine: Engine, steps: Steps) -> None:
    assert engine.jobs.enqueue(JobSpec(type="t"), []) == []


@pytest.mark.parametrize("size", [0, 1])
def test_a_payload_may_have_as_many_bytes_as_the_limit_and_not_one_more(engine: Engine, size: int) -> None:
    payload = b'{"x":"%s"}' % (b"a" * (262_144 - 8 + size))

    if size == 0:
        [created] = engine.jobs.enqueue(JobSpec(type="t"), [payload])
        assert engine.jobs.get(created.id).payload == {"x": "a" * 262_136}
    else:
        with pytest.raises(PayloadTooLarge, match="262145 bytes"):
            engine.jobs.enqueue(JobSpec(type="t"), [b"{}", payload])
        assert engine.jobs.page().items == []


def test_a_time_in_the_past_means_now(engine: Engine, clock: ManualClock) -> None:
    past = datetime(1969, 7, 20, tzinfo=UTC)

    [created] = engine.jobs.enqueue(JobSpec(type="t", run_at_ms=int(past.timestamp() * 1000)), [b"{}"])

    assert created.state == "ready"
    job = engine.jobs.get(created.id)
    assert (job.run_at, job.ready_at) == (past, moment(clock.now_ms()))
    assert Steps(engine).lease().id == created.id


@pytest.mark.parametrize("spec", [{"delay_ms": 10**15}, {"run_at_ms": 10**18}, {"run_at_ms": -(10**18)}])
def test_a_time_that_no_calendar_has_is_refused_and_nothing_is_stored(engine: Engine, spec: dict[str, Any]) -> None:
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(type="t", **spec), [b"{}"])

    assert engine.jobs.page().items == []


@pytest.mark.parametrize("pool", ["", "-x", "a b", "{x}", "x" * 65, "a\n", "ü", "a:b", "\ud800"])
def test_a_pool_of_an_impossible_name_is_refused(engine: Engine, pool: str) -> None:
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(type="t", pool=pool), [b"{}"])

    assert engine.topology.pools() == []


@pytest.mark.parametrize("pool", ["a", "A.b_c-9", "9", "x" * 64, "a.1.0"])
def test_any_other_name_makes_a_pool_when_it_is_first_used(engine: Engine, pool: str) -> None:
    [created] = engine.jobs.enqueue(JobSpec(type="t", pool=pool), [b"{}"])

    assert engine.jobs.get(created.id).pool == pool
    assert engine.topology.pools() == [pool]


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "\ud800"},
        {"tags": ("\udfff",)},
        {"meta": {"k": "\ud800"}},
        {"concurrency_key": "\ud800"},
        {"meta": {"k": "x" * 70_000}},
    ],
)
def test_words_that_cannot_be_stored_are_refused_and_nothing_is_stored(engine: Engine, spec: dict[str, Any]) -> None:
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(**{"type": "t", **spec}), [b"{}"])

    assert engine.jobs.page().items == []


def test_ids_can_be_had_before_their_jobs(engine: Engine) -> None:
    ids = engine.jobs.new_ids("default", 3)
    assert engine.jobs.get_many(ids) == [None, None, None]

    created = engine.jobs.enqueue(JobSpec(type="t"), [b"{}"] * 3, ids=ids)

    assert [job.id for job in created] == ids
    assert all(engine.jobs.get_many(ids))


def test_ids_that_do_not_fit_the_payloads_are_refused(engine: Engine) -> None:
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(type="t"), [b"{}"] * 2, ids=engine.jobs.new_ids("default", 1))
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(type="t"), [b"{}"], ids=["mine"])


@pytest.mark.parametrize(
    "job_id",
    [
        "",
        "nothing",
        "\ud800",
        "x" * 5_000,
        "00000000000000000000-default.1.0",
        "00000000000000000000-nowhere.1.0",
        "00000000000000000000-default.1.7",
        "00000000000000000000-default." + "1" * 5_000 + ".0",
        "a\0b",
    ],
)
def test_an_id_that_no_job_has_is_not_found(steps: Steps, job_id: str) -> None:
    steps.enqueue()

    assert steps.engine.jobs.find(job_id) is None
    for ask in (steps.engine.jobs.get, steps.engine.jobs.cancel, steps.engine.jobs.run_now, steps.engine.jobs.discard):
        with pytest.raises(JobNotFound):
            ask(job_id)
    with pytest.raises(JobNotFound):
        steps.engine.jobs.resubmit(job_id)


def test_looking_for_a_job_stores_nothing(steps: Steps) -> None:
    steps.enqueue()
    before = everything(steps.engine.store)

    steps.engine.jobs.get_many(["a", "b"])
    steps.engine.jobs.page()

    assert everything(steps.engine.store) == before


def test_batches_are_bounded_by_their_bytes_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = type(engine.store).run

    def counted(store: object, name: str, keys: object, items: list[bytes] = [], /, **arguments: object) -> object:  # noqa: B006
        if name == "job_enqueue":
            sizes.append(sum(map(len, items)))
        return run(store, name, keys, items, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(type(engine.store), "run", counted)
    payload = b'{"x":"%s"}' % (b"a" * 250_000)

    created = engine.jobs.enqueue(JobSpec(type="t"), [payload] * 40)

    assert len(created) == 40
    assert max(sizes) < 5_000_000


def test_created_at_is_the_servers_time_and_not_the_producers(engine: Engine, clock: ManualClock) -> None:
    clock.advance(timedelta(days=400).total_seconds())

    [created] = engine.jobs.enqueue(JobSpec(type="t"), [b"{}"])

    assert engine.jobs.get(created.id).created_at == moment(clock.now_ms())


def test_a_job_in_a_pool_that_another_process_has_just_made_is_found(engine: Engine) -> None:
    engine.jobs.enqueue(JobSpec(type="t"), [b"{}"])
    other = Engine(engine.store, engine.settings)

    [created] = other.jobs.enqueue(JobSpec(type="t", pool="brand-new"), [b"{}"])

    assert engine.jobs.get(created.id).pool == "brand-new"
    assert engine.pools.get("brand-new").ready == 1


def test_a_producer_learns_of_new_partitions_within_a_second(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    Steps(engine).enqueue()
    engine.store.client.hset(f"{engine.store.namespace}:{{settings}}:topology", "default", b'{"1":1,"2":3}')
    monkeypatch.setattr("jobs.store.topology.REFRESH_SECONDS", 0.0)

    created = [Steps(engine).enqueue() for _ in range(30)]

    assert {job_id.split(".")[1] for job_id in created} == {"2"}
    assert all(engine.jobs.get_many(created))
    assert len(engine.topology.partitions("default")) == 4
