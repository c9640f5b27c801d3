"""``bulk`` and ``--background``: what worker hosts do to many jobs, watched and steered from the command line."""

import pytest

from jobs import api
from jobs.core.states import JobState
from jobs.engine import get_engine
from jobs.services.bulk import BulkWorker


def work():
    worker = BulkWorker(get_engine())
    while worker.tick()["parts"]:
        pass


def test_a_resubmit_in_the_background_is_left_to_hosts_shown_and_undone(cli, dead):
    ids = [dead("smtp"), dead("smtp")]
    other = dead("http")

    started = cli("dlq", "resubmit", "--all", "--search", "smtp", "--background", "--yes", "--json").json
    assert {api.get_job(id).state for id in ids} == {JobState.DEAD}
    work()

    shown = cli("bulk", "show", started["id"], "--json").json
    assert (shown["state"], shown["total"], shown["done"], shown["refusals"]) == ("done", 2, 2, {})
    assert "done, 2 of 2 done" in cli("bulk", "show", started["id"]).out
    assert [item["id"] for item in cli("bulk", "list", "--json").json["items"]] == [started["id"]]
    assert started["id"] in cli("bulk", "list").out
    assert api.get_job(other).state == JobState.DEAD
    cli("bulk", "undo", started["id"])
    work()
    assert {api.get_job(id).state for id in ids} == {JobState.CANCELLED}


def test_no_command_takes_the_id_of_an_operation_for_an_option():
    assert not [id for id in (api.bulk.new_id() for _ in range(1000)) if id.startswith("-")]


def test_a_group_is_discarded_unless_it_is_called_off(cli, dead):
    one, other = dead("user 1 not found"), dead("timed out", type="TimeoutError")
    group = next(g for g in cli("dlq", "groups", "--json").json["items"] if g["sample"] == one)["fingerprint"]

    started = cli("dlq", "discard", "--all", "--group", group, "--background", "--yes", "--json").json
    work()
    assert cli("bulk", "cancel", started["id"], "--json").json["state"] == "cancelled"
    work()

    assert started["filter"]["fingerprint"] == group
    assert {api.get_job(id).state for id in (one, other)} == {JobState.DEAD}
    assert cli("bulk", "cancel", started["id"]).code == 4


def test_one_that_waits_is_confirmed_by_its_number(cli, dead):
    dead()
    waits = api.bulk.start("resubmit", api.JobFilter())
    work()

    assert cli("bulk", "confirm", waits.id, "2").code == 4
    assert cli("bulk", "confirm", waits.id, "1", "--json").json["state"] == "running"


def test_a_payload_for_all_is_not_for_the_background(cli, dead):
    dead()

    assert cli("dlq", "resubmit", "--all", "--payload", "{}", "--background", "--yes").code == 2


@pytest.mark.parametrize("verb", ["show", "cancel", "undo"])
def test_one_that_is_not_there_exits_3(cli, verb):
    assert cli("bulk", verb, "nowhere").code == 3
