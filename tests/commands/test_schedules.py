"""``schedules preview``: what a cron expression would do, without any server."""

from __future__ import annotations

from argparse import _SubParsersAction

import pytest
from django.core.management import load_command_class

NEW_YEAR = "2026-01-01T00:00:00Z"
NOBODY_LISTENS = {"SCHEDULER_REDIS_URL": "redis://127.0.0.1:1"}


def test_the_next_firings_are_shown_in_the_zone_and_in_utc(cli):
    result = cli("schedules", "preview", "30 6 * * MON", "--timezone", "Europe/Paris", "--from", NEW_YEAR)

    assert result.code == 0
    assert "At 06:30, on Monday" in result.out
    assert "2026-01-05T06:30:00.000+01:00\t2026-01-05T05:30:00.000Z\tMon" in result.out.splitlines()


def test_the_document_has_items_description_and_warnings(cli):
    result = cli(
        "schedules", "preview", "30 6 * * *", "--count", "1", "--from", NEW_YEAR, "--timezone", "UTC", "--json"
    )

    assert result.json == {
        "items": [{"utc": "2026-01-01T06:30:00.000Z", "local": "2026-01-01T06:30:00.000+00:00"}],
        "description": "At 06:30",
        "warnings": [],
    }


def test_without_a_zone_it_is_that_of_the_project(cli, settings):
    settings.TIME_ZONE = "Asia/Kolkata"

    result = cli("schedules", "preview", "30 6 * * *", "--from", NEW_YEAR, "--json")

    assert [item["local"][-6:] for item in result.json["items"]] == ["+05:30"] * 5


def test_the_name_of_the_schedule_decides_where_an_h_falls(cli):
    minutes = {
        cli("schedules", "preview", "H 6 * * *", "--name", name, "--json").json["items"][0]["utc"][14:16]
        for name in ("nightly", "weekly", "invoices")
    }

    assert len(minutes) > 1


def test_warnings_are_remarks_and_no_data(cli):
    result = cli("schedules", "preview", "0 6 * * *")

    assert "Warning: It fires on the full hour" in result.err
    assert "Warning" not in result.out


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["59/15 * * * *"], "'59 * * * *'"),
        (["0 0 31 2 *"], "'0 0 L * *'"),
        (["@every 5m"], "interval"),
        (["30 6 * * *", "--timezone", "Europe/Pariss"], "'Europe/Paris'"),
    ],
)
def test_what_is_refused_exits_2_and_says_what_to_write(cli, arguments, advice):
    result = cli("schedules", "preview", *arguments, "--json")

    assert (result.code, result.out, result.error["code"]) == (2, "", "schedule_invalid")
    assert advice in result.error["fix"]


@pytest.mark.parametrize("option", [["--count", "0"], ["--from", "soon"]])
def test_an_option_that_cannot_be_is_refused(cli, option):
    assert cli("schedules", "preview", "30 6 * * *", *option).code == 2


def test_no_server_is_needed(manage):
    result = manage("schedules", "preview", "30 6 * * *", "--json", **NOBODY_LISTENS)

    assert result.code == 0
    assert len(result.json["items"]) == 5


def test_each_verb_says_what_it_does_with_an_example():
    parser = load_command_class("jobs", "schedules").create_parser("manage.py", "schedules")
    [verbs] = [action.choices for action in parser._actions if isinstance(action, _SubParsersAction)]

    for name, verb in verbs.items():
        assert verb.description.endswith("."), name
        assert f"manage.py schedules {name}" in verb.epilog, name
