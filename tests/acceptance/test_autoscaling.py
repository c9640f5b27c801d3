"""Pools that a machine sizes, on real hosts under a load that rises and falls."""

from __future__ import annotations

from itertools import pairwise

import pytest

from jobs import enqueue_many, pools
from jobs.engine import Pool, Scaling, get_engine
from tests.acceptance.hosts import Journal, Manage, StartHost
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance

MOST = 4
COOLDOWN = 1.0
HAND_OVER = f"""
from jobs import pools
for pool, mode in (("sized", "on"), ("watched", "dry_run")):
    pools.scale(pool, 1)
    pools.autoscale(pool, mode=mode, min_slots=1, max_slots={MOST}, target_wait_seconds=0.3, tolerance_seconds=0.05,
                    cooldown_seconds={COOLDOWN})
"""


def fill(journal: Journal, pool: str, count: int) -> None:
    payload = {"seconds": 0.1, "path": journal.path}
    enqueue_many("test.sleep", [payload] * count, pool=pool, allow_unknown=True)


def decisions(pool: str) -> list[Scaling]:
    return get_engine().scalings.history(pool)


def test_slots_follow_the_load_up_and_down_within_their_bounds_and_a_dry_run_moves_none(
    start_host: StartHost, journal: Journal, manage: Manage
) -> None:
    """The hosts' own number of slots is not theirs to decide where a machine does."""
    hosts = [start_host("--pool", "sized", "--pool", "watched", "--concurrency", "9") for _ in "ab"]
    for host in hosts:
        host.consuming()  # what is set before a host begins yields to its own command line
    manage("shell", "-c", HAND_OVER)
    seen: list[Pool] = []

    def is_at(slots: int) -> bool:
        seen.append(pools.get("sized"))
        return (seen[-1].slots, seen[-1].slots_actual) == (slots, 2 * slots)

    eventually(lambda: is_at(1) and pools.get("watched").slots_actual == 2, every=0.1)
    fill(journal, "watched", 100)
    fill(journal, "sized", 150)
    eventually(lambda: is_at(MOST), within=30, every=0.1)
    eventually(lambda: is_at(1), within=60, every=0.1)

    assert {pool.slots for pool in seen} <= set(range(1, MOST + 1))
    assert max(pool.slots_actual for pool in seen) == 2 * MOST
    changes = [made for made in decisions("sized") if made.is_change]
    ups = [made.reason for made in changes if made.after > made.before]
    downs = [made.reason for made in changes if made.after < made.before]
    assert ups
    assert set(ups) <= {"above_upper_boundary", "deviation_large_above_center"}
    assert downs
    assert set(downs) <= {"predicted_wait_zero", "below_lower_boundary", "deviation_large_below_center"}
    assert all(later.at_ms - earlier.last_at_ms >= COOLDOWN * 1000 for earlier, later in pairwise(changes))
    assert [made.before for made in changes[1:]] == [made.after for made in changes[:-1]], "nobody else changed it"
    assert pools.get("watched").slots == 1
    assert any(made.is_change for made in decisions("watched"))
    assert all(made.dry_run for made in decisions("watched"))
