"""Charts as numbers: what is added up, what a gap is, where labels stand, what the sentence and the table say."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.test import Client

from dashboard import trends
from dashboard.chart import HEIGHT, LABEL_FOOT, LABEL_GAP, Chart, Line
from dashboard.formats import duration, rate
from jobs.api import Noted, Point
from jobs.core.figures import Figures
from tests.dashboard.browsing import tags, text
from tests.dashboard.seeding import Shop

NOW = datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC)
HOUR = trends.RANGES["1h"]


def point(seconds_ago: float, **counts: int) -> Point:
    figures = Figures.of(("run90" if name == "succeeded" else name, number) for name, number in counts.items())
    return Point(NOW - timedelta(seconds=seconds_ago), 10, figures)


def steps(*points: Point, over: trends.Range = HOUR) -> trends.Steps:
    return trends.Steps(points, over, NOW)


def note(minutes_ago: float, seconds: int = 60, **ready: int) -> Noted:
    return Noted(NOW - timedelta(minutes=minutes_ago), seconds, ready)


def chart(*values: tuple[float | None, ...]) -> Chart:
    lines = tuple(Line(f"line {number}", line) for number, line in enumerate(values))
    starts = tuple(NOW + timedelta(minutes=number) for number in range(len(values[0])))
    return Chart("x", "X", "Sentence.", starts, 60, lines, rate, "/s")


class TestThroughput:
    def test_it_tells_rates_by_the_step_and_sums_in_the_sentence(self) -> None:
        found = trends.throughput(steps(point(10, succeeded=60, enqueued=30), point(70, succeeded=120, dead=2)))

        assert found.lines[0].values[-2:] == (2.0, 1.0)
        assert found.lines[1].values[-2:] == (0.0, 0.5)
        assert found.sentence == "180 jobs succeeded and 2 died between 11:00 and 12:00."
        assert found.deaths[-2:] == (2, 0)
        assert found.rows[0] == ("11:59", ["1.0", "0.5", "0"])

    def test_what_is_older_than_the_range_or_newer_than_its_last_step_is_left_out(self) -> None:
        found = trends.throughput(steps(point(3_700, succeeded=9), point(1, succeeded=9)))

        assert found.is_empty

    def test_every_range_has_few_enough_points_to_be_drawn_by_the_server(self) -> None:
        for over in trends.RANGES.values():
            assert 30 <= len(steps(over=over).starts) <= 200
            assert over.step % 10 == 0
            assert over.minutes <= 120 or over.step % 300 == 0  # beyond, figures come in steps of 5 minutes


class TestPercentiles:
    def test_a_step_in_which_nothing_ran_is_a_gap_and_not_a_zero(self) -> None:
        found = trends.runs(steps(point(10, succeeded=4)))

        p50 = found.lines[0].values
        assert p50[-2] is None
        assert p50[-1] is not None
        assert found.paths[0][1].startswith("M600.0")

    def test_nothing_at_all_is_said(self) -> None:
        assert trends.waits(steps()).sentence == "No job waited between 11:00 and 12:00."


class TestBacklog:
    def test_it_is_told_by_pool_the_fullest_first_the_small_ones_together(self) -> None:
        found = trends.backlog([note(1, **{f"pool{number}": number for number in range(1, 9)})], steps())

        assert [line.label for line in found.lines] == ["pool8", "pool7", "pool6", "pool5", "pool4", "3 other pools"]
        assert found.lines[-1].values[-1] == 6
        assert found.sentence == "36 jobs ready at the last note; at most 8 in pool8."

    def test_a_pool_that_was_always_empty_is_told_so(self) -> None:
        assert trends.backlog([note(1, mail=0)], steps()).sentence == "No job was ready whenever it was noted."

    def test_where_nobody_noted_it_there_is_a_gap(self) -> None:
        found = trends.backlog([note(50, billing=3), note(2, billing=5)], steps())

        values = found.lines[0].values
        assert values[-1] == 5
        assert values[30] is None
        assert found.paths[0][1].count("M") == 2

    def test_between_two_half_hours_the_earlier_holds(self) -> None:
        over = trends.RANGES["30d"]
        found = trends.backlog([note(60 * 24, 1800, billing=3), note(60 * 16, 1800, billing=4)], steps(over=over), "")

        assert found.lines[0].values[-3:] == (3, 4, 4)

    def test_without_any_note_it_says_why_it_is_empty(self) -> None:
        found = trends.backlog([], steps())

        assert found.is_empty
        assert found.sentence == "No worker host has noted the backlog in this time."


class TestDrawing:
    @pytest.mark.parametrize("ends", [(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (9.0,) * 6, (1.0, 1.1, 1.2, 8.9, 9.0, 0.0)])
    def test_no_label_stands_on_another_or_outside(self, ends: tuple[float, ...]) -> None:
        places = [label.y for label in chart(*((9.0, end) for end in ends)).labels]

        assert places == sorted(places)
        assert all(later - earlier >= LABEL_GAP - 0.01 for earlier, later in pairwise(places))
        assert places[0] >= 0
        assert places[-1] <= HEIGHT - LABEL_FOOT, "letters hang below their line"

    def test_one_value_between_two_gaps_is_seen(self) -> None:
        assert chart((None, 4.0, None)).paths[0][1] == "M300.0,50.0h2"

    def test_the_scale_is_plain_and_begins_at_zero(self) -> None:
        assert chart((0.0, 1.4)).scale == ["1.5", "1", "0.5", "0"]
        assert chart((0.0, 2_500.0)).scale == ["3,000", "2,000", "1,000", "0"]

    def test_the_script_gets_the_same_numbers_as_the_table(self) -> None:
        drawn = chart((1.0, None, 3.0))
        data = json.loads(drawn.data)

        assert data["lines"][0]["values"] == [1.0, None, 3.0]
        assert data["lines"][0]["texts"] == [cells[0] for _, cells in reversed(drawn.rows)]


class TestPage:
    def test_each_range_is_a_link_that_keeps_the_pool(self, viewer: Client, shop: Shop) -> None:
        shop.succeeded(pool="billing")
        page = viewer.get("/dashboard/charts/?range=24h&pool=billing")

        links = [str(tag["href"]) for name, tag in tags(page) if name == "a" and "range=" in str(tag.get("href"))]
        assert links == [f"?pool=billing&range={name}" for name in trends.RANGES]
        assert [tag["href"] for _, tag in tags(page) if tag.get("aria-current") == "true"] == [links[3]]
        assert "Charts of pool billing" in text(page)
        assert "Jobs per second, last 24 hours" in text(page)

    def test_without_script_there_is_a_drawing_a_sentence_and_a_table(self, viewer: Client, shop: Shop) -> None:
        shop.many(3)
        shop.engine.backlog.note()

        page = viewer.get("/dashboard/charts/?range=15m")

        assert "3 jobs ready at the last note; at most 3 in default." in text(page)
        assert 'class="line dash-0 is-ready" d="M' in page.content.decode()
        assert "Ready jobs by pool as a table" in page.content.decode()

    def test_a_pool_that_there_is_not_and_a_range_that_is_none_are_answered(self, viewer: Client) -> None:
        assert "There is no pool nowhere." in text(viewer.get("/dashboard/charts/?pool=nowhere&range=nonsense"))

    def test_the_overview_has_the_range_of_its_address_and_leads_to_all_charts(self, viewer: Client) -> None:
        page = viewer.get("/dashboard/?range=7d")

        assert "Jobs per second, last 7 days" in text(page)
        assert "/dashboard/charts/?range=7d" in page.content.decode()


@pytest.mark.parametrize(
    ("longest", "labels"),
    [
        (0.0, ["3 ms", "2 ms", "1 ms", "0"]),
        (0.14, ["150 ms", "100 ms", "50 ms", "0"]),
        (1.2, ["1.5 s", "1 s", "500 ms", "0"]),
        (40.0, ["45 s", "30 s", "15 s", "0"]),
        (100.0, ["3 min", "2 min", "1 min", "0"]),
        (7_000.0, ["3 h", "2 h", "1 h", "0"]),
        (800_000.0, ["12 days", "8 days", "4 days", "0"]),
    ],
)
def test_grid_lines_of_lengths_of_time_lie_where_people_count_them(longest: float, labels: list[str]) -> None:
    found = Chart("x", "X", "", (NOW,), 60, (Line("p50", (longest,)),), duration, "", is_of_time=True)

    assert found.scale == labels


@pytest.mark.parametrize(
    ("over", "pattern"),
    [
        ("6h", r"(\d\d:\d\d ){5}"),
        ("24h", r"30 Jun, \d\d:\d\d (\d\d:\d\d ){1,2}1 Jul, \d\d:\d\d (\d\d:\d\d ){1,2}"),
        ("7d", r"(\d+ (Jun|Jul) ){5}"),
    ],
)
def test_the_axis_names_a_day_once_and_no_hours_of_a_week(over: str, pattern: str) -> None:
    times = trends.throughput(steps(over=trends.RANGES[over])).times

    assert re.fullmatch(pattern, " ".join([*times, ""])), times
