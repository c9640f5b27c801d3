"""Bytes that were sent come back as they were; bytes that went bad are shown as such, and everything else goes on."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from jobs.core.figures import COUNTED
from jobs.core.states import JobState
from jobs.engine import JobFilter
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from tests.support.steps import LEASE_MS, Steps, everything

PAYLOADS = [
    b"{}",
    b'{"a":[],"b":{},"c":null}',
    b'{"n":9007199254740993,"m":-9223372036854775809,"f":1.0,"e":1e400,"z":-0.0}',
    b'{"text":"\\u0000 \\ud800 \\"quotes\\" \\n"}',
    '{"text":"ünï ☃ 日本語 👩‍🚀"}'.encode(),
    b'{"nul":"\x00"}',
    b'{"a":1,"a":2}',
    b" {} ",
    b"",
    b"not json",
    b"\xff\xfe\x00\x01" * 16,
    bytes(range(256)),
    b'{"deep":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    b'{"redis":"{default.1.0} KEYS[1] \\r\\n*3\\r\\n$3\\r\\nDEL"}',
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_payload_reaches_the_worker_as_it_was_sent(steps: Steps, payload: bytes) -> None:
    job_id = steps.enqueue(payload)

    job = steps.lease()
    assert job.payload == payload

    steps.fail(job, "dead")
    steps.engine.jobs.resubmit(job_id)
    assert steps.lease().payload == payload
    assert steps.get(job_id).id == job_id


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_resubmitted_payload_reaches_the_worker_too(steps: Steps, payload: bytes) -> None:
    if not payload:
        return  # an empty one means: as it was
    job_id = steps.bury()

    steps.engine.jobs.resubmit(job_id, payload)

    assert steps.lease().payload == payload


@pytest.mark.parametrize("result", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_result_never_harms_a_reader(steps: Steps, result: bytes) -> None:
    job_id = steps.enqueue()
    steps.complete(steps.lease(), result)

    stored = everything(steps.engine.store).get(f"{steps.engine.store.namespace}:{{default.1.0}}:results", {})

    assert stored == ({job_id.encode(): result} if result else {})
    assert steps.get(job_id).state == "succeeded"


def test_numbers_and_empty_lists_read_back_exactly(steps: Steps) -> None:
    job = steps.get(steps.enqueue(b'{"n":9007199254740993,"l":[],"o":{},"x":[[],{}]}'))

    assert job.payload == {"n": 9007199254740993, "l": [], "o": {}, "x": [[], {}]}
    json.dumps(job.as_dict())


@pytest.mark.parametrize(
    "word", ["{}", "{default.1.0}", "a:b", "a b", 'quo"te', "ünï☃", "\0", "\n", "*", "[x]?", "-1", "x" * 300]
)
def test_any_word_can_name_a_type_a_tag_or_a_meta_value(steps: Steps, word: str) -> None:
    job_id = steps.enqueue(type=word, tags=(word,), meta={word: word}, concurrency_key=word, rate_key=word)

    job = steps.lease()
    assert (job.type, job.extras["tags"], job.extras["meta"]) == (word, [word], {word: word})
    steps.fail(job, "retry")
    steps.complete(steps.lease())

    read = steps.get(job_id)
    assert (read.type, read.tags, read.meta, read.concurrency_key) == (word, [word], {word: word}, word)
    page = steps.engine.jobs.page(JobFilter(type=word, tag=word, search=word))
    assert [found.id for found in page.items] == [job_id]
    assert steps.engine.stats.types()[word] == {"enqueued": 1, "started": 2, "succeeded": 1, "failed": 1, "retried": 1}


@pytest.mark.parametrize("worker", ["", "{w}", "ünï", "w" * 255, "\0", "a:b"])
def test_a_worker_of_any_name_can_hold_jobs(steps: Steps, worker: str) -> None:
    job_id = steps.enqueue()

    [job] = steps.ask(worker=worker).jobs
    steps.fail(job, "retry")

    assert steps.get(job_id).attempts[0].worker == worker
    assert steps.get(job_id).fencing_token == 1


# Bytes that went bad -----------------------------------------------------------------------------------------------


def partition_key(store: Store, name: str) -> str:
    return f"{store.namespace}:{{default.1.0}}:{name}"


def mutations(raw: bytes, chance: random.Random, number: int) -> list[bytes]:
    """Cut, lengthened and changed copies."""
    found = [b"", b"\x00", raw[: len(raw) // 2], raw[:-1], raw + b"\xc1", b"\xff" * len(raw), bytes(len(raw))]
    for _ in range(number):
        position, bit = chance.randrange(len(raw)), 1 << chance.randrange(8)
        found.append(raw[:position] + bytes([raw[position] ^ bit]) + raw[position + 1 :])
    for _ in range(number):
        position = chance.randrange(len(raw))
        found.append(raw[:position] + chance.randbytes(chance.randrange(1, 9)) + raw[position + 1 :])
    return found


STATE_AND_CANCEL = (0, 22)
"""Where a record has them (lua/include/record_fields.lua)."""


def lies(sample: bytes, bad: bytes) -> bool:
    """Whether a changed record can still be read and tells of another state or of a cancel: that is another fault."""
    return len(bad) > STATE_AND_CANCEL[-1] and [sample[at] for at in STATE_AND_CANCEL] != [
        bad[at] for at in STATE_AND_CANCEL
    ]


def look_at_everything(steps: Steps, *job_ids: str) -> None:
    """What pages and commands do: none of it may fail, and what it shows must be JSON."""
    engine = steps.engine
    for job in engine.jobs.get_many(job_ids):
        if job is not None:
            json.dumps(job.as_dict())
    for listed in engine.jobs.page(JobFilter(search="x")).items + engine.jobs.page().items:
        json.dumps(listed.as_dict())
    for pool in engine.pools.all():
        json.dumps(pool.as_dict())
    engine.stats.snapshot()
    engine.stats.types()
    engine.stats.series()


def run_until_empty(steps: Steps, clock: Any) -> list[str]:
    """A worker, a recoverer and a promoter at work until nothing is left; the ids that were completed."""
    done: list[str] = []
    for _ in range(60):
        clock.advance(LEASE_MS / 1000 + 1)
        steps.engine.leases.promote(steps.route)
        steps.engine.leases.recover(steps.route)
        jobs = steps.ask(100).jobs
        for job in jobs:
            steps.start(job)
            if steps.complete(job, b"1") == "ok":
                done.append(job.id)
        client: Any = steps.engine.store.client
        if not jobs and not any(
            client.zcard(partition_key(steps.engine.store, line))
            for line in ("ready", "leased", "scheduled", "retry_wait")
        ):
            return done
    raise AssertionError("the line did not become empty")


@pytest.mark.parametrize("state", ["ready", "scheduled", "leased", "retry_wait"])
@pytest.mark.parametrize("kind", ["bodies", "states", "attempts", "progress", "results"])
@pytest.mark.parametrize("seed", range(2))
def test_a_live_job_whose_bytes_went_bad_ends_and_the_others_go_on(
    steps: Steps, clock: Any, state: str, kind: str, seed: int
) -> None:
    chance = random.Random(f"{state}{kind}{seed}")
    victims = [steps.enqueue(b'{"n":1}', tags=("x",), meta={"k": "v"}, priority=9) for _ in range(36)]
    for job in steps.lease_all():
        if state == "scheduled":
            steps.fail(job, "snooze", delay_ms=5_000)
            continue
        steps.start(job)
        steps.engine.leases.progress(job, 1, 2, "m")
        steps.fail(job, "retry", delay_ms=5_000, error=b'{"type":"E","message":"m","traceback":"t"}')
    if state in ("ready", "leased"):
        clock.advance(6)
        steps.engine.leases.promote(steps.route)
    if state == "leased":
        for job in steps.lease_all():
            steps.start(job)
    others = steps.enqueue_many(5)
    client: Any = steps.engine.store.client
    key = partition_key(steps.engine.store, kind)
    sample = client.hget(key, victims[0]) or b'{"n":1}'
    for victim, bad in zip(victims, mutations(sample, chance, 15), strict=False):
        if kind != "states" or not lies(sample, bad):
            client.hset(key, victim, bad)

    look_at_everything(steps, *victims)
    done = run_until_empty(steps, clock)
    look_at_everything(steps, *victims)

    assert set(others) <= set(done)
    for victim in victims:
        ended = steps.get(victim)
        assert ended.state in (JobState.SUCCEEDED, JobState.DEAD)
        if ended.state == JobState.DEAD:
            assert ended.error is not None
            assert ended.error["type"] in ("CorruptJob", "WorkerLost", "E")
    discarded = steps.engine.jobs.discard_many(victims)
    assert [problem for problem in discarded.values() if problem] == []
    assert not any(steps.engine.jobs.get_many(victims))


@pytest.mark.parametrize("kind", ["bodies", "states"])
def test_people_can_stop_or_remove_a_job_whose_bytes_went_bad(steps: Steps, kind: str) -> None:
    waiting, dead = steps.enqueue(delay_ms=5_000), steps.bury()
    client: Any = steps.engine.store.client
    for job_id in (waiting, dead):
        client.hset(partition_key(steps.engine.store, kind), job_id, b"\xc1garbage that is long enough")

    assert steps.engine.jobs.cancel(waiting).state == "cancelled"
    steps.engine.jobs.discard(dead)
    steps.engine.jobs.discard(waiting)

    assert steps.engine.jobs.page().items == []


def test_a_job_whose_body_is_gone_is_buried_and_shown(steps: Steps) -> None:
    gone, other = steps.enqueue_many(2)
    client: Any = steps.engine.store.client
    client.hdel(partition_key(steps.engine.store, "bodies"), gone)

    reply = steps.ask(10)

    assert ([job.id for job in reply.jobs], reply.corrupt) == ([other], 1)
    job = steps.get(gone)
    assert job.state == "dead"
    assert job.error is not None
    assert job.error["type"] == "CorruptJob"


def test_a_body_that_vanishes_between_two_tries_of_a_lease_is_buried_too(steps: Steps) -> None:
    job_id = steps.enqueue()
    steps.ask(token="same")
    client: Any = steps.engine.store.client
    client.hdel(partition_key(steps.engine.store, "bodies"), job_id)

    reply = steps.ask(token="same")

    assert (reply.jobs, reply.corrupt) == ([], 1)
    assert steps.state(job_id) == "dead"


def test_a_body_of_a_later_version_is_not_guessed_at(steps: Steps) -> None:
    job_id = steps.enqueue(b'{"n":1}')
    client: Any = steps.engine.store.client
    key = partition_key(steps.engine.store, "bodies")
    raw = client.hget(key, job_id)
    client.hset(key, job_id, raw[:19] + b"\x02" + raw[20:])

    assert steps.ask().corrupt == 1
    job = steps.get(job_id)
    assert (job.state, job.payload) == ("dead", None)


def test_an_id_that_is_no_text_does_not_stop_the_line(steps: Steps) -> None:
    """Nobody can have enqueued it; whatever put it there, the jobs around it go on."""
    client: Any = steps.engine.store.client
    good = steps.enqueue()
    body = client.hget(partition_key(steps.engine.store, "bodies"), good)
    client.hset(partition_key(steps.engine.store, "bodies"), b"\xff\xfe", body)
    client.zadd(partition_key(steps.engine.store, "ready"), {b"\xff\xfe": 1})

    look_at_everything(steps, good)
    reply = steps.ask(10)

    assert [job.id for job in reply.jobs] == [good]
    assert reply.corrupt == 1
    look_at_everything(steps, good)


@pytest.mark.parametrize("garbage", [b"", b"\xff", b"[]", b"{}", b'{"1":0}', b'{"slots":"many"}', b"null", b"1"])
def test_settings_that_cannot_be_read_count_as_not_set(steps: Steps, garbage: bytes) -> None:
    steps.enqueue()
    client: Any = steps.engine.store.client
    prefix = f"{steps.engine.store.namespace}:{{settings}}:"
    client.hset(prefix + "pools", "default", garbage)
    client.hset(prefix + "types", "t", garbage)
    client.hset(prefix + "topology", "default", garbage)
    control = {"paused_until": garbage, "paused_types": garbage, "max_running": garbage, "halted": garbage}
    client.hset(partition_key(steps.engine.store, "control"), mapping=control)
    other = Steps(type(steps.engine)(steps.engine.store, steps.engine.settings))

    assert other.engine.pools.slots("default") == 10
    assert other.engine.types.get("t").enabled
    look_at_everything(other, "x")
    assert len(steps.ask().jobs) == 1


@pytest.mark.parametrize("outcome", ["succeeded", "retry_wait", "dead", "cancelled", "crashed"])
def test_figures_that_are_no_numbers_stop_no_job(steps: Steps, outcome: str) -> None:
    job_id = steps.enqueue()
    keys = partition_keys(steps.engine.store.namespace, steps.route)
    client: Any = steps.engine.store.client
    window = f"{keys.live}{steps.now_ms() // 10_000}"
    for figure in (*COUNTED, "wait_ms", "run_ms", "failed_ms", "wait0", "run0"):
        client.hset(keys.counters, f"{figure}:t", "many")
        client.hset(window, f"{figure}:t", "many")

    job = steps.lease()
    match outcome:
        case "succeeded":
            assert steps.complete(job) == "ok"
        case "retry_wait":
            assert steps.fail(job, "retry", 1_000) == "retry_wait"
        case "crashed":
            assert steps.crash(job) == "ready"
        case _:
            assert steps.fail(job, outcome) == outcome

    assert steps.state(job_id) == ("ready" if outcome == "crashed" else outcome)
    assert steps.state(steps.enqueue()) == "ready"
    assert steps.engine.stats.types() == {}
