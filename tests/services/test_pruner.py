from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.conf import get_settings
from jobs.core.job import LeasedJob
from jobs.engine import Completion, Engine
from jobs.exceptions import JobNotFound
from jobs.services.pruner import CLAIM_BUCKETS, Pruner
from tests.services.conftest import ROUTE
from tests.support.clock import ManualClock


def test_ended_jobs_are_forgotten_after_their_retention_and_no_sooner(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]
) -> None:
    (job_id,) = enqueue()
    (job,) = lease()
    engine.leases.complete(ROUTE, [Completion(job.id, job.token, job.type, clock.now_ms())])
    pruner = Pruner(engine)

    clock.advance(get_settings().retention_seconds - 1)
    pruner.tick()
    assert engine.jobs.get(job_id).state == "succeeded"

    clock.advance(2)
    assert pruner.tick()["pruned"] >= 1
    with pytest.raises(JobNotFound):
        engine.jobs.get(job_id)


def test_it_comes_back_sooner_while_there_is_something_to_prune(
    engine: Engine, clock: ManualClock, enqueue: Callable[..., list[str]], lease: Callable[..., list[LeasedJob]]
) -> None:
    pruner = Pruner(engine)
    pruner.tick()
    idle = pruner.every
    enqueue()
    (job,) = lease()
    engine.leases.complete(ROUTE, [Completion(job.id, job.token, job.type, clock.now_ms())])
    clock.advance(get_settings().retention_seconds + 1)
    pruner.tick()
    assert pruner.every < idle / 2


def test_every_bucket_of_claims_has_its_turn(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[int] = []
    monkeypatch.setattr(engine.upkeep, "sweep_claims", lambda bucket: swept.append(bucket) or 0)
    pruner = Pruner(engine)
    for _ in range(CLAIM_BUCKETS):
        pruner.tick()
    assert sorted(swept) == list(range(CLAIM_BUCKETS))
