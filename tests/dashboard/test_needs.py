"""Kinds of need that are found by looking back: what was lost with workers, what grows, what holds for too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from dashboard import needs, reads
from dashboard.lately import growing
from dashboard.needs import Need
from dashboard.reads import of_store
from dashboard.verdicts import Verdict
from jobs import api
from jobs.api import Noted
from jobs.core.job import Route
from jobs.management.diagnosis import glance
from tests.dashboard.browsing import text
from tests.dashboard.conftest import Count
from tests.dashboard.readings import NOW, overall, pool
from tests.dashboard.seeding import Shop
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper


def sentence(need: Need) -> str:
    return need.before + need.noun + need.after


class TestLostLeases:
    def test_a_few_may_be_one_process_and_many_are_told_with_the_pool_that_lost_most(self) -> None:
        assert needs.needs(overall(pool("mail", lost=2), pool("quiet"))) == []

        [need] = needs.needs(overall(pool("mail", lost=9), pool("billing", lost=2), pool("quiet", lost=0)))

        assert sentence(need) == "Leases of pool mail and 1 more pool were lost"
        assert need.cause.startswith("11 in the last 15 minutes: their worker died, froze or was cut off.")
        assert need.url == "/dashboard/workers/"

    def test_workers_that_vanish_with_their_jobs_are_seen_on_the_overview(self, viewer: Client, shop: Shop) -> None:
        shop.worker(pools={"mail": 5})
        for _ in range(3):
            shop.leased(pool="mail", lease_ms=1)
        recovered: list[int] = []

        def all_three() -> bool:
            recovered.append(shop.engine.leases.recover(Route("mail", 1, 0)).recovered)
            return sum(recovered) == 3

        eventually(all_three)
        page = text(viewer.get("/dashboard/"))

        assert "Leases of pool mail were lost 3 in the last 15 minutes" in page
        assert "python manage.py doctor" in page


class TestPausesPastTheirEnd:
    def pause(self, kind: str, name: str = "", *, minutes: float) -> dict[str, Any]:
        at, until = NOW - timedelta(hours=1), NOW - timedelta(minutes=minutes)
        common = {"by": "ana", "reason": "disk", "at": at.isoformat(), "until": until.isoformat()}
        return {"kind": kind, "name": name, **common}

    @pytest.mark.parametrize(
        ("kind", "name", "noun", "command"),
        [
            ("everything", "", "everything", "scheduler resume"),
            ("pool", "billing", "pool billing", "pools resume billing"),
            ("type", "charge", "job type charge", "types resume charge"),
        ],
    )
    def test_one_that_no_host_has_lifted_is_told_with_who_set_it_and_what_ends_it(
        self, kind: str, name: str, noun: str, command: str
    ) -> None:
        seen = overall(pool("billing", ready=5, parked=2))
        late = replace(seen, unlifted=(self.pause(kind, name, minutes=20),))

        [need] = needs.needs(late)

        assert sentence(need) == f"The pause of {noun} should have ended at 11:40"
        assert need.cause == "It was set by ana: disk. No worker host has lifted it."
        assert need.command == f"python manage.py {command}"
        assert needs.needs(replace(seen, unlifted=(self.pause(kind, name, minutes=1),))) == []

    def test_where_nothing_waits_for_its_end_nobody_is_called(self) -> None:
        idle = overall(pool("billing"), pool("mail", ready=5))

        assert needs.needs(replace(idle, unlifted=(self.pause("pool", "billing", minutes=20),))) == []
        assert needs.needs(replace(idle, unlifted=(self.pause("type", "charge", minutes=20),))) == []

    def test_without_a_host_it_is_read_from_the_store(
        self, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("dashboard.needs.of_pauses.OVERSTAYED_SECONDS", 0.0)
        shop.ready(pool="mail")
        api.pools.pause("mail", by="ana", until=timedelta(milliseconds=50))
        eventually(api.scheduler.unlifted)

        page = text(viewer.get("/dashboard/"))

        assert "The pause of pool mail should have ended at" in page
        assert "It was set by ana. No worker host is alive to lift it." in page


def noted(ready: Sequence[int]) -> list[Noted]:
    """So many were ready in the pool mail, minute by minute until now."""
    start = NOW - timedelta(minutes=len(ready) - 1)
    return [
        Noted(start + timedelta(minutes=at), 60, {"mail": number} if number else {}) for at, number in enumerate(ready)
    ]


class TestGrowth:
    def test_a_line_that_grows_all_the_time_is_told_with_how_fast_and_how_long_one_waits(self) -> None:
        assert growing(noted([40 * minute for minute in range(11)]), NOW) == {"mail": pytest.approx(40)}

        mail = pool("mail", ready=1_200, growing=40.2, predicted_wait_seconds=180.0)
        [need] = needs.needs(overall(mail))

        assert sentence(need) == "Pool mail is growing"
        assert need.cause == ("1,200 jobs ready. 40 more come each minute than are done, and a new one waits 3 min.")
        assert need.action_url == "/dashboard/pools/?name=mail"
        [late] = needs.needs(overall(mail | {"oldest_ready_age_seconds": 130.0}))
        assert sentence(late) == "Pool mail is 2 min 10 s behind"
        assert late.cause.endswith("40 more come each minute than are done, and a new one waits 3 min.")

    @pytest.mark.parametrize(
        ("ready", "why"),
        [
            ([0, 0, 0, 0, 0, 0, 0, 0, 0, 900], "a burst just came"),
            ([0, 0, 0, 0, 900, 880, 860, 840, 820, 800], "a burst in the middle is worked off slowly"),
            ([900, 800, 700, 600, 500, 400, 300, 200, 100, 50], "it drains"),
            ([0, 500, 0, 500, 0, 500, 0, 500, 0, 500], "a batch comes every other minute"),
            ([100, 300, 20, 250, 400, 10, 300, 100, 420, 30], "it goes up and down"),
            ([0, 100, 200, 300, 400, 500, 600, 700, 600, 300], "it grew, and is on its way down"),
            ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "too few to tell"),
            ([10_000 + 50 * minute for minute in range(10)], "as long as it was, as far as anybody can see"),
            ([100, 200, 300, 400], "most of the time nobody looked"),
            ([0] * 10, "nothing waits"),
        ],
    )
    def test_nothing_else_is_called_growth(self, ready: list[int], why: str) -> None:
        assert growing(noted(ready), NOW) == {}, why

    def test_how_it_grew_before_that_does_not_count(self) -> None:
        grew = noted([40 * minute for minute in range(11)])

        assert set(growing(grew, NOW)) == {"mail"}
        assert growing(grew, NOW + timedelta(minutes=5)) == {}
        assert growing(noted([*range(0, 2_000, 40), *[2_000] * 11]), NOW) == {}

    def test_a_line_that_is_worked_off_in_a_moment_may_grow(self) -> None:
        assert needs.needs(overall(pool("mail", ready=900, growing=90.0, predicted_wait_seconds=20.0))) == []

    def test_who_asks_when_it_drains_is_told(self, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        shift = datetime.now(UTC) - NOW
        notes = [note._replace(at=note.at + shift) for note in noted([40 * minute for minute in range(1, 11)])]
        monkeypatch.setattr(api.stats, "backlog", lambda minutes: notes)
        monkeypatch.setattr("dashboard.standing.WAIT_THAT_MATTERS_SECONDS", 0.0)
        shop.worker(pools={"mail": 5})
        shop.many(5, pool="mail")

        assert "Pool mail is growing 5 jobs ready. 40 more come each minute" in text(viewer.get("/dashboard/"))
        assert "It grows: more comes than is done." in text(viewer.get("/dashboard/pools/?name=mail"))


AOF = Verdict("persistence", "warning", "The server keeps no append-only file.", "appendonly", "Set appendonly yes.")
SLOW = Verdict("speed", "warning", "The server took 340 ms to answer, at best", "SCHEDULER_REDIS_URL", "Look.")


class TestStore:
    def test_what_is_wrong_with_it_is_one_finding_with_the_fix(self) -> None:
        [need] = needs.needs(replace(overall(pool()), flaws=(AOF, SLOW)))

        assert sentence(need) == "The store may lose jobs"
        assert need.cause == "The server keeps no append-only file. Set appendonly yes. And 1 more finding."
        [slow] = needs.needs(replace(overall(pool()), flaws=(SLOW,)))
        assert sentence(slow) == "The store is slow"
        assert slow.cause == "The server took 340 ms to answer, at best. Look."

    def test_a_clock_that_jumped_is_news_for_an_hour(self) -> None:
        jumped = replace(overall(pool()), clock_jumped_at=NOW - timedelta(minutes=20))

        [need] = needs.needs(jumped)

        assert sentence(need) == "The store had its clock jump at 11:40"
        assert needs.needs(replace(jumped, clock_jumped_at=NOW - timedelta(hours=2))) == []

    def test_a_jump_that_a_worker_host_met_is_read_with_the_pools(self, shop: Shop) -> None:
        shop.ready(pool="mail")
        route = Route("mail", 1, 0)
        shop.engine.leases.recover(route, elapsed_ms=0, lease_ms=1)
        assert reads.overall().clock_jumped_at is None
        time.sleep(0.02)
        shop.engine.leases.recover(route, elapsed_ms=0, lease_ms=1)  # 20 ms at once, where none had passed

        assert reads.overall().clock_jumped_at is not None

    def test_a_server_that_keeps_nothing_is_told_to_everybody_unless_that_is_silenced(
        self,
        viewer: Client,
        make_valkey: Callable[..., ValkeyServer],
        settings: SettingsWrapper,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("dashboard.reads.whole.flaws", of_store.flaws)
        settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": make_valkey(appendonly="no").url}

        page = text(viewer.get("/dashboard/"))
        settings.SILENCED_SYSTEM_CHECKS = ["jobs.W024"]
        reads.forget()
        silenced = text(viewer.get("/dashboard/"))

        assert "The store may lose jobs The server keeps no append-only file" in page
        assert "The store may lose jobs" not in silenced

    def test_it_is_asked_once_and_more_often_only_where_it_is_slow(
        self, shop: Shop, round_trips: Count, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop.engine.store.inform()  # connects
        monkeypatch.setattr(glance, "SLOW_SECONDS", 60.0)
        assert round_trips(glance.glance) == 1

        monkeypatch.setattr(glance, "SLOW_SECONDS", 0.0)
        found: list[str] = []
        assert round_trips(lambda: found.extend(one.check for one in glance.glance())) == 3
        assert "speed" in found
