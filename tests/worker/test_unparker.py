"""Jobs that another host set aside come to the host that knows their type at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.core.pause import Scope
from jobs.engine import new_token
from jobs.engine.news import TOPICS
from jobs.registry import registry
from jobs.worker import unparker as unparker_module
from jobs.worker.unparker import AGAIN_SECONDS, ANY_TYPE, IDLE_SECONDS, Unparker
from tests.worker.conftest import Parts


class Host:
    """What a host does with its jobs, and how often its children were told to look."""

    def __init__(self, parts: Parts, *pools: str) -> None:
        self.parts = parts
        self.looks = 0
        self.unparker = Unparker(parts.engine, pools, self._look)

    def hears(self, *types: str) -> float:
        self.unparker.hear(types)
        return self.unparker.tick()

    def _look(self) -> None:
        self.looks += 1


@pytest.fixture
def host(parts: Parts) -> Iterator[Host]:
    with registry.restored():
        yield Host(parts)


def parked(parts: Parts, name: str = "test.echo", pool: str = "default") -> str:
    """A job that a host has set aside which does not know its type."""
    (job_id,) = parts.enqueue(name, pool=pool)
    leases, route = parts.engine.leases, parts.engine.topology.route_for(pool)
    for job in leases.lease(route, worker="stranger", token=new_token(), limit=9, lease_ms=9_000).jobs:
        leases.park(route, [(job.id, job.token, job.type)])
    assert parts.get(job_id).parked
    return job_id


def test_what_this_host_knows_comes_back_and_its_children_look(host: Host, parts: Parts) -> None:
    known, unknown = parked(parts), parked(parts, "no.such.type")

    assert host.hears("test.echo", "no.such.type") == IDLE_SECONDS

    assert (parts.get(known).parked, parts.get(unknown).parked, host.looks) == (False, True, 1)


def test_nobody_is_woken_who_might_set_it_aside_again(host: Host, parts: Parts) -> None:
    parked(parts)
    routes = parts.engine.topology.partitions()
    parts.engine.leases.wait_for_work(routes, 0.01)  # what the enqueue left

    host.hears("test.echo")

    assert parts.engine.leases.wait_for_work(routes, 0.01) is None


def test_a_host_looks_too_where_another_was_quicker(host: Host, parts: Parts) -> None:
    parked(parts)
    other = Host(parts)

    host.hears("test.echo")
    other.hears("test.echo")

    assert (host.looks, other.looks) == (1, 1), "the first may have no room"


def test_a_type_that_nobody_here_knows_costs_nothing(host: Host, parts: Parts) -> None:
    parked(parts, "no.such.type")
    host.hears("no.such.type")
    assert host.looks == 0


def test_pools_that_this_host_does_not_serve_are_left_alone(host: Host, parts: Parts) -> None:
    here, elsewhere = parked(parts), parked(parts, pool="elsewhere")

    Host(parts, "default").hears("test.echo")

    assert (parts.get(here).parked, parts.get(elsewhere).parked) == (False, True)


def test_what_is_paused_stays_aside(host: Host, parts: Parts) -> None:
    job_id = parked(parts)
    parts.engine.pauses.pause(Scope("type", "test.echo"), by="a test")

    host.hears("test.echo")

    assert (parts.get(job_id).parked, host.looks) == (True, 0)


def test_a_host_that_begins_to_listen_asks_for_all_that_it_knows(host: Host, parts: Parts) -> None:
    known, unknown = parked(parts), parked(parts, "no.such.type")
    assert "parked" in TOPICS

    host.hears(ANY_TYPE)

    assert (parts.get(known).parked, parts.get(unknown).parked) == (False, True)


def test_what_is_set_aside_again_and_again_comes_back_once_a_second(
    host: Host, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = unparker_module.monotonic()
    monkeypatch.setattr(unparker_module, "monotonic", lambda: now)
    parked(parts)
    host.hears("test.echo")
    again = parked(parts)

    assert host.hears("test.echo") == pytest.approx(AGAIN_SECONDS)
    assert parts.get(again).parked

    now += AGAIN_SECONDS
    assert host.unparker.tick() == IDLE_SECONDS
    assert not parts.get(again).parked


def test_of_a_long_line_a_part_comes_back_at_a_time_and_more_while_none_is_parked_again(
    host: Host, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = unparker_module.monotonic()
    monkeypatch.setattr(unparker_module, "monotonic", lambda: now)
    monkeypatch.setattr(unparker_module, "PORTION", 1)
    jobs = [parked(parts) for _ in range(7)]
    host.unparker = Unparker(parts.engine, (), host._look)

    def back() -> int:
        return sum(not parts.get(job_id).parked for job_id in jobs)

    assert (host.hears("test.echo"), back()) == (AGAIN_SECONDS, 1)
    now += AGAIN_SECONDS
    assert (host.unparker.tick(), back()) == (AGAIN_SECONDS, 1 + 4)
    jobs.append(parked(parts))
    now += AGAIN_SECONDS
    assert (host.unparker.tick(), back()) == (AGAIN_SECONDS, 1)
