"""Bytes in Redis ⇄ what Python holds: ids, bodies, records."""

from __future__ import annotations

import random
import struct

import pytest

from jobs.core.job import JobSpec, Route, Unique
from jobs.core.states import JobState
from jobs.exceptions import OptionInvalid
from jobs.store.codec.bodies import FORMAT, TIMES, decode_body, encode_header, payload_start
from jobs.store.codec.ids import new_ids, new_token, parse_route, route_in
from jobs.store.codec.leases import LeaseDecoder
from jobs.store.codec.records import Record, decode_record
from tests.support.partition import NOW, body, packed, record

ROUTE = Route("my.pool-1", 12, 3)


# Ids ----------------------------------------------------------------------------------------------------------------


def test_an_id_carries_its_route() -> None:
    [job_id] = new_ids(ROUTE, 1)

    assert route_in(job_id) == ROUTE
    assert len(job_id) == 20 + 1 + len("my.pool-1.12.3")


def test_ids_of_one_call_and_of_later_calls_sort_in_the_order_in_which_they_were_made() -> None:
    first = new_ids(ROUTE, 1_000)

    assert first == sorted(set(first))
    assert first[0][:9] <= new_ids(ROUTE, 1)[0][:9]


def test_ids_do_not_meet() -> None:
    made = [job_id for _ in range(2_000) for job_id in new_ids(ROUTE, 3)]

    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "mine",
        "00000000000000000000",
        "00000000000000000000-p",
        "00000000000000000000-p.1",
        "00000000000000000000-.1.0",
        "00000000000000000000-p.x.0",
        "00000000000000000000-p.1.-1",
        "00000000000000000000-p.1.٣",
        "0000000000000000000i-p.1.0",
        "0000000000000000000A-p.1.0",
        "00000000000000000000_p.1.0",
        "00000000000000000000-p." + "1" * 10 + ".0",
    ],
)
def test_other_texts_carry_none(text: str) -> None:
    assert route_in(text) is None


@pytest.mark.parametrize("route", [Route("p", 1, 0), Route("a.b.c", 2, 15), Route("p.1.0", 1, 0), Route("9", 9, 9)])
def test_a_route_reads_back_from_its_text(route: Route) -> None:
    assert parse_route(str(route)) == route


def test_tokens_are_random_and_fit_a_record() -> None:
    tokens = {new_token() for _ in range(1_000)}

    assert len(tokens) == 1_000
    assert {len(token) for token in tokens} == {16}


# Bodies -------------------------------------------------------------------------------------------------------------


def test_a_body_reads_back_as_it_was_asked_for() -> None:
    spec = JobSpec(
        type="email.send",
        priority=-100,
        max_retries=0,
        max_crashes=9,
        timeout=None,
        backoff=("fixed", 1.5),
        tags=("a", "ü"),
        meta={"k": "v"},
        unique=Unique(key="u", until=5.5),
        concurrency_key="c",
        rate_key="r",
        result_ttl=60.0,
        schedule="s",
        fire_time_ms=NOW,
        workflow_run="w",
        node="n",
    )

    found = decode_body(TIMES.pack(NOW, NOW + 5) + encode_header(spec) + b'{"x":[]}')

    assert (found.created_at, found.run_at, found.payload) == (NOW, NOW + 5, b'{"x":[]}')
    assert (found.type, found.priority, found.max_retries, found.max_crashes) == ("email.send", -100, 0, 9)
    assert (found.timeout, list(found.backoff)) == (None, ["fixed", 1.5])
    assert found.extras == {
        "tags": ["a", "ü"],
        "meta": {"k": "v"},
        "unique": ["u", 5.5],
        "concurrency_key": "c",
        "rate_key": "r",
        "result_ttl": 60.0,
        "schedule": "s",
        "fire_time_ms": NOW,
        "workflow_run": "w",
        "node": "n",
    }


def test_what_was_not_asked_for_takes_no_room() -> None:
    assert len(encode_header(JobSpec(type="t"))) < 64
    assert decode_body(body()).extras == {}


