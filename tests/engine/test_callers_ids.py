"""Ids that callers choose: unique over all pools, found without knowing the pool, free again when the job is gone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from zlib import crc32

import pytest
import redis

from jobs.core.job import JobSpec, Route, Unique
from jobs.engine import Engine
from jobs.engine.holders import Holders, forget_id
from jobs.exceptions import DuplicateJob, OptionInvalid
from jobs.store import connection
from jobs.store.keys import HOLDER_BUCKETS
from jobs.store.scripts import Script
from tests.support.steps import Steps, everything


def enqueue(engine: Engine, job_id: str, pool: str = "default", payload: bytes = b"{}") -> str:
    return engine.jobs.enqueue(JobSpec(type="t", pool=pool, id=job_id), [payload])[0].id


def directory(engine: Engine) -> dict[str, str]:
    return dict(pair for bucket in range(256) for pair in Holders(engine.store, "ids").sweep(bucket))


def test_a_job_that_takes_the_id_while_the_old_one_is_forgotten_keeps_it(engine: Engine) -> None:
    enqueue(engine, "mine")
    route = engine.topology.route_for("default", "mine")
    forget_id(engine.store, route, "mine", "")  # of a job that was removed, when the one above had just come

    assert directory(engine) == {"mine": str(route)}
    assert engine.jobs.get("mine").state == "ready"


@pytest.mark.parametrize(
    "job_id",
    [
        "1",
        "order:42",
        "a/b/c?d=e&f#g",
        "{}",
        "{default.1.0}",
        'it\'s "quoted"',
        "two words",
        "%2F..\\",
        "ünï ☃ 日本語 🚀",
        "x" * 200,
        "é" * 100,
        "00000000000000000000",
        "00000000000000000000-default.1",
        "UPPERCASE00000000000-default.1.0",
    ],
)
def test_any_printable_text_can_be_an_id(engine: Engine, steps: Steps, job_id: str) -> None:
    assert enqueue(engine, job_id, payload=b"[1]") == job_id

    assert engine.jobs.get(job_id).payload == [1]
    assert [job.id for job in engine.jobs.page().items] == [job_id]
    assert steps.complete(steps.lease()) == "ok"
    assert engine.jobs.get(job_id).state == "succeeded"
    engine.jobs.discard(job_id)
    assert engine.jobs.find(job_id) is None
    assert directory(engine) == {}


@pytest.mark.parametrize(
    "job_id",
    [
        "",
        " ",
        " x",
        "x ",
        "a\nb",
        "a\0b",
        "\x1b[31m",
        "\ud800",
        "x" * 201,
        "é" * 101,
        "00000000000000000000-default.1.0",
        "00000000000000000000-anything.99.7",
    ],
)
@pytest.mark.parametrize("with_key", [False, True])
def test_anything_else_is_refused_and_nothing_is_stored(engine: Engine, job_id: str, with_key: bool) -> None:
    unique = Unique(key="k") if with_key else None
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(type="t", id=job_id, unique=unique), [b"{}"])

    assert everything(engine.store) == {}


@pytest.mark.parametrize("pool", ["default", "other"])
@pytest.mark.parametrize("state", ["ready", "succeeded", "dead"])
def test_an_id_is_one_over_all_pools_as_long_as_its_job_is_kept(
    engine: Engine, steps: Steps, pool: str, state: str
) -> None:
    enqueue(engine, "mine", payload=b"[1]")
    if state == "succeeded":
        steps.complete(steps.lease())
    elif state == "dead":
        steps.fail(steps.lease(), "dead")

    with pytest.raises(DuplicateJob) as refused:
        enqueue(engine, "mine", pool)

    assert refused.value.job_id == "mine"
    assert engine.jobs.get("mine").payload == [1]
    assert engine.jobs.get("mine").state == state


@pytest.mark.parametrize("pool", ["default", "other"])
def test_an_id_is_free_again_when_its_job_is_gone(engine: Engine, steps: Steps, pool: str) -> None:
    enqueue(engine, "mine")
    engine.jobs.cancel("mine")
    engine.jobs.discard("mine")

    enqueue(engine, "mine", pool, b"[2]")

    assert (engine.jobs.get("mine").pool, engine.jobs.get("mine").payload) == (pool, [2])


@pytest.mark.parametrize("pool", ["default", "other"])
def test_a_claim_whose_producer_died_is_finished_or_taken_over(engine: Engine, steps: Steps, pool: str) -> None:
    """The producer entered the id for the pool ``default`` and died before it created the job."""
    Holders(engine.store, "ids").take("mine", str(steps.route))

    enqueue(engine, "mine", pool)

    assert engine.jobs.get("mine").pool == pool
    assert directory(engine) == {"mine": f"{pool}.1.0"}


class Interrupted:
    """Lets something happen between the two steps of the next enqueue of a caller's id."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engine: Engine, between: Callable[[], object]) -> None:
        claim = engine.jobs.creation._claim_id
        self.times = 0

        def claim_and_wait(job_id: str, route: Route, void_seen: str = "") -> Route:
            claimed = claim(job_id, route, void_seen)
            self.times += 1
            if self.times == 1:
                between()
            return claimed

        monkeypatch.setattr(engine.jobs.creation, "_claim_id", claim_and_wait)


