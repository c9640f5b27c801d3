"""The dead-letter workbench: groups, what a group shares, payloads edited, and new jobs from a signature."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client

from dashboard import groups, reads, timeline
from dashboard.evidence import by_the_hour
from dashboard.templatetags.dashboard import middle_cut
from jobs import api, job
from jobs.core.job import Attempt
from jobs.core.states import JobState
from jobs.models import AuditEntry
from jobs.registry import registry
from tests.dashboard.browsing import hidden, send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop

NETWORK = {"type": "TimeoutError", "message": "no answer from 10.0.0.7 in 30 s", "traceback": ""}


@pytest.fixture(autouse=True)
def types() -> Iterator[None]:
    def charge(amount: int, currency: str = "EUR", *, dry: bool = False, items: list[str] | None = None) -> None:
        """Charges a card.

        More about it.
        """

    with registry.restored():
        job("shop.charge", redact=["currency"])(charge)
        yield


def address(page: Any, words: str) -> str:
    """Of the first link that leads there."""
    return next(str(found["href"]) for tag, found in tags(page) if tag == "a" and words in str(found.get("href")))


class TestGroup:
    def test_it_shows_what_its_jobs_share_and_in_what_they_differ(self, viewer: Client, shop: Shop) -> None:
        for amount in (1, 2, 3):
            shop.dead(type="shop.pay", payload={"amount": amount, "customer": {"plan": "pro"}})
        shop.dead(type="mail.send", error=NETWORK)

        page = viewer.get(address(viewer.get("/dashboard/dead/"), "?group="))

        words = text(page)
        assert 'customer.plan "pro" all' in words
        assert "amount 3 (1), 2 (1), 1 (1)" in words
        assert "Payload newest the one before amount 3 2" in words
        assert "mail.send" not in words.partition("By error")[0].partition("What they share")[2]
        assert "3 jobs died in 24 hours: 3 in the worst, from" in words

    def test_every_error_that_is_counted_can_be_opened(self, viewer: Client, shop: Shop) -> None:
        for number in range(8):
            shop.dead(error={"type": f"Odd{number}", "message": "", "traceback": ""})

        page = viewer.get("/dashboard/dead/")

        assert "8 errors among the 8" in text(page)
        assert "2 more errors" in text(page)
        assert sum("?group=" in str(found.get("href")) for tag, found in tags(page) if tag == "a") == 8

    def test_where_older_ones_were_not_looked_at_it_speaks_of_the_newest(
        self, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop.dead(type="shop.pay")
        for _ in range(3):
            shop.dead()
        for _ in range(2):
            shop.dead(type="shop.pay")
        assert "All 3 that match are one error" in text(viewer.get("/dashboard/dead/?type=shop.pay"))
        monkeypatch.setattr("dashboard.reads.of_jobs.LOOKS_AT", 4)

        page = viewer.get("/dashboard/dead/?type=shop.pay")

        assert "All 2 newest that match are one error" in text(page)
        assert "1 error among the newest 2 that match" in text(page)
        group = text(viewer.get(address(page, "group=")))
        assert "2 or more dead jobs, the first of these" in group

    @pytest.mark.parametrize(
        ("query", "first", "then"),
        [
            ("", "Resubmit all 3", "Resubmit all 5"),
            ("?pool=billing", "Resubmit all 2", "Resubmit all 3"),
            ("?type=shop.*", "Resubmit all 3", "Resubmit all 4"),
            ("?worker=nobody", "", "Resubmit all 0"),
            ("?attempts=1", "Resubmit all 3", "Resubmit all 5"),
            ("?attempts=2", "", "Resubmit all 0"),
            ("?limit=2", "Resubmit all 3", "Resubmit all 5"),
            ("?type=shop.*&limit=2", "Resubmit all that match", "Resubmit all that match"),
        ],
    )
    def test_the_button_for_all_names_their_number_and_stays_right_on_an_open_page(
        self, query: str, first: str, then: str, operator: Client, shop: Shop
    ) -> None:
        def button(path: str) -> str:
            found = re.search(r"Resubmit all (that match|[\d,]+)", text(operator.get(f"/dashboard/{path}/{query}")))
            return found[0] if found else ""

        for pool in ("billing", "billing", "mail"):
            shop.dead(type="shop.pay", pool=pool)
        assert button("dead") == first

        shop.dead(type="shop.pay", pool="billing")
        shop.dead(type="mail.send", pool="mail")
        reads.forget()

        assert button("dead") == (then if first else "")
        query += "&updates=1" if query else "?updates=1"
        assert button("fragments/dead") == then

    def test_all_of_a_group_are_resubmitted_and_no_others(self, operator: Client, shop: Shop) -> None:
        shop.dead(error=NETWORK)
        for _ in range(2):
            shop.dead()
        group = next(group for group in api.error_groups() if group.error_type == "Declined")

        question = operator.get("/dashboard/actions/matching/resubmit/", {"state": "dead", "group": group.fingerprint})

        assert "Resubmit 2 jobs?" in text(question)

    def test_from_its_row_all_of_it_that_the_list_is_narrowed_to_are_resubmitted_or_discarded(
        self, administrator: Client, shop: Shop
    ) -> None:
        for pool in ("billing", "billing", "mail"):
            shop.dead(pool=pool, error=NETWORK)
        shop.dead(pool="billing")
        page = administrator.get("/dashboard/dead/?pool=billing&limit=20")
        group = next(group for group in api.error_groups() if group.error_type == "TimeoutError")

        assert (
            text(page).count("Resubmit all… of TimeoutError") == text(page).count("Discard all… of TimeoutError") == 1
        )
        for verb, title in (("resubmit", "Resubmit 2 jobs?"), ("discard", "Discard 2 jobs?")):
            question = administrator.get(
                address(page, f"/matching/{verb}/?state=dead&pool=billing&group={group.fingerprint}")
            )
            assert title in text(question)
            answer = {key: value for key, value in hidden(question).items() if key in ("number", "group", "next")}
            back = "/dashboard/dead/?pool=billing&limit=20"
            assert answer == {"number": "2", "group": group.fingerprint, "next": back}
        assert "2 dead jobs" in text(administrator.get(address(page, f"/dead/?pool=billing&group={group.fingerprint}")))

    @pytest.mark.parametrize(
        ("role", "offered"),
        [("viewer", []), ("operator", ["Resubmit", "Mute"]), ("administrator", ["Resubmit", "Discard", "Mute"])],
    )
    def test_its_row_offers_what_one_may_do(self, role: str, offered: list[str], login: Login, shop: Shop) -> None:
        shop.dead()

        words = text(login(role).get("/dashboard/dead/"))

        assert re.findall(r"(Resubmit|Discard|Mute)(?: all)?…", words) == offered

    def test_it_is_named_by_what_all_its_messages_say_with_the_words_of_the_newest_beneath(
        self, viewer: Client, shop: Shop
    ) -> None:
        for seconds, order in ((30, 7), (5, 99)):
            said = f"no answer for order {order} from 10.0.0.{seconds} in {seconds} s"
            shop.dead(error={**NETWORK, "message": said})

        page = viewer.get("/dashboard/dead/")

        common, newest = "no answer for order <n> from <n> in <n> s", "no answer for order 99 from 10.0.0.5 in 5 s"
        assert f"TimeoutError {common} the newest: {newest}" in text(page)
        assert f"{common}. 2 dead jobs" in text(viewer.get(address(page, "?group=")))
        [group] = api.error_groups()
        assert (group.pattern, group.message) == (common, newest)

    def test_what_began_after_the_deploy_is_told_from_what_was_there_before(self, viewer: Client, shop: Shop) -> None:
        shop.dead()
        time.sleep(0.01)  # between two deaths and the deploy lies a moment
        shop.worker(version="9f3c2ab")
        shop.dead()
        shop.dead(error=NETWORK)
        reads.forget()

        page = text(viewer.get("/dashboard/dead/"))

        assert page.count("all since deploy 9f3c2ab") == 1
        assert "all since deploy" in page.partition("TimeoutError no answer")[2].partition("newest job")[0]

    def test_its_last_day_is_a_large_picture_with_the_deploys_in_it_and_the_same_in_a_sentence(
        self, viewer: Client, shop: Shop
    ) -> None:
        shop.worker(version="9f3c2ab")
        for _ in range(3):
            shop.dead()

        page = viewer.get(address(viewer.get("/dashboard/dead/"), "group="))

        [figure] = [found for tag, found in tags(page) if tag == "figure"]
        assert re.fullmatch(
            r"3 jobs died in 24 hours: 3 in the worst, from \d\d:\d\d on, and 3 in the last\. Deploy: 9f3c2ab\.",
            str(figure["aria-label"]),
        )
        assert str(figure["aria-label"]) in text(page)
        assert [found["d"] for _, found in tags(page) if found.get("class") == "bars"] == ["M231 99v-99h8v99z"]
        assert "deploy 9f3c2ab" in text(page)
        assert "Show as table From died" in text(page)

    def test_where_not_all_were_looked_at_the_picture_leaves_open_what_came_before(self) -> None:
        at = datetime(2026, 3, 1, 12, tzinfo=UTC)
        hours = [0] * 18 + [5] * 6
        group = api.ErrorGroup(
            fingerprint="f", error_type="E", message="", pattern="", place="", count=30, types=[], pools=[], sample="",
            hours=hours, first_seen=at - timedelta(hours=6), last_seen=at,
        )  # fmt: skip

        found = by_the_hour(group, at, [], is_whole=False)

        assert (found.unknown, found.path.count("M")) == (180.0, 6)
        assert found.sentence == (
            "At least 30 jobs died in 24 hours: 5 in the worst, from 11:00 on, and 5 in the last. "
            "What died before 06:00 was not looked at."
        )
        assert by_the_hour(group, at, [], is_whole=True).unknown == 0
        assert found.scale == ("6", "4", "2", "0")
        assert (found.rows[0], found.rows[-1]) == (("11:00", "5"), ("12:00", "–"))

    def test_what_died_longer_ago_than_a_day_is_said_and_not_drawn(self, viewer: Client, shop: Shop) -> None:
        shop.dead()
        [group] = api.error_groups()
        long_ago = msgspec.structs.replace(group, hours=[0] * 24)

        found = by_the_hour(long_ago, datetime.now(UTC), [], is_whole=True)

        assert (found.path, found.sentence) == ("", "None died in the last 24 hours.")

    def test_its_jobs_are_walked_through_one_by_one_each_beside_the_one_before_it(
        self, viewer: Client, shop: Shop
    ) -> None:
        ids = [shop.dead(type="shop.pay", payload={"amount": amount}) for amount in range(3)][::-1]
        page = viewer.get(address(viewer.get("/dashboard/dead/?type=shop.pay"), "group="))
        assert f"The newest {middle_cut(ids[0])}" in text(page)
        assert "Newer" not in text(page)

        page = viewer.get(address(page, f"specimen={ids[1]}"))
        assert f"Specimen 2 of 3 {middle_cut(ids[1])}" in text(page)
        assert "Payload this one the one before amount 1 0" in text(page)
        assert "type shop.pay : remove this filter" in text(page)

        page = viewer.get(address(page, f"specimen={ids[2]}"))
        assert f"Specimen 3 of 3 {middle_cut(ids[2])}" in text(page)
        assert "Next specimen" not in text(page)
        assert f"specimen={ids[1]}#" in address(page, "specimen=")

    def test_a_specimen_that_was_resubmitted_meanwhile_gives_way_to_the_newest(
        self, viewer: Client, shop: Shop
    ) -> None:
        gone, left = shop.dead(), shop.dead()
        there = address(viewer.get("/dashboard/dead/"), "group=") + f"&specimen={gone}"
        shop.engine.jobs.resubmit(gone)

        page = text(viewer.get(there))

        assert "The job that was asked for is no longer among the newest 1 of this error" in page
        assert f"The newest {middle_cut(left)}" in page

    def test_one_alone_shares_nothing(self, shop: Shop) -> None:
        assert groups.facts([shop.engine.jobs.get(shop.dead())]) == []

    def test_what_some_lack_is_counted(self, shop: Shop) -> None:
        jobs = [shop.engine.jobs.get(shop.dead(payload=payload)) for payload in ({"a": 1}, {"a": 1, "b": [2]})]

        found = {fact.name: fact for fact in groups.facts(jobs)}

        assert found["a"].same == "1"
        assert found["b"].words == "[2] (1); 1 without"
        assert groups.differences(*jobs) == [groups.Difference("b", "–", "[2]")]

    def test_a_job_says_how_many_died_the_same_way(self, viewer: Client, shop: Shop) -> None:
        one = shop.dead()
        shop.dead()
        shop.dead(error=NETWORK)

        assert "1 other job died the same way" in text(viewer.get(f"/dashboard/jobs/{one}/"))


def test_frames_of_libraries_are_folded_and_own_ones_are_not() -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "/srv/shop/jobs.py", line 1, in charge\n    pay()\n'
        '  File "/usr/lib/python3.11/ssl.py", line 2, in read\n    x\n'
        '  File "/app/site-packages/http.py", line 3, in get\n    y\n'
        "TimeoutError: no answer"
    )

    found = timeline.frames(traceback)

    assert [(part.number, part.own) for part in found] == [(1, True), (2, False), (0, True)]
    assert "\n".join(part.text for part in found) == traceback


class TestEditedPayload:
    def test_it_runs_again_with_what_was_typed_and_the_old_one_is_on_record(
        self, administrator: Client, shop: Shop
    ) -> None:
        job_id = shop.dead(type="shop.charge", payload={"amount": 3, "currency": "SECRET"})
        url = "/dashboard/actions/job/edit/"
        question = administrator.get(url, {"id": job_id})
        assert "SECRET" not in question.content.decode()
        edited = '{"amount": 4, "currency": "•••"}'

        answer = send(administrator, url, {"id": job_id, "payload": edited, "reason": "wrong amount"})

        assert answer["Location"] == f"/dashboard/jobs/{job_id}/"
        found = shop.engine.jobs.get(job_id)
        assert (found.state, found.payload) == ("ready", {"amount": 4, "currency": "SECRET"})
        entry = AuditEntry.objects.get()
        assert (entry.before["payload"]["amount"], entry.after["payload"]["amount"]) == (3, 4)
        assert "SECRET" not in str((entry.before, entry.after))
        words = text(administrator.get(f"/dashboard/jobs/{job_id}/"))
        assert "administrator resubmitted it" in words
        assert "wrong amount before: amount=3" in words
        changes = words.partition("Every change")[2].partition("What people did")[0]
        assert "ready Resubmitted administrator: wrong amount" in changes
        assert changes.count("Resubmitted") == 1

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ('{"amount": ', "This is no JSON"),
            ("[1]", "must be an object of named arguments"),
            pytest.param("[" * 100_000, "nested too deeply", id="deep"),
            ('{"amount": ' + "9" * 5_000 + "}", "This is no JSON"),
            ('{"amount": 1, "x": "\\ud800"}', "x"),
            ('{"amount": "many"}', "amount"),
        ],
    )
    def test_what_does_not_fit_changes_nothing_and_says_why(
        self, administrator: Client, shop: Shop, typed: str, said: str
    ) -> None:
        job_id = shop.dead(type="shop.charge", payload={"amount": 3})

        answer = send(administrator, "/dashboard/actions/job/edit/", {"id": job_id, "payload": typed}, script=True)

        assert answer.status_code in (400, 409)
        assert said in answer.json()["message"]
        assert shop.engine.jobs.get(job_id).payload == {"amount": 3}

    def test_what_was_typed_stands_there_to_be_put_right(self, administrator: Client, shop: Shop) -> None:
        job_id = shop.dead(type="shop.charge", payload={"amount": 3})
        typed = '{"amount": "many"}'

        answer = send(administrator, "/dashboard/actions/job/edit/", {"id": job_id, "payload": typed})

        assert answer.status_code == 400
        page = text(answer)
        assert typed in page
        assert "argument 'amount'" in page

    def test_the_time_among_the_dead_is_no_backoff(self, shop: Shop) -> None:
        at = datetime(2026, 3, 1, tzinfo=UTC)
        first, again = (
            Attempt(attempt=1, worker="w", started_at=moment, finished_at=moment, outcome=outcome)
            for moment, outcome in ((at, "failed"), (at + timedelta(minutes=9), "succeeded"))
        )
        found = msgspec.structs.replace(
            shop.engine.jobs.get(shop.dead()), state=JobState.SUCCEEDED, attempts=[first, again]
        )

        assert ("wait", "dead", "dead") in [(part.kind, part.state, part.label) for part in timeline.parts(found, at)]
        assert [change.state for change in timeline.changes(found) if change.what == "Attempt 1 failed"] == ["dead"]

    def test_an_operator_may_resubmit_and_not_edit(self, operator: Client, shop: Shop) -> None:
        job_id = shop.dead(type="shop.charge", payload={"amount": 3})

        assert "Edit payload" not in text(operator.get(f"/dashboard/jobs/{job_id}/"))
        fields = {"id": job_id, "payload": "{}"}
        assert send(operator, "/dashboard/actions/job/edit/", fields).status_code == 403


class TestNewJob:
    url = "/dashboard/actions/job/new/"

    def test_it_asks_for_the_type_then_for_its_arguments(self, login: Login, shop: Shop) -> None:
        maker = login("maker")
        assert "shop.charge" in text(maker.get(self.url))

        page = maker.get(self.url, {"type": "shop.charge"})

        words = text(page)
        assert "New job: shop.charge Charges a card." in words
        assert "amount" in words
        assert 'str, otherwise "EUR"' in words
        assert {"argument-amount", "argument-dry", "argument-items"} <= {
            str(found.get("name")) for tag, found in tags(page) if tag in ("input", "select", "textarea")
        }

    def test_it_is_made_as_typed_with_defaults_for_what_was_left_empty(self, login: Login, shop: Shop) -> None:
        fields = {
            "type": "shop.charge",
            "argument-amount": "7",
            "argument-items": '["a", "b"]',
            "argument-dry": "true",
            "delay": "5m",
            "tags": "eu, checkout",
            "priority": "3",
        }

        answer = send(login("maker"), self.url, fields)

        found = shop.engine.jobs.get(answer["Location"].rstrip("/").rpartition("/")[2])
        assert found.payload == {"amount": 7, "items": ["a", "b"], "dry": True}
        assert (found.state, found.priority, found.tags) == ("scheduled", 3, ["eu", "checkout"])
        assert AuditEntry.objects.get().action == "job.enqueue"

    def test_sent_twice_it_is_one_job(self, login: Login, shop: Shop) -> None:
        maker = login("maker")
        fields = hidden(maker.get(self.url, {"type": "shop.charge"})) | {"argument-amount": "7"}

        answers = [send(maker, self.url, fields) for _ in range(2)]

        assert answers[0]["Location"] == answers[1]["Location"]
        assert "had been made already" in text(maker.get(answers[1]["Location"]))
        assert len(api.list_jobs(api.JobFilter()).items) == 1

    def test_who_goes_back_and_changes_it_makes_another(self, login: Login, shop: Shop) -> None:
        maker = login("maker")
        fields = hidden(maker.get(self.url, {"type": "shop.charge"}))

        for amount in ("7", "8"):
            send(maker, self.url, fields | {"argument-amount": amount})

        assert {job.payload["amount"] for job in api.list_jobs(api.JobFilter()).items} == {7, 8}

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({}, "This is missing."),
            ({"argument-amount": "7", "argument-items": "["}, "This is no JSON"),
            ({"argument-amount": "7", "argument-items": '"a"'}, "items"),
            ({"argument-amount": "7", "delay": "soon"}, "Write for example 90s"),
        ],
    )
    def test_what_does_not_fit_is_said_and_makes_nothing(
        self, login: Login, shop: Shop, fields: dict[str, str], said: str
    ) -> None:
        answer = send(login("maker"), self.url, {"type": "shop.charge", **fields}, script=True)

        assert answer.status_code in (400, 409)
        assert said in answer.json()["message"]
        assert api.list_jobs(api.JobFilter()).items == []

    def test_who_may_not_enqueue_sees_no_button(self, operator: Client, shop: Shop) -> None:
        assert "New job" not in text(operator.get("/dashboard/jobs/"))
        assert operator.get(self.url).status_code == 403
