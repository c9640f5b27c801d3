"""Jobs over the HTTP API: enqueueing them, looking at them, acting on them."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group

from jobs import api
from jobs.core.redaction import MASK
from jobs.core.states import JobState
from jobs.models import Pool
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.asking import Program
from tests.dashboard.seeding import Shop

pytestmark = pytest.mark.django_db

Programs = Callable[..., Program]


REFUSED: list[tuple[Any, str, str]] = [
    ({"type": "http.greeet"}, "unknown_job_type", "'http.greet'"),
    ({"type": "http.greet", "priorty": 5}, "request_invalid", "'priority'"),
    ({"type": "http.greet", "priority": "5"}, "request_invalid", "priority"),
    ({"type": "http.greet", "priority": True}, "request_invalid", "priority"),
    ({"type": "http.greet", "priority": 500}, "option_invalid", "-100"),
    ({"type": "http.greet", "tags": "x"}, "request_invalid", "tags"),
    ({"type": "http.greet", "meta": {"a": 1}}, "request_invalid", "meta.a"),
    ({"type": "http.greet", "delay": -1}, "option_invalid", "delay"),
    ({"type": "http.greet", "delay": 1, "run_at": "2100-01-01T00:00:00Z"}, "option_invalid", "exclude"),
    ({"type": "http.greet", "run_at": "tomorrow"}, "option_invalid", "ISO 8601"),
    ({"type": "http.greet", "run_at": "2100-01-01T00:00:00"}, "option_invalid", "no time zone"),
    ({"type": "http.greet", "backoff": {"kind": "fixed", "sconds": 1}}, "option_invalid", "backoff"),
    ({"type": "http.greet", "payload": {"nam": "x"}}, "payload_invalid", "nam"),
    ({"type": "http.greet", "payload": [1]}, "request_invalid", "payload"),
    ({"type": "http.greet", "payload": {}, "payloads": [{}]}, "request_invalid", "exclude"),
    ({"type": "http.greet", "payloads": []}, "request_invalid", "payloads"),
    ({"type": "http.greet", "payloads": [{}] * 1001}, "request_invalid", "payloads"),
    ({"payload": {}}, "request_invalid", "type"),
    ([{"type": "http.greet"}], "request_invalid", ""),
    ("http.greet", "request_invalid", ""),
    (None, "request_invalid", ""),
    (b'{"type": "http.greet", "type": "x"}', "request_invalid", "twice"),
    (b'{"type": "http.greet", "delay": NaN}', "request_invalid", "NaN"),
    (b'{"type": "http.greet", "delay": 1e999}', "option_invalid", "delay"),
    (b'{"type": "http.greet", "priority": ' + b"9" * 5000 + b"}", "request_invalid", "JSON"),
    (b'{"type": "http.greet"', "request_invalid", "JSON"),
    (b"\xff", "request_invalid", "JSON"),
    (b"[" * 100_000, "request_invalid", ""),
    (b'{"type": "http.greet", "backoff": {"kind": "\\ud800"}}', "request_invalid", "surrogate"),
    (b'{"type": "http.greet", "backoff": {"kind": "\xed\xa0\x80"}}', "request_invalid", "JSON"),
    ('{"type": "http.greet"}'.encode("utf-16"), "request_invalid", "JSON"),
]
"""Body of an enqueue, code of the error, and what its words name."""


class TestEnqueueing:
    def test_a_job_is_made(self, root: Program) -> None:
        answer = root.post("jobs", {"type": "http.greet", "payload": {"name": "Ben"}, "priority": 5, "tags": ["x"]})

        made = api.get_job(answer.document["id"])
        assert answer.status == 201
        assert answer.document == {
            "id": made.id,
            "type": "http.greet",
            "pool": "default",
            "state": "ready",
            "run_at": made.as_dict()["run_at"],
            "existing": False,
        }
        assert (made.payload, made.priority, made.tags) == ({"name": "Ben"}, 5, ["x"])

    def test_every_option_of_using_is_taken(self, root: Program) -> None:
        options = {
            "pool": "mail",
            "priority": -3,
            "max_retries": 7,
            "timeout": None,
            "backoff": {"kind": "fixed", "seconds": 5},
            "tags": ["a", "b"],
            "meta": {"customer": "42"},
            "run_at": "2100-01-31T09:00:00+01:00",
            "id": "order-7",
            "unique_key": "welcome:42",
            "unique_until": 60,
            "on_duplicate": "raise",
            "concurrency_key": "42",
            "rate_key": "42",
            "durability": "memory",
            "allow_unknown": True,
        }
        assert root.post("jobs", {"type": "http.unheard", "payload": {}, **options}).status == 201

        made = api.get_job("order-7")
        assert (made.pool, made.priority, made.max_retries, made.timeout) == ("mail", -3, 7, None)
        assert (made.meta, made.unique_key, made.state) == ({"customer": "42"}, "welcome:42", JobState.SCHEDULED)
        assert made.as_dict()["run_at"] == "2100-01-31T08:00:00.000Z"

    def test_many_are_made_in_one_request(self, root: Program) -> None:
        answer = root.post("jobs", {"type": "http.greet", "payloads": [{"name": "A"}, {"name": "B"}], "delay": 60})

        assert answer.status == 201
        assert [api.get_job(made["id"]).payload for made in answer.document["items"]] == [{"name": "A"}, {"name": "B"}]

    def test_of_many_none_is_made_where_one_is_wrong(self, root: Program) -> None:
        answer = root.post("jobs", {"type": "http.greet", "payloads": [{"name": "A"}, {"nane": "B"}]})

        assert (answer.status, answer.code) == (400, "payload_invalid")
        assert "Payload 1" in answer.words
        assert root.get("jobs").document["items"] == []

    def test_the_same_id_again_makes_nothing_and_says_so(self, root: Program) -> None:
        order = {"type": "http.greet", "id": "order-7"}

        assert [root.post("jobs", order).status for _ in range(3)] == [201, 409, 409]
        assert root.post("jobs", order).code == "duplicate_job"
        assert len(root.get("jobs").document["items"]) == 1

    def test_a_unique_key_that_is_taken_answers_the_job_that_has_it(self, root: Program) -> None:
        order = {"type": "http.greet", "unique_key": "welcome"}
        first, second = root.post("jobs", order), root.post("jobs", order)

        assert (first.status, second.status) == (201, 200)
        assert second.document == {**first.document, "existing": True}

    def test_a_full_pool_asks_to_come_again(self, root: Program) -> None:
        root.post("pools/default/limit", {"max_pending": 0})

        answer = root.post("jobs", {"type": "http.greet"})

        assert (answer.status, answer.code) == (429, "pool_full")
        assert int(answer.headers["Retry-After"]) > 0

    def test_what_cannot_be_carried_out_is_named(self, root: Program) -> None:
        for body, code, words in REFUSED:
            answer = root.post("jobs", body)

            assert (answer.status, answer.code) == (400, code), body
            assert words in answer.words, body

    def test_what_is_too_large_is_refused_as_that(self, root: Program, settings: Any) -> None:
        payload = root.post("jobs", {"type": "http.greet", "payload": {"name": "x" * 300_000}})
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
        body = root.post("jobs", {"type": "http.greet", "payload": {"name": "x" * 2_000}})

        assert (payload.status, payload.code) == (413, "payload_too_large")
        assert (body.status, body.code) == (413, "body_too_large")

    def test_no_secret_comes_back(self, root: Program) -> None:
        made = root.post("jobs", {"type": "http.login", "payload": {"user": "ana", "password": "hunter22"}})

        found = [
            root.get(f"jobs/{made.document['id']}"),
            root.get("jobs"),
            root.post(f"jobs/{made.document['id']}/cancel"),
        ]
        assert not [answer for answer in found if "hunter22" in repr(answer.document)]
        assert found[0].document["payload"] == {"user": "ana", "password": MASK}


class TestJobs:
    @pytest.mark.parametrize(
        ("verb", "before", "after"),
        [
            ("cancel", "ready", JobState.CANCELLED),
            ("retry", "retry_wait", JobState.READY),
            ("retry", "dead", JobState.READY),
            ("run-now", "scheduled", JobState.READY),
            ("resubmit", "dead", JobState.READY),
        ],
    )
    def test_a_job_is_acted_on(self, root: Program, shop: Shop, verb: str, before: str, after: JobState) -> None:
        id = shop.in_state(before)

        answer = root.post(f"jobs/{id}/{verb}")

        assert (answer.status, answer.document["state"]) == (200, after)
        assert shop.state(id) == after

    @pytest.mark.parametrize(("verb", "state"), [("cancel", "dead"), ("retry", "ready"), ("run-now", "succeeded")])
    def test_in_another_state_it_is_refused(self, root: Program, shop: Shop, verb: str, state: str) -> None:
        answer = root.post(f"jobs/{shop.in_state(state)}/{verb}")

        assert (answer.status, answer.code) == (409, "wrong_state")

    def test_an_ended_job_is_discarded_and_a_live_one_is_not(self, root: Program, shop: Shop) -> None:
        dead, ready = shop.dead(), shop.ready()

        assert root.delete(f"jobs/{dead}")[:2] == (200, {"id": dead, "deleted": True})
        assert root.get(f"jobs/{dead}").code == "job_not_found"
        assert root.delete(f"jobs/{ready}").code == "wrong_state"

    def test_a_corrected_payload_takes_more_than_operating(self, program: Any, root: Program, shop: Shop) -> None:
        id = shop.dead(type="http.login", payload={"user": "ana", "password": "hunter22"})
        corrected = {"payload": {"user": "ben", "password": MASK}}

        assert program("operator").post(f"jobs/{id}/resubmit", corrected).status == 403
        assert root.post(f"jobs/{id}/resubmit", corrected).status == 200
        assert api.get_job(id).payload == {"user": "ben", "password": "hunter22"}

    @pytest.mark.parametrize("id", ["a/b", "a b", "50%", "ü"])
    def test_any_id_can_be_asked_for(self, root: Program, id: str) -> None:
        root.post("jobs", {"type": "http.greet", "id": id})

        assert root.get(f"jobs/{id.replace('%', '%25')}").document["id"] == id

    def test_what_is_not_there_is_404(self, root: Program) -> None:
        for address, code in {
            "jobs/nothing": "job_not_found",
            "jobs/nothing/logs": "job_not_found",
            "pools/nothing": "pool_not_found",
            "workers/nothing": "worker_not_found",
            "schedules/nothing": "schedule_not_found",
            "workflows/nothing": "run_not_found",
            "nothing": "not_found",
        }.items():
            answer = root.get(address)
            assert (answer.status, answer.code) == (404, code)

    def test_a_list_is_narrowed_by_the_words_of_the_command_line_and_paged(self, root: Program, shop: Shop) -> None:
        dead = {shop.dead(pool="mail") for _ in range(3)}
        shop.ready(pool="mail")
        first = root.get("jobs", state="dead", pool="mail", limit=2).document
        second = root.get("jobs", state="dead", pool="mail", limit=2, cursor=first["next_cursor"]).document

        assert {job["id"] for job in first["items"] + second["items"]} == dead
        assert len(first["items"]) == 2
        assert second["next_cursor"] is None

    def test_the_last_deploy_is_a_moment_where_one_is_known(self, root: Program, shop: Shop) -> None:
        shop.dead()
        unknown = root.get("dlq", since="deploy")
        sleep(0.002)  # a deploy is known by the millisecond
        shop.worker(version="9f3c2ab")
        new = shop.dead()

        assert (unknown.status, unknown.document["error"]["code"]) == (400, "option_invalid")
        assert "No deploy is known" in unknown.words
        for address in ("dlq", "jobs"):
            assert [job["id"] for job in root.get(address, since="deploy").document["items"]] == [new]

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ({"sate": "dead"}, "'state'"),
            ({"state": "ded"}, "dead"),
            ({"since": "yesterday"}, "5m"),
            ({"limit": "many"}, "limit"),
            ({"limit": "0"}, "limit"),
            ({"attempts": "x"}, "attempts"),
            ({"state": "\0"}, "state"),
            ({"pool": "\0"}, "pool"),
            ({"pool": ["a", "b"]}, "pool"),
            ({"search": "x" * 201}, "search"),
            ({"cursor": "x"}, ""),
        ],
    )
    def test_a_word_that_cannot_be_used_is_named(self, root: Program, query: dict[str, Any], words: str) -> None:
        answer = root.get("jobs", **query)

        assert answer.status == 400
        assert words in answer.words


HOSTILE_IDS = [
    *("a/cancel", "a/logs", "/a", "a/", "//", "a/logs/cancel", "{}", "{id}", "<thing:id>", "%2F", "%252f", "a%2Flogs"),
    *("\"'`", "a b", "?state=dead", "#x", "a\\b", "ünï", "日本", "😀", "'; DROP TABLE jobs", "<script>", "..x", "a//b"),
    *("x" * 200, "é" * 100),
]


class TestEveryIdHasAnAddress:
    @pytest.mark.parametrize("id", HOSTILE_IDS)
    def test_it_is_looked_at_acted_on_and_removed_under_its_own_name(self, root: Program, id: str) -> None:
        assert root.post("jobs", {"type": "http.greet", "id": id}).status == 201
        address = f"jobs/{quote(id, safe='')}"

        assert root.as_sent("get", address).document["id"] == id
        assert root.as_sent("get", f"{address}/").document["id"] == id
        assert root.as_sent("get", f"{address}/logs").document == {"lines": [], "gone": {}}
        assert root.as_sent("post", f"{address}/cancel").document["state"] == "cancelled"
        assert root.as_sent("delete", address).document == {"id": id, "deleted": True}

    @pytest.mark.parametrize("id", [".", "..", "a\0b", "a\nb", " a", "x" * 201, "é" * 101, ""])
    def test_one_that_can_have_none_is_refused_where_it_is_made(self, root: Program, id: str) -> None:
        answer = root.post("jobs", {"type": "http.greet", "id": id})

        assert (answer.status, answer.code) in ((400, "option_invalid"), (400, "request_invalid"))
        assert "id" in answer.words

    def test_a_slash_that_divides_names_an_act_and_one_that_was_encoded_does_not(self, root: Program) -> None:
        for id in ("a", "a/cancel"):
            root.post("jobs", {"type": "http.greet", "id": id})

        assert root.as_sent("get", "jobs/a/cancel").status == 405
        assert root.as_sent("post", "jobs/a%2fcancel/cancel").document["id"] == "a/cancel"
        assert api.get_job("a").state is JobState.READY

    def test_rights_are_judged_by_the_thing_that_is_meant(self, program: Programs) -> None:
        Pool.objects.create(name="billing").operators.add(Group.objects.create(name="billing"))
        api.enqueue("http.greet", {}, id="a/b", pool="billing")

        assert program("operator").as_sent("post", "jobs/a%2Fb/cancel").status == 403

    def test_what_is_no_address_of_the_api_stays_none(self, root: Program) -> None:
        for address in ("%2fjobs", "jobs%2f", "nothing%2F", "pools/a%2Fb"):
            assert root.as_sent("get", address).status == 404

    def test_a_server_of_wsgi_tells_the_address_as_it_was_sent_too(self, root: Program) -> None:
        root.post("jobs", {"type": "http.greet", "id": "a/logs"})

        for variable in ("RAW_URI", "REQUEST_URI"):
            told = {variable: "/api/v1/jobs/a%2Flogs?"}
            answer = root.client.get("/api/v1/jobs/a%2Flogs", headers=root.headers, **told)
            assert answer.json()["id"] == "a/logs"
