"""The pages of those who operate: one pool, workers, topology, doctor, the audit log."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from dashboard import reads
from dashboard.deeds import PAST
from dashboard.filters import words_kept
from dashboard.panels.pools import finding
from dashboard.panels.topology import by_pool
from dashboard.verdicts import Verdict
from jobs import api
from jobs.api import EndedHost, Partition, PoolSettings
from jobs.core.autoscale import Decision, Sighting
from jobs.core.job import Route
from jobs.core.states import JobState
from jobs.store.keys import SettingKeys
from tests.dashboard.browsing import send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.readings import overall, pool
from tests.dashboard.seeding import Shop

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2]


class TestVeryManyPools:
    @pytest.fixture
    def many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """130 that are well, and the one that waits without a worker comes last by its name."""
        well = [pool(f"tenant-{number:03}") for number in range(130)]
        seen = overall(*well, pool("zebra", ready=1, workers=0))
        monkeypatch.setattr(reads, "overall", lambda: seen)

    def test_they_are_shown_page_by_page_troubled_ones_first(self, viewer: Client, shop: Shop, many: None) -> None:
        first, last = (viewer.get(f"/dashboard/pools/?page={page}") for page in (1, 3))

        assert "131 pools" in text(first)
        assert "Page 1 of 3, troubled first" in text(first)
        assert _named(first) == ["zebra", *(f"tenant-{number:03}" for number in range(49))]
        assert _named(last) == [f"tenant-{number:03}" for number in range(99, 130)]
        assert "To serve zebra" in text(first)
        assert "To serve" not in text(last)

    @pytest.mark.parametrize("page", ["0", "-1", "99", "x", "9" * 20])
    def test_a_page_that_there_is_not_is_the_nearest(self, page: str, viewer: Client, shop: Shop, many: None) -> None:
        assert re.search(r"Page [13] of 3", text(viewer.get(f"/dashboard/pools/?page={page}")))

    def test_one_is_found_by_a_part_of_its_name(self, viewer: Client, shop: Shop, many: None) -> None:
        found = viewer.get("/dashboard/pools/?search=T-12")

        assert _named(found) == [f"tenant-{number}" for number in range(120, 130)]
        narrowed = viewer.get("/dashboard/pools/?search=tenant&page=2")
        links = [attributes.get("href") for tag, attributes in tags(narrowed) if tag == "a"]
        assert {"?search=tenant&page=1", "?search=tenant&page=3"} <= set(links)
        assert "No pool matches. Show all" in text(viewer.get("/dashboard/pools/?search=nothing"))

    def test_the_overview_shows_those_that_need_a_look_and_counts_the_others(
        self, viewer: Client, shop: Shop, many: None
    ) -> None:
        page = viewer.get("/dashboard/")

        assert _named(page)[:2] == ["zebra", "tenant-000"]
        assert len(_named(page)) == 15
        assert "and 116 more in Pools" in text(page)


class TestOnePool:
    @pytest.mark.parametrize(
        ("facts", "limit", "says"),
        [
            ({"workers": 0, "ready": 3}, None, "No worker serves it; 3 jobs ready."),
            ({"workers": 0}, None, "No worker serves it, and nothing waits."),
            ({}, None, "Nothing waits, and nothing runs."),
            ({"leased": 1}, None, "Nothing waits; 1 job runs."),
            ({"ready": 5, "leased": 2}, 2, "Its limit is reached: 2 of 2 run. 5 jobs ready."),
            ({"ready": 5, "slots_actual": 0}, None, "It has no slots: scale it. 5 jobs ready."),
            ({"ready": 5, "leased": 4}, None, "All 4 slots are busy; 5 jobs ready."),
            ({"ready": 5, "leased": 1}, None, "5 jobs ready, 1 of 4 slots busy."),
            (
                {"ready": 5, "parked": 5},
                None,
                "5 jobs are parked: their types are unknown to live workers, paused, or disabled.",
            ),
            ({"ready": 5, "parked": 4}, None, "5 jobs ready, 0 of 4 slots busy."),
            ({"ready": 1, "paused": {"by": "ana", "reason": "disk"}}, None, "Paused by ana: disk. 1 job ready."),
        ],
    )
    def test_the_first_line_says_why_it_stands_as_it_does(self, facts: Any, limit: int | None, says: str) -> None:
        pool = {"ready": 0, "leased": 0, "workers": 1, "slots_actual": 4, "paused": None} | facts

        assert finding(pool, PoolSettings(max_running=limit)) == says

    def test_it_shows_work_workers_limits_and_what_autoscaling_decided_and_why(
        self, operator: Client, shop: Shop
    ) -> None:
        shop.worker()
        shop.succeeded()
        api.pools.limit("default", max_running=7)
        api.pools.autoscale("default", mode="dry_run", max_slots=30)
        token = shop.engine.scalings.take("h", 60_000)
        seen = Sighting(slots=10, workers=1, ready=30, running=10, predicted_wait_seconds=8.0)
        shop.engine.scalings.decided(
            token, "default", seen, Decision(slots=14, reason="above_upper_boundary"), at_ms=_now(), dry_run=True
        )

        page = text(operator.get("/dashboard/pools/?name=default"))

        for words in ("email.send", "app-1", "10 → 14", "jobs wait a little too long (dry run)", "1 to 30 slots"):
            assert words in page
        assert "Run at once 7" in page

    def test_partitions_are_shown_where_there_are_several(self, viewer: Client, shop: Shop) -> None:
        shop.ready(pool="wide")
        shop.ready(pool="narrow")
        topology = SettingKeys(shop.engine.store.namespace).topology
        shop.engine.store.client.hset(topology, "wide", b'{"1":1,"2":2}')
        shop.engine.topology.forget()
        for _ in range(2):
            shop.leased(pool="wide", id=_id_in(shop, Route("wide", 2, 1)))

        page = text(viewer.get("/dashboard/pools/?name=wide"))

        assert "Version 2: takes new jobs Version 1: draining, 1 job left" in page
        assert "0 of version 2 0 0 0 1 of version 2 0 2 2 0 of version 1 1 0 1" in page
        assert "Partitions" not in text(viewer.get("/dashboard/pools/?name=narrow"))

    def test_one_that_is_not_there_is_said_to_be_so(self, viewer: Client) -> None:
        assert "There is no pool nothing." in text(viewer.get("/dashboard/pools/?name=nothing"))


class TestForms:
    def test_limits_are_set_for_good_and_emptied_again(self, operator: Client, shop: Shop) -> None:
        shop.ready()

        send(operator, "/dashboard/actions/pool/limit/", {"id": "default", "max_running": "5", "reason": "slow bank"})

        assert api.pools.settings("default").max_running == 5
        assert [(entry.action, entry.reason) for entry in api.audit.list().items] == [("pool.limit", "slow bank")]
        assert 'value="5"' in operator.get("/dashboard/actions/pool/limit/?id=default").content.decode()

        send(operator, "/dashboard/actions/pool/limit/", {"id": "default", "max_running": "", "max_pending": "9"})

        assert (api.pools.settings("default").max_running, api.pools.settings("default").max_pending) == (None, 9)

    def test_a_machine_may_be_asked_to_size_it(self, operator: Client, shop: Shop) -> None:
        shop.ready()
        form = {"min_slots": "2", "max_slots": "9", "target_wait_seconds": "4.5", "tolerance_seconds": "1"}
        form |= {"id": "default", "mode": "on", "cooldown_seconds": "60"}

        send(operator, "/dashboard/actions/pool/autoscale/", form)

        rule = api.pools.settings("default").autoscale
        assert rule is not None
        assert (rule.min_slots, rule.max_slots, rule.target_wait_seconds, rule.dry_run) == (2, 9, 4.5, False)
        assert 'value="9"' in operator.get("/dashboard/actions/pool/autoscale/?id=default").content.decode()

    @pytest.mark.parametrize(
        ("changed", "says"),
        [({"min_slots": "10"}, "The least must not be above the most."), ({"max_slots": "many"}, "whole number")],
    )
    def test_bounds_that_cannot_be_are_refused_where_they_stand(
        self, changed: dict[str, str], says: str, operator: Client, shop: Shop
    ) -> None:
        shop.ready()
        form = {"min_slots": "2", "max_slots": "9", "target_wait_seconds": "4", "tolerance_seconds": "1", "mode": "on"}

        response = send(
            operator, "/dashboard/actions/pool/autoscale/", form | {"id": "default", "cooldown_seconds": "60"} | changed
        )

        assert response.status_code == 400
        assert says in text(response)
        assert api.pools.settings("default").autoscale is None


class TestWorkers:
    def test_what_runs_is_told_with_age_progress_and_time_left(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.leased(timeout=300)
        shop.worker(current=[{"id": job_id, "type": "email.send", "started_at": _ago(42)}], running=1)

        page = text(viewer.get("/dashboard/workers/"))

        assert re.search(r"email\.send for 4\d s, 4 min( \d+ s)? left", page), page

    def test_what_runs_longer_than_it_may_is_said_to(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.leased(timeout=5)
        shop.worker(current=[{"id": job_id, "type": "email.send", "started_at": _ago(42)}], running=1)

        assert re.search(r"email\.send for 4\d s, over its time limit", text(viewer.get("/dashboard/workers/")))

    def test_a_host_that_went_away_stays_with_what_it_left_behind(self, viewer: Client, shop: Shop) -> None:
        shop.worker(host="well", hostname="app-2")
        shop.worker(ttl_ms=1)
        time.sleep(0.01)

        page = text(viewer.get("/dashboard/workers/"))

        assert "1 worker on 1 host; 1 host went silent within the last hour." in page
        assert "3 jobs ran on it, and will be taken back when the leases end." in page.partition("app-1")[2]

    def test_a_host_with_an_older_release_than_the_newest_is_named(self, viewer: Client, shop: Shop) -> None:
        shop.worker(host="old", version="r1", started_at_ms=_now() - 60_000)
        shop.worker(host="new", version="r2")

        assert "r1, older than r2" in text(viewer.get("/dashboard/workers/"))

    def test_of_very_many_hosts_a_page_shows_a_few_those_that_need_a_look_first(
        self, viewer: Client, shop: Shop
    ) -> None:
        for number in range(60):
            shop.worker(host=f"host-{number:02}", hostname=f"app-{number:02}")
        shop.worker(host="last", hostname="zebra", state="not consuming: the store does not answer")

        first, second = (text(viewer.get(f"/dashboard/workers/?page={page}")) for page in (1, 2))

        assert "61 workers on 61 hosts; 1 host takes no new jobs." in second
        assert ("zebra" in first, "app-48" in first, "app-49" in first) == (True, True, False)
        assert ("zebra" in second, "app-49" in second) == (False, True)

    def test_hosts_that_have_ended_are_told_with_why_and_what_they_handed_back(
        self, viewer: Client, shop: Shop
    ) -> None:
        facts: dict[str, Any] = {"hostname": "box", "version": "r1", "started_at_ms": 1, "ended_at_ms": _now()}
        for host, back in (("one", 2), ("other", 0)):
            gone = EndedHost(id=host, pid=7, why=f"{host} <b>ended</b>", handed_back=back, **facts)
            shop.engine.workers.leave([host], gone)

        page = text(viewer.get("/dashboard/workers/"))

        assert "No worker has been heard from." in page
        assert "box, process 7: one <b>ended</b>; 2 jobs handed back" in page
        assert "other <b>ended</b> ended" in page, "nothing was handed back"


class TestTopology:
    def test_partitions_stand_by_pool_and_version_newest_first(self) -> None:
        [shape] = by_pool([_partition(1, 0, 5), _partition(2, 0, 1), _partition(2, 1, 1)])

        assert [(version.number, version.is_newest, version.live) for version in shape.versions] == [
            (2, True, 2),
            (1, False, 5),
        ]
        assert shape.versions[1].words == "draining, 5 jobs left"

    def test_uneven_work_is_named(self) -> None:
        [shape] = by_pool([_partition(1, number, 100 if number == 2 else 10) for number in range(4)])

        assert shape.versions[0].words == "largest 10.0 × median, partition 2"

    def test_a_few_jobs_are_no_unevenness(self) -> None:
        [shape] = by_pool([_partition(1, 0, 3), _partition(1, 1, 0)])

        assert shape.versions[0].words == "takes new jobs"

    def test_pools_of_one_partition_are_not_called_even(self, viewer: Client, shop: Shop) -> None:
        shop.ready(pool="billing")
        assert "1 pool of one partition." in text(viewer.get("/dashboard/topology/"))
        shop.ready(pool="mail")
        assert "2 pools of one partition each." in text(viewer.get("/dashboard/topology/"))

    def test_of_very_many_pools_a_page_shows_a_few_and_the_sentence_is_about_all(
        self, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = [_partition(1, 0, 1, pool=f"tenant-{number:03}") for number in range(120)]
        found += [_partition(version, 0, 1, pool="zebra") for version in (1, 2)]
        monkeypatch.setattr(reads, "topology", lambda: found)

        first, last = (text(viewer.get(f"/dashboard/topology/?page={page}")) for page in (1, 3))

        assert "121 pools over 122 partitions; 1 old version drains." in last
        assert "Page 3 of 3" in last
        assert ("tenant-098" in last, "tenant-099" in last) == (False, True)
        assert "draining, 1 job left" in first, "what needs a look comes first"

    def test_what_is_wrong_with_the_store_is_told_with_what_mends_it(
        self, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A finding of the overview leads here."""
        assert 'data-key="store"' not in viewer.get("/dashboard/topology/").content.decode()
        flaw = Verdict("persistence", "warning", "It keeps <nothing>.", "REDIS_URL", "Turn the append-only file on.")
        monkeypatch.setattr("dashboard.reads.whole.flaws", lambda: (flaw,))
        reads.forget()

        page = text(viewer.get("/dashboard/topology/"))

        assert "The store persistence It keeps <nothing>. Turn the append-only file on." in page

    def test_the_page_leads_to_the_pool(self, viewer: Client, shop: Shop) -> None:
        shop.ready(pool="billing")

        links = [attributes.get("href") for tag, attributes in tags(viewer.get("/dashboard/topology/")) if tag == "a"]

        assert "/dashboard/pools/?name=billing" in links


