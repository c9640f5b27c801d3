"""The page of schedules: what it says of each, who may steer them, what will fire, and that it costs what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import forecasts
from jobs import api, job
from jobs.api import schedule_status
from jobs.api.forecast import Forecast, ForecastMinute
from jobs.core.schedule.strip import strip
from jobs.models import Schedule
from jobs.registry import registry
from tests.dashboard.browsing import hidden, send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop
from tests.dashboard.test_pages import MARK
from tests.support.wait import eventually

if TYPE_CHECKING:
    from pytest_django import DjangoCaptureOnCommitCallbacks

PAGE = "/dashboard/schedules/"


@pytest.fixture(autouse=True)
def paper(db: None) -> Iterator[None]:
    """A job type for the schedules to start."""

    def print_paper(day: str = "") -> None: ...

    with registry.restored():
        job("paper.print")(print_paper)
        yield


def schedule(name: str, **fields: Any) -> Schedule:
    common = {"job_type": "paper.print", "cron": "30 2 * * MON-FRI", "timezone": "Europe/Paris"}
    return Schedule.objects.create(name=name, **{**common, **fields})


def act(client: Client, verb: str, name: str, **fields: str) -> Any:
    return send(client, f"/dashboard/actions/schedule/{verb}/", {"id": name, **fields})


class TestList:
    def test_without_a_schedule_it_says_how_to_get_one(self, viewer: Client, shop: Shop) -> None:
        words = text(viewer.get(PAGE))

        assert "There is no schedule yet." in words
        assert "@job(schedule=Cron(" in words
        assert "Nothing fires in the next 24 hours." in words

    def test_each_says_what_it_does_how_it_went_and_what_comes(self, viewer: Client, shop: Shop) -> None:
        schedule("nightly")
        shop.engine.jobs.cancel(api.schedules.run("nightly").id)

        page = viewer.get(PAGE)

        words = text(page)
        assert "At 02:30, Monday through Friday 30 2 * * MON-FRI Europe/Paris" in words
        assert "cancelled" in words
        assert "02:30:00 CE" in words
        assert any(attributes.get("aria-label") == "Last firing: 1 cancelled." for _, attributes in tags(page))

    def test_a_paused_one_says_by_whom_and_why(self, viewer: Client, shop: Shop) -> None:
        schedule("nightly")
        api.schedules.pause("nightly", by="ana", reason="disk move")

        words = text(viewer.get(PAGE))

        assert "None is late; 1 schedule is paused." in words
        assert "paused by ana: disk move" in words

    def test_one_whose_last_firing_failed_is_named_beside_those_that_are_in_time(
        self, viewer: Client, shop: Shop
    ) -> None:
        schedule("hourly")
        schedule("nightly")
        shop.succeed(api.schedules.run("hourly").id)
        assert "None is late." in text(viewer.get(PAGE))

        shop.fail(api.schedules.run("nightly").id, "dead")

        assert "None is late; the last firing of 1 schedule failed." in text(viewer.get(PAGE))

        schedule("broken", error="cron: 61 is no minute")
        api.schedules.pause("hourly", by="ana")

        words = text(viewer.get(PAGE))
        assert "None is late; 1 schedule cannot fire; the last firing of 1 schedule failed." in words

    def test_a_late_one_is_flagged_on_its_page_in_the_navigation_and_on_the_overview(
        self, viewer: Client, shop: Shop, late: str
    ) -> None:
        page = viewer.get(PAGE)

        assert f"Late: {late}." in text(page)
        assert "no worker host is alive" in text(page)
        badge = [attributes for _, attributes in tags(page) if attributes.get("data-when") == "schedules.late"]
        assert badge
        assert all("hidden" not in attributes for attributes in badge)
        assert f"Schedule {late} is late" in text(viewer.get("/dashboard/"))

    def test_one_that_the_store_was_never_told_of_is_late_in_the_headline_as_in_its_row(
        self, viewer: Client, shop: Shop
    ) -> None:
        row = schedule("nightly")
        Schedule.objects.filter(pk=row.pk).update(changed_at=datetime.now(UTC) - timedelta(minutes=1))

        words = text(viewer.get(PAGE))

        assert "Late: nightly." in words
        assert "None is late" not in words

    def test_a_late_one_is_told_to_monitoring_systems(
        self, viewer: Client, shop: Shop, request: pytest.FixtureRequest
    ) -> None:
        def told() -> list[str]:
            lines = viewer.get("/metrics").content.decode().splitlines()
            return [line for line in lines if line.startswith("mainspring_schedule")]

        assert told() == [
            "mainspring_scheduler_paused 0.0",
            "mainspring_schedules_late 0.0",
            "mainspring_schedule_lateness_seconds 0.0",
        ]
        request.getfixturevalue("late")
        api.scheduler.pause(reason="moving")

        *first, lateness = told()
        assert first == ["mainspring_scheduler_paused 1.0", "mainspring_schedules_late 1.0"]
        assert float(lateness.partition(" ")[2]) > 0

    @pytest.fixture
    def late(
        self,
        shop: Shop,
        monkeypatch: pytest.MonkeyPatch,
        django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    ) -> str:
        """The name of one that was due, and that nobody fires."""
        monkeypatch.setattr(schedule_status, "LATE_MS", 0)
        with django_capture_on_commit_callbacks(execute=True):
            schedule("nightly")
            schedule("overdue", kind="once", cron="", run_at=datetime.now(UTC) + timedelta(milliseconds=100))
        eventually(api.schedules.late)
        return "overdue"

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ({}, ["broken", "paused", "nightly", "off"]),
            ({"state": "paused"}, ["paused"]),
            ({"state": "on"}, ["broken", "nightly"]),
            ({"state": "disabled"}, ["off"]),
            ({"state": "broken"}, ["broken"]),
            ({"search": "NIGHT"}, ["nightly"]),
            ({"search": "paper", "state": "on"}, ["broken", "nightly"]),
            ({"search": "nothing"}, []),
        ],
    )
    def test_they_are_found_troubled_first(
        self, viewer: Client, shop: Shop, query: dict[str, str], names: list[str]
    ) -> None:
        schedule("nightly")
        schedule("off", enabled=False)
        schedule("paused", paused_at=datetime.now(UTC))
        schedule("broken")
        Schedule.objects.filter(name="broken").update(cron="nonsense", error="It cannot.")

        page = viewer.get(PAGE, query)

        assert [key.removeprefix("schedule ") for key in keys(page) if key.startswith("schedule ")] == names
        assert names or "No schedule matches." in text(page)

    def test_a_thousand_are_shown_page_by_page_for_the_same_price(self, viewer: Client, shop: Shop) -> None:
        Schedule.objects.bulk_create(
            Schedule(name=f"schedule-{number:04}", job_type="paper.print", cron="30 2 * * *") for number in range(1_000)
        )
        with CaptureQueriesContext(connection) as queries:
            page = viewer.get(PAGE, {"page": "2"})

        assert len(queries) <= 7
        assert "Page 2 of 20" in text(page)
        assert len([key for key in keys(page) if key.startswith("schedule ")]) == 50
        assert len(page.content) < 250_000
        assert "All schedules are being asked." in text(page)
        assert "1,000 firings in the next 24 hours" in text(viewer.get("/dashboard/fragments/schedules/"))
        assert "1,000 firings in the next 24 hours" in text(viewer.get(PAGE))

    def test_markup_in_any_field_is_shown_as_text(self, viewer: Client, shop: Shop) -> None:
        row = schedule("x")
        Schedule.objects.filter(pk=row.pk).update(
            name=MARK, job_type=MARK, cron=MARK, timezone=MARK, paused_at=datetime.now(UTC), paused_reason=MARK
        )

        for query in ({}, {"name": MARK}, {"search": MARK}, {"state": MARK}, {"page": MARK}):
            body = viewer.get(PAGE, query).content.decode()

            assert "<script>alert" not in body
            assert "<img" not in body


def keys(response: Any) -> list[str]:
    return [str(attributes["data-key"]) for _, attributes in tags(response) if attributes.get("data-key")]


class TestOne:
    def test_it_shows_what_comes_on_both_clocks_and_what_was(self, viewer: Client, shop: Shop) -> None:
        schedule("nightly")
        made = api.schedules.run("nightly", by="ana")

        page = viewer.get(PAGE, {"name": "nightly"})

        words = text(page)
        assert words.count("02:30:00 CE") >= 4
        assert "run now, by ana" in words
        assert any(attributes.get("href") == f"/dashboard/jobs/{made.id}/" for _, attributes in tags(page))

    def test_one_that_is_not_there_is_told_with_the_nearest(self, viewer: Client, shop: Shop) -> None:
        schedule("nightly")

        assert "Did you mean 'nightly'?" in text(viewer.get(PAGE, {"name": "nightl"}))

    def test_one_of_the_code_says_where_to_change_it(self, viewer: Client, shop: Shop) -> None:
        schedule("nightly", owner="code")

        assert "It is declared in the code" in text(viewer.get(PAGE, {"name": "nightly"}))


class TestActions:
    def test_it_is_run_paused_and_resumed_each_after_a_question(self, operator: Client, shop: Shop) -> None:
        schedule("nightly")
        asked = text(operator.get("/dashboard/actions/schedule/run/", {"id": "nightly"}))
        assert "Run now nightly?" in asked
        assert "The rhythm does not move." in asked

        assert act(operator, "run", "nightly").status_code == 303
        assert "nightly was started: job" in text(operator.get(PAGE))
        act(operator, "pause", "nightly", reason="disk move")
        row = Schedule.objects.get()
        assert (row.paused_by, row.paused_reason) == ("operator", "disk move")
        act(operator, "resume", "nightly")
        assert not Schedule.objects.get().is_paused
        assert len(api.list_jobs(api.JobFilter()).items) == 1

    def test_sent_twice_run_now_makes_one_job(self, operator: Client, shop: Shop) -> None:
        schedule("nightly")
        question = hidden(operator.get("/dashboard/actions/schedule/run/", {"id": "nightly"}))

        answers = [send(operator, "/dashboard/actions/schedule/run/", question, script=True) for _ in range(2)]

        [job] = api.list_jobs(api.JobFilter()).items
        told = [answer.json()["message"] for answer in answers]
        assert told == [f"nightly was started: job {job.id}.", f"nightly had been started already: job {job.id}."]

    def test_a_name_that_is_gone_is_told(self, operator: Client, shop: Shop) -> None:
        act(operator, "run", "gone")

        assert "There is no schedule 'gone'." in text(operator.get(PAGE))

    def test_a_database_that_refuses_is_told(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        schedule("nightly")

        def refuse(*_: Any, **__: Any) -> None:
            raise OperationalError("disk I/O error")

        monkeypatch.setattr(Schedule, "save", refuse)
        assert act(operator, "pause", "nightly").status_code == 303
        assert "cannot be used: disk I/O error" in text(operator.get(PAGE))

    @pytest.mark.parametrize("verb", ["run", "pause", "resume"])
    def test_who_may_only_look_can_do_nothing(self, viewer: Client, shop: Shop, verb: str) -> None:
        schedule("nightly")

        assert act(viewer, verb, "nightly").status_code == 403
        assert viewer.get(f"/dashboard/actions/schedule/{verb}/", {"id": "nightly"}).status_code == 403
        assert "/actions/" not in viewer.get(PAGE).content.decode().partition("<main")[2].partition("<footer")[0]
        assert Schedule.objects.get().version == 1

    def test_nothing_changes_by_get_or_without_the_forms_token(self, operator: Client, shop: Shop) -> None:
        schedule("nightly")

        assert operator.get("/dashboard/actions/schedule/run/", {"id": "nightly"}).status_code == 200
        assert operator.post("/dashboard/actions/schedule/run/", {"id": "nightly"}).status_code == 403
        assert api.list_jobs(api.JobFilter()).items == []

    def test_a_range_that_cannot_be_read_is_asked_for_again_as_it_was_written(
        self, operator: Client, shop: Shop
    ) -> None:
        schedule("nightly")

        page = operator.get("/dashboard/actions/schedule/backfill/", {"id": "nightly", "start": "soon", "end": "1d"})

        assert "Write a time such as 2026-01-31T09:00" in text(page)
        assert {"soon", "1d"} <= {str(attributes.get("value")) for tag, attributes in tags(page) if tag == "input"}

    def test_a_verb_that_does_not_exist_is_404(self, operator: Client, shop: Shop) -> None:
        assert act(operator, "destroy", "nightly").status_code == 404

    def test_the_admin_is_offered_to_whom_it_lets_in(self, login: Login, shop: Shop) -> None:
        schedule("nightly")

        assert "Edit in the admin" not in text(login("operator").get(PAGE, {"name": "nightly"}))


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def forecast(*minutes: tuple[int, int], capacity: float | None = None, crowded: str = "") -> Forecast:
    made = [
        ForecastMinute(
            at=NOON + timedelta(minutes=at), count=count, pools={"default": count}, names=["a"], crowded=crowded
        )
        for at, count in minutes
    ]
    total = sum(count for _, count in minutes)
    end = NOON + timedelta(days=1)
    return Forecast(start=NOON, end=end, total=total, minutes=made, capacity={"default": capacity} if made else {})


class TestForecast:
    def test_nothing_draws_nothing(self) -> None:
        assert forecasts.firings(forecast()) is None

    def test_it_says_how_many_and_when_most(self) -> None:
        chart = forecasts.firings(forecast((0, 1), (60, 30), (61, 2), capacity=15.0))

        assert chart is not None
        assert chart.sentence == "33 firings in the next 24 hours, at most 30 jobs in one minute, at 13:00."
        assert chart.hours == (("12:00", 1, 1), ("13:00", 32, 30))
        assert chart.scale == ("30", "20", "10", "0")
        assert chart.capacity == 48.0
        assert chart.bars.startswith("M0.00 96v-3.2M25.00 96v-96.0")
        assert chart.capacities == "As measured lately, pool default runs about 15 jobs a minute."

    def test_what_was_not_measured_is_not_drawn(self) -> None:
        chart = forecasts.firings(forecast((0, 1)))

        assert chart is not None
        assert chart.capacity is None
        assert "nothing has run there lately" in chart.capacities

    def test_crowded_minutes_are_named(self, viewer: Client, shop: Shop) -> None:
        for number in range(12):
            schedule(f"report-{number}", cron="0 0 * * *", timezone="UTC")

        words = text(viewer.get(PAGE))

        assert "12 jobs at 00:00" in words
        assert "report-0, report-1" in words
        assert "and 2 more" in words


class TestStrip:
    def test_each_outcome_has_a_shape_and_is_counted(self) -> None:
        drawn = strip([("succeeded", 1.0), ("failed", None), ("skipped", None), ("pending", None), ("succeeded", None)])

        assert drawn.label == "Last 5 firings: 2 succeeded, 1 failed, 1 skipped, 1 pending."
        assert [outcome for outcome, _ in drawn.paths] == ["succeeded", "failed", "skipped", "pending"]
        assert drawn.width == 42

    def test_a_longer_run_is_a_higher_bar(self) -> None:
        def height(length: float) -> int:
            return int(strip([("succeeded", length)]).paths[0][1].split("v-")[1].split("h")[0])

        assert height(0.0) < height(1.0) < height(2.0) == height(90.0)

    def test_nothing_has_fired_yet(self) -> None:
        assert strip([]).label == "There is no firing yet."


def test_the_page_of_one_says_who_changed_what_without_secrets(viewer: Client) -> None:
    fields = {"job_type": "webhook.dispatch", "cron": "0 5 * * *"}
    payload = {"url": "https://example.com", "event": "x", "data": {"token": "t-4711"}}
    api.schedules.create(name="told", payload=payload, by="ana", **fields)
    api.schedules.update("told", cron="0 6 * * *", payload=payload | {"data": {"token": "t-4712"}}, by="ben")

    page = text(viewer.get("/dashboard/schedules/?name=told"))

    assert re.search(r"ben (changed|updated) it", page)
    assert "0 5 * * * → 0 6 * * *" in page
    assert "t-471" not in page
