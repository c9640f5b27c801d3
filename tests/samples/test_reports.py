"""The weather report: right figures, the same every time, and honest about what is missing."""

from __future__ import annotations

import csv
from datetime import date
from itertools import pairwise

import pytest

from samples import reports


def test_the_data_covers_four_years_without_a_gap() -> None:
    days = [reading.day for reading in reports.readings()]

    assert (days[0], days[-1], len(days)) == (date(2012, 1, 1), date(2015, 12, 31), 1461)
    assert all((after - before).days == 1 for before, after in pairwise(days))


def test_figures_agree_with_a_plain_sum_over_the_file() -> None:
    with reports.READINGS.open(newline="") as file:
        march = [row for row in csv.DictReader(file) if row["date"].startswith("2014-03")]

    line = list(reports.months(2014, resamples=100))[2]

    assert line.month == "2014-03"
    assert line.days == 31
    assert line.precipitation == round(sum(float(row["precipitation"]) for row in march), 1)
    assert line.warmest == max(float(row["temp_max"]) for row in march)
    assert line.coldest == min(float(row["temp_min"]) for row in march)
    assert line.wet_days == sum(float(row["precipitation"]) >= 1 for row in march)


def test_the_interval_holds_the_mean_and_is_the_same_at_every_run() -> None:
    once = list(reports.months(2013, resamples=500))
    again = list(reports.months(2013, resamples=500))

    assert once == again
    assert len(once) == 12
    assert all(line.low < line.mean < line.high for line in once)


def test_a_year_without_readings_is_refused_with_what_there_is() -> None:
    with pytest.raises(reports.NoReadings, match="no readings for 2016: the data covers 2012-01-01 to 2015-12-31"):
        list(reports.months(2016, resamples=100))


def test_days_without_a_reading_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gappy = tuple(reading for reading in reports.readings() if reading.day.day != 13)
    monkeypatch.setattr(reports, "readings", lambda: gappy)

    assert [line.missing for line in reports.months(2012, resamples=100)] == [1] * 12


def test_the_file_reads_back_as_it_was_written() -> None:
    lines = list(reports.months(2015, resamples=100))

    rows = list(csv.DictReader(reports.as_csv(lines).decode().splitlines()))

    assert [row["month"] for row in rows] == [line.month for line in lines]
    assert float(rows[6]["mean"]) == lines[6].mean
