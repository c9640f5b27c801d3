"""Changing the course of jobs from pages: priority, another pool, a mute, a purge, a backfill; and taking it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard import reads
from dashboard.figures import figures
from dashboard.kept import KeptWhile
from jobs import api
from jobs.core.states import JobState
from jobs.services.bulk import BulkWorker
from tests.dashboard.browsing import hidden, send, tags, text
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

ACTIONS = "/dashboard/actions"
SLOW = {"type": "Timeout", "message": "slow", "traceback": ""}
LETTER = {"to": "a@example.com", "subject": "hi"}


def ask_and_do(client: Client, action: str, fields: dict[str, Any], **answers: str) -> Any:
    """The question, its hidden fields, and the answer to it."""
    question = client.get(f"{ACTIONS}/{action}/", fields)
    return send(client, f"{ACTIONS}/{action}/", hidden(question) | answers)


class TestPriority:
    def test_of_one_and_of_all_that_match(self, operator: Client, shop: Shop) -> None:
        one, other = shop.ready(), shop.ready(type="crm.push")

        ask_and_do(operator, "job/prioritize", {"id": one}, priority="40")
        assert shop.engine.jobs.get(one).priority == 40
        ask_and_do(operator, "matching/prioritize", {"state": "ready"}, priority="-7", reason="later")
        BulkWorker(shop.engine).tick()

        assert {shop.engine.jobs.get(id).priority for id in (one, other)} == {-7}

    @pytest.mark.parametrize("priority", ["", "101", "x"])
    def test_of_one_that_is_none_is_refused(self, operator: Client, shop: Shop, priority: str) -> None:
        answer = send(operator, f"{ACTIONS}/job/prioritize/", {"id": shop.ready(), "priority": priority}, script=True)

        assert (answer.status_code, answer.json()["message"]) == (400, "A whole number from -100 to 100.")


class TestMove:
    def test_a_job_goes_on_elsewhere_and_both_pages_say_so(self, operator: Client, shop: Shop) -> None:
        shop.ready(pool="slow")
        job_id = shop.ready()

        answer = ask_and_do(operator, "job/move", {"id": job_id}, to="slow")

        page = operator.get(answer["Location"])
        assert "goes on in pool slow" in text(page)
        assert job_id in page.content.decode()
        assert "It goes on as" in text(operator.get(f"/dashboard/jobs/{job_id}/"))

    def test_all_that_match_go_to_another_pool(self, operator: Client, shop: Shop) -> None:
        shop.ready(pool="slow")
        shop.many(3)

        ask_and_do(operator, "matching/move", {"state": "ready", "pool": "default"}, to="slow")
        BulkWorker(shop.engine).tick()

        assert api.count_matching(api.JobFilter(pool="slow", states=(JobState.READY,))) == 4


class TestRunNow:
    def test_the_delayed_jobs_of_a_pool_are_made_ready_from_its_page(self, operator: Client, shop: Shop) -> None:
        delayed = [shop.scheduled(), shop.retry_wait()]
        other = shop.scheduled(pool="other")
        page = operator.get("/dashboard/pools/?name=default")
        [form] = [str(found["href"]) for _, found in tags(page) if "matching/run-now" in str(found.get("href"))]

        question = operator.get(form)
        assert "Run now 2 jobs?" in text(question)
        send(operator, form.partition("?")[0], {**hidden(question), "state": ["scheduled", "retry_wait"]})
        BulkWorker(shop.engine).tick()

        assert [shop.state(id) for id in delayed] == ["ready", "ready"]
        assert shop.state(other) == "scheduled"
        assert "Run delayed jobs now" not in text(operator.get("/dashboard/pools/?name=default"))


class TestDiscard:
    def test_a_single_one_can_be_called_off(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.dead()

        answer = ask_and_do(administrator, "job/discard", {"id": job_id}, reason="known")
        page = administrator.get(answer["Location"])
        assert "1 job will be discarded in" in text(page)
        operation = api.bulk.newest()[0]
        send(administrator, f"{ACTIONS}/bulk/cancel/", {"id": operation.id})
        BulkWorker(shop.engine).tick()

        assert shop.state(job_id) == "dead"
        assert operation.request.reason == "known"

    def test_pressed_twice_it_is_one_operation(self, administrator: Client, shop: Shop) -> None:
        fields = hidden(administrator.get(f"{ACTIONS}/job/discard/", {"id": shop.dead()}))

        for _ in range(2):
            send(administrator, f"{ACTIONS}/job/discard/", fields)

        assert len(api.bulk.newest()) == 1


class TestMute:
    def test_a_muted_error_does_not_shout_and_stays_listed(self, operator: Client, shop: Shop) -> None:
        shop.dead()
        shop.dead(type="crm.push", error=SLOW)
        group = next(group for group in api.error_groups() if group.error_type == "Declined")
        assert reads.overall().loud_dead == 2

        ask_and_do(operator, "mute/set", {"id": f"group:{group.fingerprint}"}, span="1d", reason="ticket 212")

        assert reads.overall().loud_dead == 1
        assert figures(reads.overall())["dead.loud"] == "1"
        assert "<title>1 needs you, 1 dead" in operator.get("/dashboard/").content.decode()
        page = text(operator.get("/dashboard/dead/"))
        assert "Declined" in page
        assert "muted by operator" in page
        assert "ticket 212" in page
        alone = text(operator.get("/dashboard/dead/?type=email.send"))
        assert "1 error among the 1 that match" in alone
        assert "muted by operator" in alone

    def test_when_all_of_it_is_muted_nothing_needs_you(self, operator: Client, shop: Shop) -> None:
        shop.dead()

        ask_and_do(operator, "mute/set", {"id": "type:email.send"}, span="1h", reason="known")

        page = operator.get("/dashboard/")
        assert "Nothing needs you" in text(page)
        assert "favicon-dead" not in page.content.decode().partition('id="favicon" href="')[2][:60]
        send(operator, f"{ACTIONS}/mute/end/", {"id": "type:email.send"})
        assert "One thing needs you" in text(operator.get("/dashboard/"))

    def test_dead_jobs_are_looked_through_again_only_when_they_or_the_mutes_change(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[int] = []
        found = api.error_groups
        monkeypatch.setattr(api, "error_groups", lambda *args, **named: looks.append(1) or found(*args, **named))
        monkeypatch.setattr(reads.whole, "_quiet_dead", KeptWhile(0.0, reads.whole.QUIET_SECONDS))
        shop.dead()
        shop.dead(type="crm.push", error=SLOW)
        api.mutes.mute("type", "crm.push", span=3600, reason="known")
        reads.forget_mutes()

        assert [reads.overall().loud_dead for _ in range(5)] == [1] * 5
        assert len(looks) == 1
        shop.dead(type="crm.push", error=SLOW)

        assert eventually(lambda: reads.overall().loud_dead == 1 and len(looks) == 2)

    def test_a_beginning_and_a_star_mutes_every_type_that_begins_so(self, operator: Client, shop: Shop) -> None:
        shop.dead(type="crm.push", error=SLOW)
        shop.dead(type="crm.pull", error=SLOW)
        shop.dead(type="mail.send", error={"type": "Refused", "message": "no", "traceback": ""})

        ask_and_do(operator, "mute/set", {"id": "type:crm.*"}, span="1h", reason="their maintenance")

        assert reads.overall().loud_dead == 1

    def test_it_needs_a_reason(self, operator: Client, shop: Shop) -> None:
        answer = send(operator, f"{ACTIONS}/mute/set/", {"id": "type:email.send", "span": "1h"}, script=True)

        assert answer.status_code == 400
        assert api.mutes.all() == []


class TestPurge:
    def test_waiting_jobs_of_one_pool_are_cancelled_once_its_name_is_typed(
        self, administrator: Client, shop: Shop
    ) -> None:
        waiting, other = shop.many(3), shop.ready(pool="other")

        wrong = ask_and_do(administrator, "pool/purge", {"id": "default"}, what="waiting", typed="defalt")
        assert (wrong.status_code, shop.state(waiting[0])) == (400, "ready")
        ask_and_do(administrator, "pool/purge", {"id": "default"}, what="waiting", typed="default", reason="test data")
        BulkWorker(shop.engine).tick()

        assert {shop.state(id) for id in waiting} == {"cancelled"}
        assert shop.state(other) == "ready"

    @pytest.mark.parametrize("id", ["", "defualt"])
    def test_a_pool_that_there_is_not_is_not_purged(self, administrator: Client, shop: Shop, id: str) -> None:
        answer = send(administrator, f"{ACTIONS}/pool/purge/", {"id": id, "what": "waiting", "typed": id}, script=True)

        assert answer.status_code == 409
        assert "no pool" in answer.json()["message"]
        assert api.bulk.newest() == []

    def test_what_goes_for_good_waits_and_can_be_stopped(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.dead()

        ask_and_do(administrator, "pool/purge", {"id": "default"}, what="dead", typed="default")
        BulkWorker(shop.engine).tick()
        api.bulk.stop(api.bulk.newest()[0].id)

        assert shop.state(job_id) == "dead"


class TestBackfill:
    def test_the_range_is_counted_first_and_nothing_is_made_twice(self, operator: Client, shop: Shop) -> None:
        api.schedules.create(name="hourly", job_type="email.send", kind="cron", cron="0 * * * *", payload=LETTER)
        end = datetime.now(UTC).replace(minute=30)
        fields = {
            "id": "hourly",
            "start": (end - timedelta(hours=5)).isoformat(),
            "end": (end - timedelta(hours=1)).isoformat(),
        }

        question = operator.get(f"{ACTIONS}/schedule/backfill/", fields)
        assert "Backfill hourly with up to 4 jobs?" in text(question)
        answers = [send(operator, f"{ACTIONS}/schedule/backfill/", hidden(question), script=True) for _ in range(2)]

        assert answers[0].json()["message"] == "hourly: 4 jobs made."
        assert answers[1].json()["message"] == "hourly: 0 jobs made, 4 were there already."

    def test_a_range_of_decades_is_refused_without_being_walked(self, operator: Client, shop: Shop) -> None:
        api.schedules.create(name="busy", job_type="email.send", kind="cron", cron="* * * * *", payload=LETTER)

        answer = operator.get(f"{ACTIONS}/schedule/backfill/", {"id": "busy", "start": "20000d"}, follow=True)

        assert "The range holds over 100,000 firings." in text(answer)

    def test_without_a_range_it_asks_for_one(self, operator: Client, shop: Shop) -> None:
        api.schedules.create(name="hourly", job_type="email.send", kind="cron", cron="0 * * * *", payload=LETTER)

        assert "First the range" in text(operator.get(f"{ACTIONS}/schedule/backfill/", {"id": "hourly"}))
        wrong = operator.get(f"{ACTIONS}/schedule/backfill/", {"id": "hourly", "start": "yesterday"})
        assert "Write a time such as" in text(wrong)


def test_a_peek_shows_a_job_below_its_row_also_without_script(viewer: Client, operator: Client, shop: Shop) -> None:
    job_id = shop.dead()

    for address in (f"/dashboard/jobs/?peek={job_id}", f"/dashboard/fragments/peek/?id={job_id}"):
        page = text(viewer.get(address))
        assert "Gave up after 1 attempt" in page
        assert "raise Declined()" in page
        assert "Resubmit" not in page.partition("Gave up")[2]
    assert "Resubmit" in text(operator.get(f"/dashboard/fragments/peek/?id={job_id}"))
    assert viewer.get("/dashboard/fragments/peek/?id=gone").status_code == 404
