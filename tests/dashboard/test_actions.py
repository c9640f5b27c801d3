"""Acting on jobs: one, some, all that match; by form and by script; twice, too late, and on what has moved on."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from dashboard import matching
from tests.dashboard.browsing import send, tags, text
from tests.dashboard.seeding import Shop


def hidden(page: object) -> dict[str, str]:
    """The hidden fields of the page's confirmation form."""
    fields: dict[str, str] = {}
    in_question = False
    for tag, attributes in tags(page):
        if tag == "form":  # the frame of the page has forms of its own, for theme and log-out
            in_question = "confirm" in str(attributes.get("class", "")) or "/matching/" in str(attributes.get("action"))
        elif in_question and tag == "input" and attributes.get("type") == "hidden":
            fields[str(attributes["name"])] = str(attributes["value"])
    fields.pop("csrfmiddlewaretoken", None)
    return fields


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

    def test_a_discard_asks_first_and_goes_back_to_the_list(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.dead()

        question = administrator.get(
            "/dashboard/actions/job/discard/", {"id": job_id, "next": f"/dashboard/jobs/{job_id}/"}
        )
        assert "Discard 1 job? This cannot be undone." in text(question)
        assert shop.state(job_id) == "dead"
        answer = send(administrator, "/dashboard/actions/job/discard/", hidden(question))

        assert answer["Location"] == "/dashboard/dead/"
        assert shop.engine.jobs.find(job_id) is None


class TestSelected:
    def test_each_is_done_and_those_that_moved_on_are_told(self, operator: Client, shop: Shop) -> None:
        dead, ready = [shop.dead(), shop.dead()], shop.ready()

        answer = send(operator, "/dashboard/actions/job/resubmit/", {"id": [*dead, ready, dead[0]]}, script=True)

        assert answer.json()["message"].startswith("2 jobs resubmitted. 1 not: ")
        assert {shop.state(job_id) for job_id in dead} == {"ready"}

    def test_a_long_selection_is_confirmed_by_post(self, administrator: Client, shop: Shop) -> None:
        dead = [shop.dead() for _ in range(3)]

        question = send(administrator, "/dashboard/actions/job/discard/", {"id": [*dead, shop.ready()], "ask": "1"})

        assert "Discard 3 jobs?" in text(question)
        assert [shop.state(job_id) for job_id in dead] == ["dead"] * 3


class TestAllThatMatch:
    def question(self, client: Client, verb: str = "resubmit", **words: str) -> object:
        return client.get(f"/dashboard/matching/confirm/{verb}/", {"state": "dead", **words})

    def test_it_names_the_exact_number_and_the_filter(self, operator: Client, shop: Shop) -> None:
        for _ in range(3):
            shop.dead(pool="billing")
        shop.dead()

        words = text(self.question(operator, pool="billing"))

        assert "Resubmit 3 jobs?" in words
        assert "All that match state dead, pool billing as of" in words

    def test_only_what_matched_when_it_was_asked_is_touched(self, operator: Client, shop: Shop) -> None:
        matching = [shop.dead(pool="billing") for _ in range(3)]
        other = shop.dead()
        question = self.question(operator, pool="billing")
        late = shop.dead(pool="billing")

        answer = send(operator, "/dashboard/matching/resubmit/", hidden(question))

        assert answer.status_code == 303
        assert {shop.state(job_id) for job_id in matching} == {"ready"}
        assert (shop.state(other), shop.state(late)) == ("dead", "dead")

    def test_sent_twice_it_does_nothing_the_second_time(self, operator: Client, shop: Shop) -> None:
        job_id = shop.dead()
        fields = hidden(self.question(operator))
        send(operator, "/dashboard/matching/resubmit/", fields, script=True)
        shop.fail(job_id, "dead")

        again = send(operator, "/dashboard/matching/resubmit/", fields, script=True)

        assert again.json()["done"] == 0
        assert shop.state(job_id) == "dead"

    def test_a_large_number_has_to_be_typed(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matching, "TYPED_ABOVE", 2)
        dead = [shop.dead() for _ in range(3)]
        question = self.question(operator)
        assert "Type 3 to confirm" in text(question)

        refused = send(operator, "/dashboard/matching/resubmit/", hidden(question) | {"typed": "2"}, script=True)
        assert refused.status_code == 400
        assert {shop.state(job_id) for job_id in dead} == {"dead"}

        done = send(operator, "/dashboard/matching/resubmit/", hidden(question) | {"typed": "3"}, script=True)
        assert done.json() == {"done": 3, "failed": 0, "cursor": "", "message": "3 jobs resubmitted."}

    def test_long_work_stops_after_a_slice_and_goes_on_from_there(
        self, operator: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(matching, "SLICE_SECONDS", -1.0)  # every page is a slice
        monkeypatch.setattr(matching, "SLICE_PAGE", 100)
        ids = shop.many(250)
        for job_id in ids:
            shop.engine.jobs.cancel(job_id)
        page = self.question(operator, state="cancelled")

        first = send(operator, "/dashboard/matching/resubmit/", hidden(page))
        assert "100 done, 150 left" in text(first)
        second = send(operator, "/dashboard/matching/resubmit/", hidden(first))
        assert "200 done, 50 left" in text(second)
        last = send(operator, "/dashboard/matching/resubmit/", hidden(second))

        assert last.status_code == 303
        assert "250 jobs resubmitted." in text(operator.get(last["Location"]))
        assert all(shop.engine.jobs.get(job_id).resubmissions == 1 for job_id in ids[::50])

    def test_a_selection_without_a_moment_or_a_state_is_refused(self, operator: Client, shop: Shop) -> None:
        shop.dead()
        nonsense = ("soon", "2026-13-45T00:00Z", "2026-01-01T00:00")
        for fields in (
            *({"until": until, "state": "dead"} for until in nonsense),
            {"until": datetime.now(UTC).isoformat()},
        ):
            assert send(operator, "/dashboard/matching/resubmit/", fields, script=True).status_code == 400

    def test_live_jobs_cannot_be_discarded_by_a_hand_made_filter(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.ready()
        until = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()

        answer = send(administrator, "/dashboard/matching/discard/", {"state": "ready", "until": until}, script=True)

        assert answer.status_code == 409
        assert shop.state(job_id) == "ready"

    def test_when_nothing_is_left_the_question_says_so(self, operator: Client) -> None:
        words = text(self.question(operator))

        assert re.search("Resubmit 0 jobs.* Nothing is left to resubmit", words)