class TestDoctor:
    @pytest.mark.parametrize("role", ["viewer", "operator"])
    def test_it_is_for_those_who_administer(self, role: str, login: Login, shop: Shop) -> None:
        client = login(role)

        assert client.get("/dashboard/doctor/").status_code == 403
        assert client.get("/dashboard/fragments/doctor/").status_code == 403
        assert "/dashboard/doctor/" not in client.get("/dashboard/").content.decode()

    def test_what_failed_comes_first_with_what_to_do_and_settings_without_secrets(
        self, administrator: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "METRICS_TOKEN": "t-4711", "VERSION": "r9"}
        found = [
            Verdict("store", "ok", "all is as it should be", "", ""),
            Verdict("clock", "failed", "ahead", "NTP", "Set it."),
        ]
        monkeypatch.setattr(reads, "diagnosis", lambda: found)

        page = text(administrator.get("/dashboard/doctor/"))

        assert "1 check failed." in page
        assert page.index("Set it.") < page.index("all is as it should be")
        assert '"r9"' in page
        assert "t-4711" not in page

    def test_a_secret_that_is_not_set_does_not_look_like_one(self) -> None:
        found = {setting.key: setting.value for setting in reads.settings()}

        assert found["METRICS_TOKEN"] == ""

    def test_the_checks_are_those_of_the_command_without_passwords(
        self, settings: Any, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "jobs.management.diagnosis.CHECKS",
            {"store": lambda: [_finding("redis://ana:hunter2@db:6379 does not answer")]},
        )

        [verdict] = reads.diagnosis()

        assert verdict.detail == "redis://ana:•••@db:6379 does not answer"