def test_a_slow_producer_whose_claim_was_swept_creates_its_job_all_the_same(
    engine: Engine, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = crc32(b"mine") % HOLDER_BUCKETS
    steps.enqueue(type="other")
    interrupted = Interrupted(monkeypatch, engine, lambda: engine.upkeep.sweep_claims(bucket))

    assert enqueue(engine, "mine") == "mine"

    assert interrupted.times == 2
    assert engine.jobs.get("mine").state == "ready"
    assert directory(engine).keys() == {"mine"}
    assert engine.topology.claimed_route("mine") == steps.route


def test_a_slow_producer_whose_id_another_took_meanwhile_is_told_of_the_others_job(
    engine: Engine, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = Engine(engine.store, engine.settings)
    steps.enqueue(type="other")
    Interrupted(monkeypatch, engine, lambda: enqueue(rival, "mine", "other"))

    with pytest.raises(DuplicateJob):
        enqueue(engine, "mine")

    assert engine.jobs.get("mine").pool == "other"
    assert [job.type for job in steps.lease_all()] == ["other"]


def test_an_id_that_was_voided_elsewhere_can_be_used_again_at_once(engine: Engine, steps: Steps) -> None:
    Holders(engine.store, "ids").take("mine", str(steps.route))
    enqueue(engine, "mine", "other")
    engine.jobs.cancel("mine")
    engine.jobs.discard("mine")

    enqueue(engine, "mine")

    assert engine.jobs.get("mine").pool == "default"


def test_a_claim_that_makes_no_sense_is_taken_over(engine: Engine) -> None:
    for nonsense in ("nonsense", "no.such.route", "gone.1.0", "\x00"):
        Holders(engine.store, "ids").take("mine", nonsense)

        assert engine.jobs.find("mine") is None
        enqueue(engine, "mine")

        assert engine.jobs.get("mine").state == "ready"
        engine.jobs.cancel("mine")
        engine.jobs.discard("mine")


def test_a_claimant_that_comes_back_over_its_void_is_not_taken_over(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Holders.take
    take(Holders(engine.store, "ids"), "mine", str(engine.topology.route_for("one", "mine")))  # and no job yet

    def meanwhile(self: Holders, name: str, value: str, *, expected: str = "") -> str:
        if expected:  # the other has voided the first's job and is about to take the claim over
            monkeypatch.setattr(Holders, "take", take)
            assert enqueue(engine, "mine", "one") == "mine"
        return take(self, name, value, expected=expected)

    monkeypatch.setattr(Holders, "take", meanwhile)
    with pytest.raises(DuplicateJob):
        enqueue(engine, "mine", "other")

    assert [job.pool for job in engine.jobs.page().items] == ["one"]
    assert engine.jobs.get("mine").pool == "one"
    engine.jobs.cancel("mine")
    engine.jobs.discard("mine")
    assert directory(engine) == {}


def test_an_id_that_is_given_back_under_a_producer_on_its_way_is_claimed_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two have claimed the same id; one finds its unique key taken and gives the id back, the other goes on."""
    holder = engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}"])[0].id
    rival = Engine(engine.store, engine.settings)
    existing: list[str] = []

    def give_back() -> None:
        existing.append(rival.jobs.enqueue(JobSpec(type="t", id="mine", unique=Unique(key="k")), [b"{}"])[0].id)

    Interrupted(monkeypatch, engine, give_back)

    assert enqueue(engine, "mine") == "mine"
    assert existing == [holder]
    assert engine.jobs.get("mine").unique_key is None
    assert directory(engine).keys() == {"mine"}
    with pytest.raises(DuplicateJob):
        enqueue(engine, "mine", "other")


def test_an_id_that_is_discarded_under_a_producer_on_its_way_is_claimed_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue(engine, "mine")
    engine.jobs.cancel("mine")
    Interrupted(monkeypatch, engine, lambda: engine.jobs.discard("mine"))

    enqueue(engine, "mine", payload=b"[2]")

    assert engine.jobs.get("mine").payload == [2]


def test_thirty_producers_of_one_id_make_one_job(engine: Engine) -> None:
    def attempt(number: int) -> str | None:
        try:
            return enqueue(engine, "mine", f"p{number % 3}", b"[%d]" % number)
        except DuplicateJob:
            return None

    with ThreadPoolExecutor(30) as threads:
        answers = list(threads.map(attempt, range(30)))

    assert [answer for answer in answers if answer] == ["mine"]
    jobs = [job for pool in range(3) for job in Steps(engine, f"p{pool}").lease_all()]
    assert [job.id for job in jobs] == ["mine"]


def test_an_id_goes_with_one_payload(engine: Engine) -> None:
    for payloads in ([], [b"{}", b"{}"]):
        with pytest.raises(OptionInvalid):
            engine.jobs.enqueue(JobSpec(type="t", id="mine"), payloads)


def test_a_request_that_did_not_reach_the_server_the_first_time_is_a_duplicate_all_the_same(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is equal to the one that made the job, and is not taken for that."""
    steps.enqueue(id="order:1")
    steps.complete(steps.lease())
    evaluated, refused = connection._evaluated, list[str]()

    def refuses_once(client: Any, found: Script, packed: Any) -> Any:
        if found.name == "job_enqueue" and not refused:
            refused.append(found.name)
            raise redis.ConnectionError("Error 111 connecting to localhost:6379. Connection refused.")
        return evaluated(client, found, packed)

    monkeypatch.setattr(connection, "_evaluated", refuses_once)

    with pytest.raises(DuplicateJob):
        steps.enqueue(id="order:1")
    assert refused


def test_ids_of_both_kinds_can_be_read_together(engine: Engine, steps: Steps) -> None:
    ours = steps.enqueue()
    enqueue(engine, "mine", "other")

    jobs = engine.jobs.get_many(["mine", "unknown", ours, "mine"])

    assert [job.id if job else None for job in jobs] == ["mine", None, ours, "mine"]
