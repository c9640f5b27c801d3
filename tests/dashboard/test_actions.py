"""Acting on jobs: one, some, all that match; by form and by script; twice, too late, and on what has moved on."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard import reads, trials
from dashboard.actions import BY_SLUG, matching
from dashboard.actions.views import ASKED_FROM
from dashboard.filters import PAGE_MAX
from jobs import api
from jobs.engine import reset_engine
from jobs.models import AuditEntry
from jobs.services.bulk import BulkWorker
from tests.dashboard.browsing import hidden, send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop


class TestOne:
    def test_a_form_goes_back_where_it_came_from_and_says_what_happened(self, operator: Client, shop: Shop) -> None:
        job_id = shop.dead()

        answer = send(
            operator, "/dashboard/actions/job/resubmit/", {"id": job_id, "next": f"/dashboard/jobs/{job_id}/"}
        )

        assert (answer.status_code, answer["Location"]) == (303, f"/dashboard/jobs/{job_id}/")
        assert "The job was resubmitted." in text(operator.get(answer["Location"]))
        assert shop.state(job_id) == "ready"

    def test_a_script_is_answered_in_json(self, operator: Client, shop: Shop) -> None:
        answer = send(operator, "/dashboard/actions/job/retry/", {"id": shop.retry_wait()}, script=True)

        assert answer.json() == {"ok": True, "message": "The job was sent to run again."}

    def test_a_running_job_is_asked_to_stop(self, operator: Client, shop: Shop) -> None:
        job_id = shop.leased()

        send(operator, "/dashboard/actions/job/cancel/", {"id": job_id})

        assert shop.engine.jobs.get(job_id).cancel_requested
        assert "Cancelling." in text(operator.get(f"/dashboard/jobs/{job_id}/"))

    def test_the_second_of_two_presses_is_told_and_has_no_effect(self, operator: Client, shop: Shop) -> None:
        job_id = shop.dead()
        send(operator, "/dashboard/actions/job/resubmit/", {"id": job_id}, script=True)

        second = send(operator, "/dashboard/actions/job/resubmit/", {"id": job_id}, script=True)

        assert second.status_code == 409
        assert second.json()["message"].startswith("Not resubmitted: ")
        assert shop.engine.jobs.get(job_id).resubmissions == 1

    def test_one_that_is_gone_is_404(self, operator: Client) -> None:
        answer = send(operator, "/dashboard/actions/job/cancel/", {"id": "01gone-default.1.0"}, script=True)

        assert answer.status_code == 404

    def test_nothing_selected_is_said(self, operator: Client) -> None:
        answer = send(operator, "/dashboard/actions/job/cancel/", {}, script=True)

        assert (answer.status_code, answer.json()["message"]) == (400, "Nothing was selected to cancel.")

    @pytest.mark.parametrize(
        "target", ["//evil.example/", "https://evil.example/", r"/\evil.example", "javascript:alert(1)", "/a\r\nX: y"]
    )
    def test_it_never_sends_the_browser_elsewhere(self, target: str, operator: Client, shop: Shop) -> None:
        answer = send(operator, "/dashboard/actions/job/cancel/", {"id": shop.ready(), "next": target})

        assert answer["Location"] == "/dashboard/jobs/"

    def test_a_discard_asks_first_and_waits_until_it_cannot_be_undone_any_more(
        self, administrator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.api.bulk.UNDO_SECONDS", 0.0)
        job_id = shop.dead()

        question = administrator.get("/dashboard/actions/job/discard/", {"id": job_id})
        assert "Discard 1 job? With attempts and payload they are removed, 30 seconds after" in text(question)
        answer = send(administrator, "/dashboard/actions/job/discard/", hidden(question))
        assert answer["Location"].startswith("/dashboard/bulk/?id=")
        assert shop.state(job_id) == "dead"
        BulkWorker(shop.engine).tick()

        assert shop.engine.jobs.find(job_id) is None


class TestSelected:
    def test_each_is_done_and_those_that_moved_on_are_told(self, operator: Client, shop: Shop) -> None:
        dead, ready = [shop.dead(), shop.dead()], shop.ready()

        answer = send(operator, "/dashboard/actions/job/resubmit/", {"id": [*dead, ready, dead[0]]}, script=True)

        assert answer.json()["message"].startswith("2 jobs resubmitted. 1 not: ")
        assert {shop.state(job_id) for job_id in dead} == {"ready"}

    def test_all_rows_of_the_longest_page_are_one_form(self, operator: Client, shop: Shop) -> None:
        answer = send(operator, "/dashboard/actions/job/cancel/", {"id": shop.many(PAGE_MAX)}, script=True)

        assert answer.json()["message"] == f"{PAGE_MAX} jobs cancelled."

    def test_a_long_selection_is_confirmed_by_post(self, administrator: Client, shop: Shop) -> None:
        dead = [shop.dead() for _ in range(3)]

        question = send(administrator, "/dashboard/actions/job/discard/", {"id": [*dead, shop.ready()], "ask": "1"})

        assert "Discard 3 jobs?" in text(question)
        assert [shop.state(job_id) for job_id in dead] == ["dead"] * 3

    def test_more_than_a_hundred_at_one_press_are_asked_for_first(self, operator: Client, shop: Shop) -> None:
        waiting = {"id": shop.many(ASKED_FROM)}

        question = send(operator, "/dashboard/actions/job/cancel/", waiting)
        assert f"Cancel {ASKED_FROM} jobs?" in text(question)
        assert shop.state(waiting["id"][0]) == "ready"
        send(operator, "/dashboard/actions/job/cancel/", waiting | hidden(question) | waiting)

        assert {shop.state(job_id) for job_id in waiting["id"]} == {"cancelled"}


class TestAllThatMatch:
    def question(self, client: Client, verb: str = "resubmit", **words: str) -> Any:
        return client.get(f"/dashboard/actions/matching/{verb}/", {"state": "dead", **words})

    def answer(self, client: Client, page: Any, verb: str = "resubmit", **fields: str) -> Any:
        return send(client, f"/dashboard/actions/matching/{verb}/", hidden(page) | fields)

    def work(self, shop: Shop) -> None:
        worker = BulkWorker(shop.engine)
        while worker.tick()["parts"]:
            pass

    def test_it_names_the_exact_number_and_the_filter(self, operator: Client, shop: Shop) -> None:
        for _ in range(3):
            shop.dead(pool="billing")
        shop.dead()

        words = text(self.question(operator, pool="billing"))

        assert "Resubmit 3 jobs?" in words
        assert "All that match state dead, pool billing as of" in words

    def test_the_one_pool_that_they_are_in_can_be_paused_before_they_are_resubmitted(
        self, operator: Client, shop: Shop
    ) -> None:
        shop.dead(pool="billing")
        for pool in ("billing", "mail"):
            shop.dead(pool=pool, error={"type": "Late", "message": "", "traceback": ""})
        of_group = {group.error_type: {"group": group.fingerprint} for group in api.error_groups()}
        offered = "All of them are in pool billing, and are ready there at once. Pause billing first"
        assert "are ready there at once" not in text(self.question(operator))
        assert "are ready there at once" not in text(self.question(operator, **of_group["Late"]))
        assert "are ready there at once" not in text(
            self.question(operator, "prioritize", state="ready", pool="billing")
        )
        assert offered in text(self.question(operator, pool="billing"))
        question = self.question(operator, **of_group["Declined"])
        assert offered in text(question)

        addresses = [str(found.get("href")) for tag, found in tags(question) if tag == "a"]
        asked = operator.get(next(address for address in addresses if "/pool/pause/" in address))
        answer = send(operator, "/dashboard/actions/pool/pause/", hidden(asked) | {"reason": "to look at them first"})

        words = text(operator.get(answer["Location"]))
        assert "Resubmit 1 job?" in words
        assert "Pool billing is paused: there they wait until it goes on." in words
        assert "Pause billing first" not in words

    def test_only_what_matched_when_it_was_asked_is_touched(self, operator: Client, shop: Shop) -> None:
        matching = [shop.dead(pool="billing") for _ in range(3)]
        other = shop.dead()
        question = self.question(operator, pool="billing")
        late = shop.dead(pool="billing")

        answer = self.answer(operator, question, reason="fixed in 4.2")
        assert answer.status_code == 303
        assert {shop.state(job_id) for job_id in matching} == {"dead"}, "hosts do it, not the page"
        self.work(shop)

        words = text(operator.get(answer["Location"]))
        assert "3 of 3 jobs resubmitted." in words
        assert "fixed in 4.2" in words
        assert {shop.state(job_id) for job_id in matching} == {"ready"}
        assert (shop.state(other), shop.state(late)) == ("dead", "dead")
        entry = AuditEntry.objects.get()
        assert (entry.who, entry.action, entry.reason) == ("operator", "job.resubmit", "fixed in 4.2")

    def test_sent_twice_it_is_one_operation(self, operator: Client, shop: Shop) -> None:
        job_id = shop.dead()
        question = self.question(operator)
        first = self.answer(operator, question)
        self.work(shop)
        shop.fail(job_id, "dead")

        again = self.answer(operator, question)
        self.work(shop)

        assert again["Location"] == first["Location"]
        assert (shop.state(job_id), shop.engine.jobs.get(job_id).resubmissions) == ("dead", 1)

    def test_of_two_people_who_ask_for_the_same_at_once_each_job_obeys_one(
        self, operator: Client, administrator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.services.bulk.PART", 2)
        jobs = [shop.dead() for _ in range(5)]
        questions = [(client, self.question(client)) for client in (operator, administrator)]
        pages = [(client, self.answer(client, question)["Location"]) for client, question in questions]

        self.work(shop)

        assert [shop.engine.jobs.get(job_id).resubmissions for job_id in jobs] == [1] * 5
        told = [
            re.findall(r"(\d) of 5 jobs resubmitted(?:, (\d) could not be)?", text(c.get(page)))[0] for c, page in pages
        ]
        done, refused = (sum(int(numbers[place] or 0) for numbers in told) for place in (0, 1))
        assert (done, refused) == (5, 5), "what one did the other could not, and is told so"

    @pytest.mark.parametrize("until", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", "\x00"])
    def test_a_moment_that_no_clock_shows_is_none(self, operator: Client, shop: Shop, until: str) -> None:
        shop.dead()

        page = operator.get("/dashboard/actions/matching/resubmit/", {"state": "dead", "until": until})

        assert page.status_code == 200
        assert "Resubmit 1 job?" in text(page)

    @pytest.mark.parametrize("key", ["a:b", "../x", "waits-undo", "\u202eab", "<b>"])
    def test_a_forged_key_starts_nothing(self, operator: Client, shop: Shop, key: str) -> None:
        job_id = shop.dead()

        answer = self.answer(operator, self.question(operator), key=key)

        assert "cannot name a bulk operation" in text(answer)
        assert (api.bulk.newest(), shop.state(job_id)) == ([], "dead")

    def test_the_key_of_another_operation_starts_nothing(self, administrator: Client, shop: Shop) -> None:
        shop.dead()
        question = self.question(administrator)
        api.bulk.start("cancel", api.JobFilter(), id=hidden(question)["key"])

        answer = self.answer(administrator, question)

        assert "is another one: cancel" in text(administrator.get(answer["Location"]))
        assert [found.request.action for found in api.bulk.newest()] == ["cancel"]

    def test_a_number_of_millions_is_told_to_the_last_job(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reads, "count_within", lambda selection, seconds: (1_234_567, True))

        words = text(self.question(operator))

        assert "Resubmit 1,234,567 jobs?" in words
        assert "Go back Resubmit 1,234,567 jobs" in words
        assert "m jobs" not in words

    def test_a_key_that_was_used_for_another_priority_starts_nothing_and_says_so(
        self, operator: Client, shop: Shop
    ) -> None:
        job_id = shop.ready()
        question = self.question(operator, "prioritize", state="ready")
        self.answer(operator, question, "prioritize", priority="5")

        again = self.answer(operator, question, "prioritize", priority="9")
        self.work(shop)

        assert "is another one" in text(operator.get(again["Location"]))
        assert shop.engine.jobs.get(job_id).priority == 5

    @pytest.mark.parametrize(
        "words",
        [
            {"state": "leesed"},
            {"state": "dead", "since": "yesterday"},
            {"state": "dead", "older": "long"},
            {"state": "dead", "attempts": "many"},
            {"state": "dead", "type": "*.send"},
        ],
    )
    def test_a_word_that_cannot_be_used_does_not_make_it_act_on_more(
        self, words: dict[str, str], operator: Client, shop: Shop
    ) -> None:
        shop.dead()
        address = "/dashboard/actions/matching/resubmit/"

        asked = operator.get(address, words)
        done = send(operator, address, {**words, "until": datetime.now(UTC).isoformat(), "number": "1"}, script=True)

        assert "Nothing was done: " in text(operator.get(asked["Location"]))
        assert (done.status_code, api.bulk.newest()) == (400, [])

    def test_a_large_number_has_to_be_typed(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matching, "TYPED_ABOVE", 2)
        dead = [shop.dead() for _ in range(3)]
        question = self.question(operator)
        assert "Type 3 to confirm" in text(question)

        refused = self.answer(operator, question, typed="2")
        assert refused.status_code == 400
        assert "type 3 to confirm" in text(refused)
        assert shop.engine.bulk.newest() == []

        self.answer(operator, question, typed="3")
        self.work(shop)
        assert {shop.state(job_id) for job_id in dead} == {"ready"}

    def test_what_takes_long_to_count_is_counted_first_and_confirmed_then(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matching, "COUNT_SECONDS", -1.0)
        monkeypatch.setattr("jobs.api.matching._matching", lambda filter: iter([["a"], ["b"]]))
        dead = [shop.dead() for _ in range(3)]
        question = self.question(operator, search="insufficient")
        assert "Resubmit more than 1 job?" in text(question)
        assert "Go back Count them first" in text(question)
        page = self.answer(operator, question)["Location"]
        self.work(shop)

        waiting = text(operator.get(page))
        assert "3 jobs match. Nothing has been done yet. Resubmit 3 jobs Call it off" in waiting
        assert {shop.state(job_id) for job_id in dead} == {"dead"}
        asked = operator.get("/dashboard/actions/bulk/confirm/", {"id": shop.engine.bulk.newest()[0].id})
        assert "Resubmit 3 jobs?" in text(asked)
        assert "Go on with 3 jobs" in text(asked)
        send(operator, "/dashboard/actions/bulk/confirm/", hidden(asked))
        self.work(shop)

        assert {shop.state(job_id) for job_id in dead} == {"ready"}

    def test_a_count_that_has_found_none_yet_says_neither_none_nor_that_nothing_is_left(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matching, "COUNT_SECONDS", -1.0)
        monkeypatch.setattr("jobs.api.matching._matching", lambda filter: iter([[], ["a"]]))
        shop.dead()

        asked = text(self.question(operator, search="insufficient"))

        assert "Resubmit all jobs that match?" in asked
        assert "Go back Count them first" in asked
        assert "Nothing is left" not in asked

    def test_before_anything_was_looked_at_no_page_counts_zeros(self, operator: Client, shop: Shop) -> None:
        shop.dead()
        operation = api.bulk.start("resubmit", api.JobFilter())

        assert "None has been looked at yet." in text(operator.get("/dashboard/bulk/", {"id": operation.id}))
        audited = text(operator.get("/dashboard/audit/", {"action": "job.resubmit"}))
        assert "all jobs" in audited
        assert "confirmed" not in audited

    def test_another_web_process_shows_how_far_it_is_when_the_first_is_gone(
        self, operator: Client, login: Login, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jobs.services.bulk.PART", 2)
        for _ in range(5):
            shop.dead()
        page = self.answer(operator, self.question(operator))["Location"]
        worker = BulkWorker(shop.engine)
        worker.step()
        worker.step()

        reads.forget()
        reset_engine()

        assert "2 of 5 jobs resubmitted" in text(login("viewer").get(page))
        worker.tick()
        assert "5 of 5 jobs resubmitted." in text(login("viewer").get(page))

    def test_after_a_trial_it_says_how_those_jobs_fare(self, operator: Client, shop: Shop) -> None:
        jobs = [shop.dead() for _ in range(5)]
        page = self.answer(operator, self.question(operator), trial="4")["Location"]
        self.work(shop)
        tried = [job_id for job_id in jobs if shop.state(job_id) == "ready"]
        shop.fail(tried[0], "dead")
        shop.succeed(tried[1])
        shop.fail(tried[2], "retry", delay_ms=3_600_000)

        waiting = text(operator.get(page))

        assert "4 jobs of 5 resubmitted to try. Resubmit the other 1 Stop here" in waiting
        fare = waiting.partition("How they fare")[2].partition("Asked for")[0]
        told = sorted(fare.partition(".")[0].strip().split(", "))
        assert told == ["1 dead", "1 ready", "1 retry wait", "1 succeeded"]
        assert fare.count("email.send") == 4
        assert fare.partition(".")[2].split()[0] == "dead"
        assert fare.index("Attempt 2 is next") < fare.index("No worker serves"), "those that failed come next"

    def test_of_a_long_trial_the_first_are_looked_at(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trials, "LOOKED_AT", 2)
        for _ in range(4):
            shop.dead()
        page = self.answer(operator, self.question(operator), trial="3")["Location"]
        self.work(shop)

        assert "Of the first 2: 2 ready." in text(operator.get(page))

    def test_a_discard_waits_and_can_be_called_off(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.dead()
        answer = self.answer(administrator, self.question(administrator, "discard"), "discard")
        self.work(shop)
        page = administrator.get(answer["Location"])
        assert "1 job will be discarded in" in text(page)

        called_off = send(administrator, "/dashboard/actions/bulk/cancel/", {"id": shop.engine.bulk.newest()[0].id})

        assert "called off: nothing was done" in text(administrator.get(called_off["Location"]))
        assert shop.state(job_id) == "dead"

    def test_stopped_with_jobs_in_the_hand_of_a_host_it_does_not_say_that_nothing_was_done(
        self, operator: Client, shop: Shop
    ) -> None:
        shop.dead()
        self.answer(operator, self.question(operator))
        BulkWorker(shop.engine).step()  # chooses the jobs
        shop.engine.bulk.take("a host")
        [operation] = api.bulk.newest()

        stopped = send(operator, "/dashboard/actions/bulk/cancel/", {"id": operation.id}, script=True).json()

        assert stopped["message"] == "It stops when the jobs that a worker host has in hand have been dealt with."

    def test_what_was_called_off_before_it_began_leaves_its_jobs_as_they_were_also_when_undone(
        self, operator: Client, shop: Shop
    ) -> None:
        jobs = [shop.dead() for _ in range(3)]
        operation = api.bulk.start("resubmit", api.JobFilter(), confirmed=0)
        self.work(shop)
        api.bulk.stop(operation.id)
        api.resubmit_many(jobs)  # somebody else, who wants them to run

        refused = send(operator, "/dashboard/actions/bulk/undo/", {"id": operation.id})
        self.work(shop)

        assert "has done nothing that could be undone" in text(operator.get(refused["Location"]))
        assert {shop.state(job_id) for job_id in jobs} == {"ready"}
        assert {what for _, what in api.bulk.results(operation.id)} == {"left as it was"}

    def test_a_resubmit_is_undone_as_far_as_it_has_not_begun(self, operator: Client, shop: Shop) -> None:
        waiting, begun = shop.dead(), shop.dead()
        self.answer(operator, self.question(operator))
        self.work(shop)
        shop.succeed(begun)

        undone = send(operator, "/dashboard/actions/bulk/undo/", {"id": shop.engine.bulk.newest()[0].id})
        self.work(shop)

        assert "1 of 2 jobs cancelled, 1 could not be" in text(operator.get(undone["Location"]))
        assert (shop.state(waiting), shop.state(begun)) == ("cancelled", "succeeded")

    def test_the_result_of_each_job_is_a_file(self, operator: Client, shop: Shop) -> None:
        done, refused = shop.dead(), shop.dead()
        page = self.answer(operator, self.question(operator), number="0")["Location"]
        self.work(shop)
        shop.engine.jobs.discard(refused)
        [operation] = shop.engine.bulk.newest()
        send(operator, "/dashboard/actions/bulk/confirm/", {"id": operation.id, "number": "2"})
        self.work(shop)

        answer = operator.get("/dashboard/bulk/results/", {"id": operation.id})

        lines = b"".join(answer.streaming_content).decode().splitlines()
        assert lines[0] == "job,result"
        assert f"{done},done" in lines
        assert next(line for line in lines if refused in line) != f"{refused},done"
        assert "1 could not be" in text(operator.get(page))

    def test_an_operator_can_neither_start_nor_confirm_a_discard(
        self, operator: Client, administrator: Client, shop: Shop
    ) -> None:
        job_id = shop.dead()
        question = self.question(administrator, "discard")
        assert self.answer(operator, question, "discard").status_code == 403
        self.answer(administrator, question, "discard", number="0")
        self.work(shop)
        [operation] = shop.engine.bulk.newest()
        assert operation.state == "waiting"

        fields = {"id": operation.id, "number": "1"}
        assert send(operator, "/dashboard/actions/bulk/confirm/", fields).status_code == 403
        assert shop.state(job_id) == "dead"

    def test_a_selection_without_a_moment_is_refused(self, operator: Client, shop: Shop) -> None:
        shop.dead()
        for until in ("soon", "2026-13-45T00:00Z", "2026-01-01T00:00"):
            fields = {"until": until, "state": "dead"}
            assert send(operator, "/dashboard/actions/matching/resubmit/", fields, script=True).status_code == 400

    def test_live_jobs_cannot_be_discarded_by_a_hand_made_filter(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.ready()
        until = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
        fields = {"state": "ready", "until": until}

        answer = send(administrator, "/dashboard/actions/matching/discard/", fields, script=True)

        assert (answer.status_code, answer.json()["message"]) == (409, "Jobs that are ready cannot be discarded.")
        assert shop.state(job_id) == "ready"

    def test_when_nothing_is_left_the_question_says_so(self, operator: Client) -> None:
        words = text(self.question(operator))

        assert re.search("Resubmit 0 jobs.* Nothing is left to resubmit", words)

    def test_a_viewer_sees_what_is_under_way_and_no_button(
        self, operator: Client, login: Callable[[str], Client], shop: Shop
    ) -> None:
        shop.dead()
        page = self.answer(operator, self.question(operator, search="insufficient"), number="0")["Location"]
        self.work(shop)
        viewer = login("viewer")

        assert "(waits for you)" in text(viewer.get("/dashboard/dead/"))
        assert "Resubmit 1 job" in text(viewer.get("/dashboard/bulk/"))
        one = viewer.get(page).content.decode().partition("<main")[2].partition("<footer")[0]
        assert "/actions/" not in one
        assert "There is no bulk operation" in text(viewer.get("/dashboard/bulk/", {"id": "gone"}))


def test_no_question_about_what_there_is_not_ends_in_a_server_error(administrator: Client, shop: Shop) -> None:
    """Nor one about nothing, but those are asked in ``test_tampered``."""
    answers = {
        (slug, query): administrator.get(f"{action.url}{query}").status_code
        for slug, action in BY_SLUG.items()
        for query in ("?id=nonsense", "?id=a:b:c&pool=nowhere&node=nowhere&state=nonsense")
    }

    assert {asked: status for asked, status in answers.items() if status >= 500} == {}


def test_wrong_answers_are_said_in_words_of_this_product_and_the_focus_goes_there(
    administrator: Client, shop: Shop
) -> None:
    shop.ready(pool="billing")

    page = send(
        administrator, "/dashboard/actions/pool/limit/", {"id": "billing", "max_running": "-1", "reason": "x" * 300}
    )

    assert page.status_code == 400
    assert "At least 0." in text(page)
    assert "At most 200 characters: these are 300." in text(page)
    assert [str(found.get("name", "")) for _, found in tags(page) if "autofocus" in found] == ["max_running"]
