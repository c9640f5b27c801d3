"""What receivers of signals are told of one attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs import signals
from jobs.api import Dead
from jobs.engine import Completion
from jobs.worker.settlement import Settlement
from tests.worker.bench import Bench, failure


@pytest.fixture
def told() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    told: list[tuple[str, dict[str, Any]]] = []
    receivers = {}
    for name in ("job_started", "job_finished", "job_retrying", "job_died"):
        signal = getattr(signals, name)
        receivers[name] = lambda name=name, **facts: told.append((name, facts))
        signal.connect(receivers[name])
    yield told
    for name, receiver in receivers.items():
        getattr(signals, name).disconnect(receiver)


def accept(bench: Bench, settlement: Settlement, answer: str | None = None) -> None:
    end = settlement if isinstance(settlement, Completion) else failure(settlement)
    states = {"retry": "retry_wait", "dead": "dead", "cancelled": "cancelled"}
    default = "ok" if isinstance(end, Completion) else states[end.outcome]
    bench.herald.hear([end], [answer or default])
    bench.herald.finish(5.0)


def test_a_start_and_a_success(bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
    seen: list[str] = []
    accept(bench, bench.run_function(lambda: seen.extend(name for name, _ in told) or {"rows": 3}))

    assert seen == ["job_started"]
    (_, started), (name, finished) = told
    assert (name, finished["job_id"], finished["result"]) == ("job_finished", "job-1", {"rows": 3})
    assert started["sender"].name == finished["sender"].name == "bench.job"
    assert started["context"] is finished["context"]


def test_a_failure_that_is_tried_again(bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
    def handler() -> None:
        raise LookupError("no luck")

    accept(bench, bench.run_function(handler, backoff=("fixed", 2.0, 0.0)))

    name, facts = told[-1]
    assert (name, str(facts["error"]), facts["delay"]) == ("job_retrying", "no luck", 2.0)


def test_a_death(bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
    def handler() -> None:
        raise Dead("told so")

    accept(bench, bench.run_function(handler))

    assert (told[-1][0], str(told[-1][1]["error"])) == ("job_died", "told so")


def test_a_payload_that_cannot_be_read_has_no_context(bench: Bench, told: list[tuple[str, dict[str, Any]]]) -> None:
    def handler(number: int) -> None: ...

    accept(bench, bench.run_function(handler, {"number": "seven"}))

    ((name, facts),) = told
    assert (name, facts["context"]) == ("job_died", None)


@pytest.mark.parametrize("answer", ["lost", "cancelled"])
def test_an_end_that_the_store_does_not_accept_is_not_told(
    bench: Bench, told: list[tuple[str, dict[str, Any]]], answer: str
) -> None:
    accept(bench, bench.run_function(lambda: 1), answer)

    assert [name for name, _ in told] == ["job_started"]


def test_a_receiver_that_raises_changes_nothing_and_is_logged(
    bench: Bench, told: list[tuple[str, dict[str, Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    def receiver(**_: Any) -> None:
        raise ConnectionError("pager is down")

    for signal in (signals.job_started, signals.job_finished):
        signal.connect(receiver)
    try:
        accept(bench, bench.run_function(lambda: 1))
    finally:
        for signal in (signals.job_started, signals.job_finished):
            signal.disconnect(receiver)

    assert [name for name, _ in told] == ["job_started", "job_finished"]
    assert caplog.text.count("ConnectionError: pager is down") == 2  # by Django itself


def test_while_nobody_listens_nothing_is_remembered(bench: Bench) -> None:
    bench.run_function(lambda: 1)

    assert not bench.herald._expected
    assert bench.herald._thread is None
