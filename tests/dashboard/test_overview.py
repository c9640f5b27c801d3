"""What stands beside the findings of the overview: evidence, deploys, hosts that need a look, what fires next."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard import evidence, needs, questions, reads, trends
from dashboard.day import Day, day_of
from dashboard.figures import figures
from dashboard.hosts import fleet_of
from dashboard.overall import Overall
from jobs.api import ErrorGroup, Noted, Point, Release, Worker
from jobs.api.workflows import NodeCounts
from jobs.core.figures import Figures
from jobs.models import Schedule
from jobs.services import carrying
from jobs.store.keys import RunKeys
from tests.dashboard.browsing import tags, text
from tests.dashboard.readings import pool
from tests.dashboard.run_pages import NIGHTLY, links
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

NOW = datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def group(**facts: Any) -> ErrorGroup:
    common: dict[str, Any] = {
        "fingerprint": "f",
        "error_type": "Declined",
        "message": "no funds",
        "place": "",
        "pattern": "no funds",
    }
    common |= {"count": 4, "first_seen": ago(minutes=58), "last_seen": NOW, "types": ["charge"], "pools": ["billing"]}
    return ErrorGroup(**{**common, "sample": "j", "hours": [0] * 22 + [3, 1], **facts})


def worker(host: str, *, alive: bool = True, seen_ago: float = 0, started_ago: float = 0, version: str = "1") -> Worker:
    now = round(NOW.timestamp() * 1000)
    times = {"now_ms": now, "last_seen_ms": now - round(seen_ago * 1000)}
    started = now - round(started_ago * 1000)
    facts: dict[str, Any] = {"id": host, "host": host, "hostname": host, "pid": 1, "pools": {}, "state": "consuming"}
    return Worker(**facts, **times, started_at_ms=started, version=version, alive=alive)


class TestDay:
    def test_what_ended_is_told_with_the_share_that_succeeded_and_never_rounded_up_to_all(self) -> None:
        points = [Point(ago(hours=2), 300, Figures.of([("run90", 9_999), ("dead", 1)]))]

        day = day_of(points, [], lambda at: [], NOW)

        assert (day.ended, day.share) == (10_000, "99.9 %")
        assert "In 24 hours 10,000 ended, 99.9 % of them well." in questions.summary(overall(day, dead=1))
        assert Day().share == ""

    def test_deaths_are_counted_from_the_newest_release_on(self) -> None:
        asked: list[datetime] = []

        def since(at: datetime) -> list[Point]:
            asked.append(at)
            return [Point(NOW, 10, Figures.of([("dead", 3)]))]

        day = day_of([], [Release("a", ago(hours=9)), Release("b", ago(hours=1))], since, NOW)

        assert (day.release, day.released_at, day.died_since, asked) == ("b", ago(hours=1), 3, [ago(hours=1)])


def overall(day: Day | None = None, **facts: Any) -> Overall:
    states = {"dead": facts.pop("dead", 0)}
    return Overall(states=states, hosts=1, workers=1, at=NOW, day=day, **facts)


class TestFindings:
    def test_an_error_is_told_with_its_beginning_and_the_deploy_before_it(self) -> None:
        day = Day(release="9f3c2ab", released_at=ago(hours=1))

        (need,) = needs.needs(overall(day, dead=4), [group()], 4)

        assert need.before + need.noun + need.after == "4 jobs of charge died of one error"
        assert need.cause == "Declined: no funds. Began 11:02, 2 min after deploy 9f3c2ab."
        assert (need.action, need.action_url, need.pool) == ("Open the group", "/dashboard/dead/?group=f", "billing")

    def test_a_pool_that_is_paused_already_is_not_offered_to_be_paused(self) -> None:
        held = pool("billing", paused={"by": "ana"})

        (need,) = needs.needs(overall(dead=4, pools=(held,)), [group()], 4)

        assert need.pool == ""

    def test_an_error_within_a_second_of_the_deploy_began_right_after_it(self) -> None:
        day = Day(release="9f3c2ab", released_at=ago(minutes=58, milliseconds=400))

        (need,) = needs.needs(overall(day, dead=4), [group()], 4)

        assert need.cause == "Declined: no funds. Began 11:02, right after deploy 9f3c2ab."

    def test_an_error_that_is_older_than_the_deploy_is_not_laid_at_its_door(self) -> None:
        day = Day(release="9f3c2ab", released_at=ago(minutes=5))

        assert "deploy" not in needs.needs(overall(day, dead=4), [group()], 4)[0].cause

    @pytest.mark.parametrize(
        ("hours", "told"),
        [
            ([0] * 10 + [10] * 13 + [41], " 41 in the last hour, 4 × its usual one."),
            ([0] * 10 + [10] * 13 + [20], ""),  # a bad hour
            ([0] * 10 + [1] * 13 + [9], ""),  # few
            ([0] * 21 + [1, 1, 90], ""),  # it has just begun
            ([0] * 23 + [90], ""),
        ],
    )
    def test_an_error_of_which_many_more_die_than_in_its_usual_hour_is_a_surge(
        self, hours: list[int], told: str
    ) -> None:
        surging = group(count=9, hours=hours, first_seen=ago(hours=14))

        (of_one,) = needs.needs(overall(dead=9), [surging], 9)
        (among_others,) = needs.needs(overall(dead=12), [surging, group(fingerprint="g", count=3)], 12)

        assert of_one.cause.startswith(f"Declined: no funds.{told} Began ")
        assert among_others.cause.startswith(f"9 are one error of charge: Declined: no funds.{told} Began ")

    def test_of_a_sample_it_is_told_how_many_died_in_all(self) -> None:
        died = [Point(ago(hours=hours, minutes=5), 300, Figures.of([("dead", 500)])) for hours in range(1, 24)]
        day = day_of([*died, Point(ago(minutes=5), 300, Figures.of([("dead", 6_000)]))], [], lambda at: [], NOW)

        (need,) = needs.needs(overall(day, dead=9_000), [group(count=90, hours=[0] * 20 + [1] * 3 + [87])], 100)

        assert need.cause.endswith("no funds. 6,000 jobs died in the last hour, 12 × the usual one.")

    def test_of_a_sample_with_muted_errors_in_it_no_beginning_is_told(self) -> None:
        """200 died, 100 of them of a muted error: the newest 100 are as many as those that shout, and not the same."""
        seen = replace(overall(dead=200), quiet_dead=100)

        (need,) = needs.needs(seen, [group(count=30)], 100)

        assert need.cause == "30 of the newest 100 are one error of charge: Declined: no funds."

    @pytest.mark.parametrize(
        ("hosts", "silent", "outdated"),
        [
            ([worker("a")], (), ()),
            ([worker("a"), worker("b", alive=False, seen_ago=30)], ("b",), ()),
            ([worker("a"), worker("b", alive=False, seen_ago=900)], (), ()),
            ([worker("a"), worker("a", alive=False, seen_ago=30)], (), ()),  # it came back
            ([worker("a", version="2", started_ago=700), worker("b", started_ago=9_000)], (), ("b",)),
            ([worker("a", version="2", started_ago=60), worker("b", started_ago=9_000)], (), ()),  # a deploy goes on
        ],
    )
    def test_hosts_that_went_silent_or_run_old_code(
        self, hosts: list[Worker], silent: tuple[str, ...], outdated: tuple[str, ...]
    ) -> None:
        fleet = fleet_of(hosts)

        assert (fleet.silent, fleet.outdated) == (silent, outdated)
        found = needs.needs(overall(silent=fleet.silent, outdated=fleet.outdated, newest=fleet.newest))
        assert [need.noun for need in found] == [*silent, *outdated]


class TestEvidence:
    def test_the_backlog_of_an_hour_is_a_line_with_the_same_in_words(self) -> None:
        notes = [Noted(ago(minutes=minutes), 60, {"a": 60 - minutes}) for minutes in (59, 30, 1)]

        found = evidence.backlogs(notes, NOW, ["a", "quiet"])

        assert set(found) == {"a"}
        assert found["a"].label == "Ready jobs in the last hour: 1 at first, 59 at last, 59 at most."
        assert found["a"].path.count("L") == 2

    def test_deaths_by_the_hour_have_the_deploy_among_them(self) -> None:
        found = evidence.trend(group(), NOW, ago(hours=12))

        assert found is not None
        assert (found.deploy, found.path.count("M")) == (60.0, 2)
        assert "The dashed line is the last deploy." in found.label
        later = evidence.trend(group(), NOW, ago(hours=40))
        assert later is not None
        assert later.deploy is None
        assert evidence.trend(group(hours=[0] * 24), NOW) is None


class TestDeploysInCharts:
    def marks(self, *minutes_ago: float) -> list[tuple[str, str]]:
        steps = trends.Steps([], trends.RANGES["1h"], NOW)
        releases = [Release(f"r{minutes:g}", ago(minutes=minutes)) for minutes in minutes_ago]
        return [(mark.name, mark.label) for mark in trends.deploys(releases, steps)]

    def test_they_stand_where_they_were_and_names_do_not_overlap(self) -> None:
        assert self.marks(90, 50, 30, 29) == [("r50", "deploy r50"), ("r30", ""), ("r29", "deploy r29")]

    def test_the_sentence_names_them(self) -> None:
        steps = trends.Steps([], trends.RANGES["1h"], NOW)

        found = trends.throughput(steps, [Release("9f3c2ab", ago(minutes=30))])

        assert found.sentence.endswith("Deploy: 9f3c2ab.")


@pytest.fixture
def busy(shop: Shop) -> Shop:
    shop.worker(version="9f3c2ab", rss=588 << 20)
    for _ in range(2):
        shop.dead(pool="billing")
    shop.scheduled()
    return shop


def test_the_page_shows_it_all(operator: Client, busy: Shop) -> None:
    Schedule.objects.create(name="poll", job_type="report.build", payload={"year": 2024}, cron="* * * * *")
    carrying.push(["poll"])
    page = operator.get("/dashboard/")
    words = text(page)

    assert "What failed since the deploy? 2 jobs 9f3c2ab; 2 dead in all" in words
    assert "In 24 hours 2 ended, 0 % of them well." in words
    assert "Next to fire" in words
    assert "poll Every minute" in words
    assert "588 MiB" in words
    assert "1 error" in words
    hrefs = [str(found.get("href")) for tag, found in tags(page) if tag == "a"]
    assert any("/dashboard/dead/?group=" in href for href in hrefs)
    assert any("/actions/pool/pause/?id=billing" in href for href in hrefs)


def test_nodes_that_wait_for_others_and_those_that_were_skipped_are_counted_though_they_have_no_job(
    viewer: Client, runs: Runs
) -> None:
    runs.start(*NIGHTLY)
    page = viewer.get("/dashboard/")
    assert "blocked 4 in 1 run" in text(page)
    assert "skipped 0 of runs, in 24 h" in text(page)
    assert "/dashboard/workflows/?state=running" in links(page)

    runs.run_all({"extract": "dead"})
    reads.forget()

    page = viewer.get("/dashboard/")
    assert "blocked 0" in text(page)
    assert "skipped 2 of runs, in 24 h" in text(page)
    assert runs.engine.workflows.node_counts(runs.engine.workflows.server_now_ms() + 60_000).skipped == 0


def test_of_very_many_runs_it_is_told_that_there_are_more(runs: Runs) -> None:
    for _ in range(3):
        runs.start(*NIGHTLY)

    counted = runs.engine.workflows.node_counts(0, limit=2)

    assert counted == NodeCounts(waiting=8, runs=2, skipped=0, is_whole=False)
    told = figures(replace(overall(), nodes=counted))
    assert (told["nodes.waiting"], told["nodes.runs"], told["nodes.skipped"]) == ("8+", "in 2+ runs", "0+")


def test_who_may_not_pause_sees_no_such_button(viewer: Client, busy: Shop) -> None:
    hrefs = [str(found.get("href")) for tag, found in tags(viewer.get("/dashboard/")) if tag == "a"]

    assert not any("/actions/" in href for href in hrefs)


def test_figures_of_a_sample_say_so(viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.panels.overview.SAMPLE", 2)
    for _ in range(3):
        shop.dead()

    words = text(viewer.get("/dashboard/"))

    assert "3 jobs died 2 of the newest 2 are one error of email.send" in words
    assert "Dead, grouped by error of the newest 2" in words
    assert "1 error in the newest 2" in words


def test_pools_that_wait_while_no_worker_is_alive_are_one_finding(viewer: Client, shop: Shop) -> None:
    for number in range(7):
        shop.ready(pool=f"pool-{number}")

    words = text(viewer.get("/dashboard/"))

    assert "One thing needs you" in words
    assert "No worker is alive, and 7 ready jobs wait in 7 pools" in words
    assert re.search(r"The oldest has waited \S+ \S+, in pool-0. python manage.py runworkers Copy", words)


def test_of_many_findings_five_are_shown_and_the_others_can_be_unfolded(viewer: Client, shop: Shop) -> None:
    shop.worker(pools={"mail": 1})
    for number in range(7):
        shop.ready(pool=f"pool-{number}")

    words = text(viewer.get("/dashboard/"))
    shown, below = words.split("2 more", 1)

    assert "Seven things need you" in shown
    assert shown.count("No worker of this pool is alive.") == 5
    assert below.count("No worker of this pool is alive.") == 2


def test_of_findings_without_end_so_many_are_listed_and_the_rest_counted(
    viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.panels.overview.NEEDS_LISTED", 6)
    shop.worker(pools={"mail": 1})
    for number in range(8):
        shop.ready(pool=f"pool-{number}")

    words = text(viewer.get("/dashboard/"))

    assert words.count("No worker of this pool is alive.") == 6
    assert "3 more" in words
    assert "and 2 more: put these right first" in words


def test_a_number_that_is_rounded_is_told_to_the_last_job_in_its_title(
    viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.ready()
    million = replace(reads.overall(), states={"ready": 1_214_332, "dead": 999})
    monkeypatch.setattr(reads, "overall", lambda: million)

    told = {found.get("data-figure"): found.get("title") for _, found in tags(viewer.get("/dashboard/"))}
    live = viewer.get("/dashboard/snapshot/").json()["figures"]

    assert (told["states.ready"], told["states.dead"]) == ("1,214,332", None)
    assert (live["states.ready"], live["exact.states.ready"]) == ("1.21 m", "1,214,332")
    assert "exact.states.dead" not in live


def test_a_count_in_the_navigation_is_read_out_right_also_of_one(viewer: Client, shop: Shop) -> None:
    shop.dead()
    shop.ready(pool="reports")

    words = text(viewer.get("/dashboard/"))

    assert "Dead letters 1 dead" in words
    assert "Pools 1 without a worker" in words


def test_errors_that_have_no_room_are_counted(viewer: Client, shop: Shop) -> None:
    for name in ("A", "B", "C", "D", "E", "F"):
        shop.dead(error={"type": f"{name}Error", "message": name, "traceback": ""})

    assert "and 2 more errors" in text(viewer.get("/dashboard/"))


def test_a_pool_that_nobody_serves_is_told_on_its_page_its_jobs_and_the_overview(viewer: Client, shop: Shop) -> None:
    job_id = shop.ready(pool="reports")

    assert "Pool reports has 1 ready job and no worker" in text(viewer.get("/dashboard/"))
    assert "No worker serves it; 1 job ready." in text(viewer.get("/dashboard/pools/?name=reports"))
    assert "No worker serves reports, where jobs are ready." in text(viewer.get("/dashboard/pools/"))
    assert re.search(r"[Nn]o worker", text(viewer.get(f"/dashboard/jobs/{job_id}/")))


def test_one_spoilt_run_leaves_the_overview_as_it_is_known(viewer: Client, runs: Runs) -> None:
    run = runs.start(*NIGHTLY)
    client = runs.engine.store.client
    keys = RunKeys(runs.engine.store.namespace, run)
    client.hset(keys.counts, "blocked", "many")
    assert "blocked 0" in text(viewer.get("/dashboard/"))

    client.delete(keys.counts)
    client.set(keys.counts, "no hash")
    reads.forget()

    page = text(viewer.get("/dashboard/"))
    assert "blocked –" in page
    assert "Something that is stored cannot be read" not in page
