"""``schedules list | show | run | pause | resume | backfill | export | import | forecast``."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs import api
from jobs.api import audit
from jobs.models import Schedule
from tests.commands.conftest import Cli

pytestmark = pytest.mark.django_db(transaction=True)  # commands close their connections, and doctor asks in a thread


@pytest.fixture(autouse=True)
def nightly() -> None:
    """One schedule, in the store too."""
    Schedule.objects.all().delete()
    api.schedules.create(name="nightly", job_type="commands.greet", cron="30 2 * * *", payload={"name": "Ana"})


def test_the_list_shows_when_each_fires(cli: Cli) -> None:
    listed = cli("schedules", "list")

    assert listed.code == 0
    assert listed.out.splitlines()[0] == "name\tstate\ttype\twhen\tnext\tlast\toutcome"
    assert listed.out.splitlines()[1].startswith("nightly\ton\tcommands.greet\t30 2 * * * (UTC)\t")


def test_json_has_definition_and_status(cli: Cli) -> None:
    [item] = cli("schedules", "list", "--json").json["items"]

    assert (item["name"], item["cron"], item["paused"], item["late_seconds"]) == ("nightly", "30 2 * * *", None, None)
    assert item["next_at"].endswith("02:30:00.000Z")


def test_one_is_shown_with_its_firings_and_its_history(cli: Cli) -> None:
    shown = cli("schedules", "show", "nightly", "--json", "--count", "3").json
    assert len(shown["next"]) == 3

    text = cli("schedules", "show", "nightly").out
    assert "30 2 * * * (UTC)" in text
    assert "created" in text
    assert '{"name": "Ana"}' in text


def test_an_unknown_name_exits_3(cli: Cli) -> None:
    assert cli("schedules", "show", "nigthly").code == 3
    assert "nightly" in cli("schedules", "run", "nigthly").err


def test_run_answers_the_job(cli: Cli) -> None:
    made = cli("schedules", "run", "nightly", "--json").json
    found = api.get_job(made["id"])

    assert (found.schedule, found.payload) == ("nightly", {"name": "Ana"})


def test_pause_and_resume(cli: Cli) -> None:
    assert (
        cli("schedules", "pause", "nightly", "--reason", "stocktaking", "--json").json["paused"]["reason"]
        == "stocktaking"
    )
    assert Schedule.objects.get().is_paused
    assert cli("schedules", "resume", "nightly").out == "nightly\ton\n"


def test_a_backfill_says_how_many_and_makes_them_only_when_it_is_told_to(cli: Cli) -> None:
    now = timezone.now()
    span = ("--from", (now - timedelta(days=3)).isoformat(), "--to", now.isoformat())

    assert cli("schedules", "backfill", "nightly", *span, "--dry-run", "--json").json == {"dry_run": True, "count": 3}
    refused = cli("schedules", "backfill", "nightly", *span)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    made = cli("schedules", "backfill", "nightly", *span, "--yes", "--json").json
    assert made == {"count": 3, "made": 3, "there": 0}
    assert cli("schedules", "backfill", "nightly", *span, "--yes").out == "Made 0 jobs; 3 were there already.\n"
    [filled] = cli("schedules", "show", "nightly", "--json").json["firings"]
    assert (filled["reason"], filled["by"]) == ("backfill", audit.actor().who)


def test_a_file_goes_out_and_comes_back(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "schedules.json"
    file.write_text(cli("schedules", "export").out)
    assert cli("schedules", "import", str(file)).out == "nightly\tunchanged\n"

    changed = json.loads(file.read_text())
    changed["schedules"][0]["cron"] = "0 4 * * *"
    file.write_text(json.dumps(changed))
    assert cli("schedules", "import", str(file), "--dry-run", "--json").json["changed"] == ["nightly"]
    assert Schedule.objects.get().cron == "30 2 * * *"
    assert cli("schedules", "import", str(file)).code == 0
    assert Schedule.objects.get().cron == "0 4 * * *"


@pytest.mark.parametrize(
    "content", ["", "[1]", '{"schedules": 3}', '[{"name": "x", "job_type": "commands.greet", "cron": "x"}]']
)
def test_a_file_that_holds_no_schedules_exits_2(cli: Cli, tmp_path: Path, content: str) -> None:
    file = tmp_path / "schedules.json"
    file.write_text(content)

    assert cli("schedules", "import", str(file)).code == 2


def test_the_forecast_counts_the_firings_to_come(cli: Cli) -> None:
    forecast = cli("schedules", "forecast", "--json").json

    assert forecast["total"] == 1
    assert forecast["items"][0]["names"] == ["nightly"]


def test_one_that_should_have_fired_and_did_not_is_flagged_by_list_and_doctor(cli: Cli) -> None:
    fields = {"kind": "once", "run_at": timezone.now() - timedelta(seconds=90)}
    api.schedules.create(name="overdue", job_type="commands.greet", payload={"name": "Ana"}, **fields)

    listed = cli("schedules", "list", "--late")
    [line] = listed.out.splitlines()[1:]
    assert line.startswith("overdue\tlate 1m 3")
    assert "1 of 1 are late: no worker host is alive" in listed.err
    [finding] = [found for found in cli("doctor", "--json").json["checks"] if found["check"] == "schedules"]
    assert finding["status"] == "failed"
    assert "no worker host is alive. The first is overdue, 1 min 3" in finding["detail"]


def test_doctor_names_a_schedule_that_cannot_fire(cli: Cli) -> None:
    Schedule.objects.update(error="99 is no minute")

    findings = [found for found in cli("doctor", "--json").json["checks"] if found["check"] == "schedules"]
    assert [found["status"] for found in findings] == ["warning"]
