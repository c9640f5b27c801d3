"""How spans, moments and rates are written on the command line."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from jobs.management import durations


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1w", timedelta(weeks=1)),
        ("250ms", timedelta(milliseconds=250)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1.5h", timedelta(minutes=90)),
        ("90", timedelta(seconds=90)),
        ("0", timedelta()),
    ],
)
def test_a_span_is_a_number_and_a_unit(written, meant):
    assert durations.duration(written) == meant


@pytest.mark.parametrize(
    "written", ["", "soon", "-5s", "5x", "5 s", "s", "1h 30m", "١s", "9" * 400 + "d", "nan", "inf"]
)
def test_anything_else_is_refused_with_an_example(written):
    with pytest.raises(ArgumentTypeError, match="write 90s, 5m, 2h, 7d or 1h30m"):
        durations.duration(written)


def test_a_moment_keeps_its_offset_and_is_told_in_utc():
    assert durations.moment("2026-01-31T09:00:00+01:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert durations.moment("2026-01-31T09:00:00Z").tzinfo is UTC


def test_a_moment_without_offset_is_read_in_the_projects_zone(settings):
    settings.TIME_ZONE = "Europe/Madrid"

    assert durations.moment("2026-01-31T09:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)


@pytest.mark.parametrize("written", ["", "yesterday", "2026-13-01", "9999-99-99T00:00"])
def test_what_is_no_moment_is_refused_with_an_example(written):
    with pytest.raises(ArgumentTypeError, match="2026-01-31T09:00:00Z"):
        durations.moment(written)


def test_since_reaches_back_from_now_or_names_a_moment():
    an_hour_ago = timezone.now() - timedelta(hours=1)

    assert abs(durations.since("1h") - an_hour_ago) < timedelta(seconds=5)
    assert durations.since("2026-01-31T09:00:00Z") == datetime(2026, 1, 31, 9, tzinfo=UTC)


@pytest.mark.parametrize("written", ["often", "9999999d"])
def test_since_says_what_it_takes(written):
    with pytest.raises(ArgumentTypeError, match="5m, 2h"):
        durations.since(written)


def test_a_rate_is_jobs_per_unit_of_time():
    assert durations.rate("10/s") == 10
    assert durations.rate("90/m") == 1.5
    assert durations.rate("3600/h") == 1
    assert durations.rate("5") == 5


@pytest.mark.parametrize("written", ["", "0/s", "fast", "5/", "/s", "5/fortnight", "-1/s"])
def test_what_is_no_rate_is_refused(written):
    with pytest.raises(ArgumentTypeError, match="write 10/s"):
        durations.rate(written)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(milliseconds=4), "4ms"),
        (timedelta(seconds=2.5), "2.5s"),
        (timedelta(seconds=59.6), "1m"),
        (timedelta(minutes=2, seconds=10), "2m 10s"),
        (timedelta(days=3, hours=4, minutes=5), "3d 4h"),
        (timedelta(days=3, seconds=5), "3d"),
    ],
)
def test_a_span_is_spoken_in_its_two_largest_units(span, words):
    assert durations.spoken(span) == words