class TestAudit:
    @pytest.fixture
    def log(self) -> None:
        with api.audit.acting("ana", "dashboard"):
            pause = {"by": "ana", "at": "2026-01-01T09:00:00Z", "until": "2026-01-01T10:30:00Z", "reason": "bank"}
            api.audit.record("pool.pause", "billing", after={"paused": pause}, reason="=cmd()")
            api.audit.record("job.resubmit", "1,204 jobs", after={"done": 1204})
            api.audit.record("job.discard", "job-9")
            api.audit.record("scheduler.pause")
            api.audit.record("moon.howl", "x")

    def test_entries_are_sentences_that_lead_to_their_things(self, viewer: Client, log: None) -> None:
        response = viewer.get("/dashboard/audit/")
        page = text(response)

        for words in ("paused pool billing", "resubmitted 1,204 jobs", "discarded job job-9", "paused everything"):
            assert words in page
        assert "moon.howl x" in page
        assert "paused by ana until 10:30: bank" in page
        links = {attributes.get("href") for tag, attributes in tags(response) if tag == "a"}
        assert "/dashboard/pools/?name=billing" in links
        assert not [link for link in links if "job-9" in str(link)]

    def test_a_bulk_operation_says_of_which_jobs_in_words(self, viewer: Client, shop: Shop) -> None:
        now = datetime.now(UTC)
        shop.dead(pool="billing")
        narrow = api.JobFilter(states=(JobState.DEAD,), pool="billing", since=now - timedelta(days=7), until=now)
        api.bulk.start("resubmit", narrow, id="narrow", confirmed=1)
        with api.audit.acting("ana", "dashboard"):
            api.audit.record("type.change", "email.send", after={"filter": {"moon": "full"}, "tags": ["eu", "night"]})

        page = text(viewer.get("/dashboard/audit/"))

        assert "confirmed 1, all jobs of state dead, pool billing, since 20" in page
        assert '{"moon": "full"}, tags eu night' in page  # of a release that knew other words
        assert words_kept({}) == "all jobs"

    def test_they_can_be_taken_away_as_a_table_that_no_spreadsheet_runs(self, viewer: Client, log: None) -> None:
        response = viewer.get("/dashboard/audit/export/?format=csv&action=pool")

        [row] = csv.DictReader(io.StringIO(response.content.decode()))
        assert (row["who"], row["action"], row["target"], row["reason"]) == ("ana", "pool.pause", "billing", "'=cmd()")
        assert response["Content-Disposition"] == 'attachment; filename="audit.csv"'

    def test_each_verb_that_is_recorded_has_a_word(self) -> None:
        sources = (path.read_text() for top in ("jobs", "dashboard") for path in (ROOT / top).rglob("*.py"))
        verbs = {verb for text in sources for verb in re.findall(r'record\(\s*f?"[^".]+\.([a-z_-]+)"', text)}

        assert {"change", "discard", "revoke"} <= verbs
        assert verbs <= PAST.keys()

    def test_or_as_lines_of_json(self, viewer: Client, log: None) -> None:
        response = viewer.get("/dashboard/audit/export/?format=jsonl")

        entries = [json.loads(line) for line in response.content.decode().splitlines()]
        assert [entry["action"] for entry in entries][:2] == ["moon.howl", "scheduler.pause"]

    def test_a_stranger_gets_no_file(self, login: Login, log: None) -> None:
        assert login("stranger").get("/dashboard/audit/export/").status_code == 403


def _named(page: Any) -> list[str]:
    """The pools that have a row, in order."""
    keys = [str(attributes.get("data-key")) for tag, attributes in tags(page) if tag == "tr"]
    return [key.removeprefix("pool ") for key in keys if key.startswith("pool ")]


def _id_in(shop: Shop, route: Route) -> str:
    """An id that nobody has, whose job comes to this partition."""
    ids = (uuid4().hex for _ in itertools.count())
    return next(id for id in ids if shop.engine.topology.route_for(route.pool, id) == route)


def _partition(version: int, number: int, ready: int, pool: str = "default") -> Partition:
    others = dict.fromkeys(("scheduled", "retry_wait", "blocked", "leased", "throttled", "dead"), 0)
    return Partition(pool=pool, version=version, partition=number, ready=ready, **others)


def _finding(detail: str) -> Any:
    from jobs.management.diagnosis import Finding

    return Finding("store", "failed", detail, "SCHEDULER_REDIS_URL", "Start it.")


def _now() -> int:
    return int(time.time() * 1000)


def _ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