@pytest.mark.parametrize("meta", [{"k": "x" * 70_000}, {"k": "\ud800"}, {"\udfff": "v"}])
def test_a_header_that_cannot_be_stored_is_refused(meta: dict[str, str]) -> None:
    with pytest.raises(OptionInvalid):
        encode_header(JobSpec(type="t", meta=meta))


def test_bytes_that_are_no_body_are_refused_whatever_they_are() -> None:
    chance = random.Random(1)
    good = body(b'{"n":1}', tags=("x",))
    for _ in range(3_000):
        bad = bytearray(good[: chance.randrange(len(good) + 1)])
        for _ in range(chance.randrange(4)):
            if bad:
                bad[chance.randrange(len(bad))] = chance.randrange(256)
        try:
            decode_body(bytes(bad))
        except ValueError:
            continue


def test_a_body_of_a_later_format_is_not_guessed_at() -> None:
    raw = bytearray(body())
    raw[19] = FORMAT + 1

    with pytest.raises(ValueError, match=f"format {FORMAT + 1}"):
        decode_body(bytes(raw))


# Records ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(JobState))
def test_a_record_reads_back(state: JobState) -> None:
    written = record(
        state.value,
        attempt=2**32 - 1,
        errors=2,
        crashes=3,
        fence=4,
        lost=9,
        resubmissions=6,
        cancel=1,
        ready_at=NOW,
        leased_at=NOW + 1,
        started_at=NOW + 2,
        finished_at=NOW + 3,
        run_at=NOW + 4,
        place=200 * 2**44 + 2**44 - 1,
        token="t" * 16,
        worker="wörker",
    )

    assert decode_record(packed(written)) == written


def test_every_cut_of_a_record_is_refused() -> None:
    raw = packed(record("ready", token="token", worker="w"))

    for length in range(len(raw) - 2):
        with pytest.raises(ValueError, match="not a job record"):
            decode_record(raw[:length])


@pytest.mark.parametrize("code", [0, 10, 255])
def test_a_record_of_no_state_is_refused(code: int) -> None:
    with pytest.raises(ValueError, match="not a job record"):
        decode_record(bytes([code]) + packed(record("ready"))[1:])


def test_a_fresh_record_is_all_zero() -> None:
    assert tuple(Record()) == ("",) + (0,) * 11 + ("", "", 0, 0)


# Leases -------------------------------------------------------------------------------------------------------------


def test_jobs_of_one_lease_call_are_read_as_each_of_them_alone() -> None:
    """Neighbours share what is alike: here they differ in their keys, their type, everything or nothing."""
    specs = [
        JobSpec(type="t", pool="p", rate_key="a"),
        JobSpec(type="t", pool="p", rate_key="b"),
        JobSpec(type="t", pool="p", rate_key="b"),
        JobSpec(type="t", pool="p", concurrency_key="c" * 300, tags=["x"]),
        JobSpec(type="t", pool="p"),
        JobSpec(type="tt", pool="p", rate_key="a"),
        JobSpec(type="t", pool="p", priority=5, rate_key="a"),
        JobSpec(type="t", pool="p", rate_key="a"),
    ]
    times = struct.pack(">dd", NOW, NOW)
    bodies = [times + encode_header(spec) + b'{"n":%d}' % number for number, spec in enumerate(specs)]

    together = LeaseDecoder(ROUTE, "token", NOW)
    for raw in bodies * 2:
        at = payload_start(raw)
        alone = LeaseDecoder(ROUTE, "token", NOW).decode(b"id", b"", b"", raw)
        assert together.decode(b"id", b"", raw[:at], raw[at:]) == together.decode(b"id", b"", b"", raw) == alone


def test_a_job_whose_keys_cannot_be_read_is_refused_beside_others_that_can() -> None:
    times = struct.pack(">dd", NOW, NOW)
    good, bad = (times + encode_header(JobSpec(type="t", pool="p", rate_key=key)) for key in ("good", "evil"))
    decoder = LeaseDecoder(ROUTE, "token", NOW)
    decoder.decode(b"id", b"", b"", good)

    with pytest.raises(ValueError, match="not a job header"):
        decoder.decode(b"id", b"", b"", bad.replace(b"evil", b"\xff" * 4))
    assert decoder.decode(b"id", b"", b"", good).extras == {"rate_key": "good"}
