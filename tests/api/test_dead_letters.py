"""The dead-letter list by cause."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import JobFilter, enqueue
from jobs.api import enqueue_many, error_groups, mutes, newest_dead
from jobs.api.dead_letters import LOOKED_AT
from jobs.core.fingerprint import fingerprint, normalised, own_frame
from jobs.engine import Failure, get_engine
from jobs.testing import drain
from tests.support.steps import Steps


def test_jobs_that_died_of_one_error_are_one_group() -> None:
    enqueue_many("math.divide", [{"a": n, "b": 0} for n in range(3)], max_retries=0)
    gave_up = enqueue("math.odd", {"what": "dead"}, pool="other")
    drain()

    many, one = error_groups()

    assert (many.count, many.error_type, many.types, many.pools) == (
        3,
        "ZeroDivisionError",
        ["math.divide"],
        ["default"],
    )
    assert (one.count, one.message, one.sample, one.pools) == (1, "no use", gave_up.id, ["other"])
    assert one.first_seen == one.last_seen
    assert many.place.endswith("types.py:divide")


def test_a_filter_chooses_among_the_dead() -> None:
    enqueue("math.divide", {"a": 1, "b": 0}, max_retries=0)
    enqueue("math.odd", {"what": "dead"})
    drain()

    assert [group.types for group in error_groups(JobFilter(type="math.odd"))] == [["math.odd"]]


def test_a_filter_takes_the_beginning_of_a_type() -> None:
    enqueue("math.divide", {"a": 1, "b": 0}, max_retries=0)
    enqueue("math.odd", {"what": "dead"})
    drain()

    assert sorted(group.types[0] for group in error_groups(JobFilter(type="math.*"))) == ["math.divide", "math.odd"]
    assert [group.types for group in error_groups(JobFilter(type="math.d*"))] == [["math.divide"]]
    assert error_groups(JobFilter(type="odd*")) == []


def test_the_sample_bounds_what_is_looked_at() -> None:
    enqueue_many("math.divide", [{"a": n, "b": 0} for n in range(5)], max_retries=0)
    drain()

    assert [group.count for group in error_groups(sample=3)] == [3]
    assert (newest_dead(JobFilter(), sample=3).is_whole, newest_dead(JobFilter()).is_whole) == (False, True)
    assert newest_dead(JobFilter(type="math.odd"), look_at=3) == ([], False)


def test_a_group_is_json() -> None:
    enqueue("math.odd", {"what": "dead"})
    drain()

    shown = error_groups()[0].as_dict()

    assert shown["last_seen"].endswith("Z")
    assert shown["count"] == 1


@pytest.mark.parametrize(
    ("message", "mark"),
    [
        ("order 123 not found in 0.5 s", "order <n> not found in <n> s"),
        ("no user ann.b@example.com here", "no user <mail> here"),
        ("key 3f2504e0-4f89-11d3-9a0c-0305e82c3301 gone", "key <uuid> gone"),
        ("<Order object at 0x7f32ab22f9d0>", "<Order object at <hex>>"),
        ("commit 9f3c2ab1de", "commit <hex>"),
        ("no column 'total' in \"orders\"", "no column <text> in <text>"),
        ("connect to 10.0.0.1:6379 failed", "connect to <n> failed"),
        ("division by zero", "division by zero"),
        ("defaced facade", "defaced facade"),
    ],
)
def test_what_differs_from_job_to_job_is_marked(message: str, mark: str) -> None:
    assert normalised(message) == mark


@settings(max_examples=30)
@given(st.text(max_size=20), st.integers())
def test_numbers_never_split_a_group(before: str, number: int) -> None:
    one, other = (fingerprint("ValueError", f"order {n} failed", before) for n in (number, number + 1))

    assert one == other


def test_the_place_is_the_deepest_frame_of_the_projects_own_code() -> None:
    traceback = """Traceback (most recent call last):
  File "/srv/shop/orders/jobs.py", line 10, in charge
    gateway.charge(order)
  File "/srv/shop/orders/gateway.py", line 99, in charge
    http.post(url)
  File "/venv/lib/python3.11/site-packages/http/client.py", line 5, in post
    raise ConnectionError
ConnectionError
"""

    assert own_frame(traceback) == "orders/gateway.py:charge"
    assert own_frame("") == ""


def test_an_error_of_which_jobs_died_long_ago_can_be_muted() -> None:
    """Behind more dead jobs than lists of groups are made of."""
    steps = Steps(get_engine())
    steps.bury()
    (old,) = error_groups()
    steps.enqueue_many(LOOKED_AT)
    error = b'{"type":"OSError","message":"disk full","traceback":""}'
    while jobs := steps.lease_all():
        failures = [Failure(job.id, job.token, job.type, job.leased_at, "dead", error=error) for job in jobs]
        assert set(steps.engine.leases.fail(steps.route, failures)) == {"dead"}
    assert [group.error_type for group in error_groups()] == ["OSError"]

    made = mutes.mute("group", old.fingerprint, span=60, reason="known")

    assert made.words == "E: m"
