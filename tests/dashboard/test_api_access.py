"""Who may ask the HTTP API for what: nobody without a token or a session, nobody more than their permissions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import DatabaseError
from django.utils import timezone

from dashboard.api.operations import api as operations
from jobs import api
from jobs.models import ApiToken, AuditEntry, Pool, Schedule
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.asking import Program
from tests.dashboard.browsing import TOKEN
from tests.dashboard.conftest import ROLES, Login
from tests.dashboard.seeding import Shop

pytestmark = pytest.mark.django_db

Programs = Callable[..., Program]


def every_operation() -> Iterator[tuple[str, str, frozenset[str]]]:
    """Method, address with things that are not there, and the permissions that it takes."""
    for bound in operations._get_bound_routers():
        for route, view in bound.path_operations.items():
            for operation in view.operations:
                [needs] = operation.auth_callbacks
                address = re.sub(r"{[^}]*}", "nothing", f"{bound.prefix}{route}").strip("/")
                yield operation.methods[0].lower(), address, frozenset(needs.permissions)


OPERATIONS = [*every_operation()]


def test_there_are_as_many_operations_as_the_walk_finds() -> None:
    assert len(OPERATIONS) > 35
    assert all(needs for _, _, needs in OPERATIONS)


@pytest.mark.parametrize(
    "program",
    [
        Program(),
        Program("mainspring_wrong"),
        Program(authorization="Basic YW5hOmFuYQ=="),
        Program(authorization="Bearer"),
    ],
    ids=["no token", "a wrong one", "a password", "an empty one"],
)
def test_nobody_unknown_is_answered_anything(program: Program) -> None:
    for method, address, _ in [*OPERATIONS, ("get", "openapi.json", ""), ("get", "docs", ""), ("get", "", "")]:
        answer = program.ask(method, address)

        assert (answer.status, answer.code) == (401, "unauthorized"), address
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("role", sorted(ROLES))
def test_each_operation_obeys_those_with_its_permissions_and_no_others(role: str, program: Programs) -> None:
    held = {f"jobs.{name}" for name in ROLES[role]}
    asking = program(role)
    for method, address, needs in OPERATIONS:
        answer = asking.ask(method, address)

        assert (answer.status != 403) == (needs <= held), (method, address)
        if answer.status == 403:
            assert any(permission in answer.words for permission in needs - held)


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("view", {"jobs.view_dashboard"}),
        ("enqueue", {"jobs.enqueue"}),
        ("operate", {"jobs.view_dashboard", "jobs.operate"}),
        ("administer", {"jobs.view_dashboard", "jobs.administer"}),
    ],
)
def test_a_token_does_no_more_than_its_scopes_say(scope: str, allowed: set[str], program: Programs) -> None:
    User.objects.create_superuser("root")
    asking = program("root", scope)
    for method, address, needs in OPERATIONS:
        if method == "get" or address in ("jobs", "jobs/nothing", "pools/nothing/resume", "workflows"):
            assert (asking.ask(method, address).status != 403) == (needs <= allowed), (method, address)


def test_a_scope_gives_nobody_what_they_may_not(program: Programs) -> None:
    assert program("viewer", "operate").post("scheduler/pause").status == 403


def test_a_token_that_is_revoked_or_over_opens_nothing(program: Programs) -> None:
    revoked, expired = program("viewer"), program("viewer")
    assert revoked.get("pools").status == expired.get("pools").status == 200
    first, second = ApiToken.objects.all()
    api.tokens.revoke(first.pk)
    ApiToken.objects.filter(pk=second.pk).update(expires_at=timezone.now() - timedelta(seconds=1))

    assert revoked.get("pools").status == expired.get("pools").status == 401


def test_a_session_may_look_and_acts_only_with_the_token_of_the_form(login: Login) -> None:
    browser = login("operator")
    browser.cookies["csrftoken"] = TOKEN

    assert browser.get("/api/v1/pools").status_code == 200
    forged = browser.post("/api/v1/scheduler/pause", "{}", content_type="application/json")
    assert (forged.status_code, forged.json()["error"]["code"]) == (403, "csrf_failed")
    assert api.scheduler.paused() is None
    meant = browser.post(
        "/api/v1/scheduler/pause", "{}", content_type="application/json", headers={"x-csrftoken": TOKEN}
    )
    assert meant.status_code == 200
    assert api.scheduler.paused() is not None


def test_with_a_token_the_session_beside_it_counts_for_nothing(login: Login) -> None:
    browser = login("administrator")

    assert browser.get("/api/v1/pools", headers={"authorization": "Bearer mainspring_wrong"}).status_code == 401


def test_a_pool_that_is_kept_for_a_group_is_closed_to_others(program: Programs, shop: Shop) -> None:
    Pool.objects.create(name="billing").operators.add(Group.objects.create(name="billing"))
    User.objects.create_superuser("root")
    job = shop.dead(pool="billing")
    shop.worker(host="h", pools={"billing": 2})
    operator, administrator = program("operator"), program("administrator")

    refusals = [
        operator.post("pools/billing/pause"),
        operator.post("pools/billing/scale", {"slots": 3}),
        operator.post(f"jobs/{job}/resubmit"),
        administrator.delete(f"jobs/{job}"),
        operator.post("workers/h/1/drain"),
        operator.post("scheduler/pause"),
    ]

    assert [answer.status for answer in refusals] == [403] * len(refusals)
    assert all("billing" in answer.words for answer in refusals)
    assert operator.get(f"jobs/{job}").status == 200
    assert api.pools.get("billing").paused is None
    assert program("root").post("pools/billing/pause").status == 200


def test_what_reaches_such_a_pool_by_another_way_is_refused_too(program: Programs, shop: Shop) -> None:
    Pool.objects.create(name="billing").operators.add(Group.objects.create(name="billing"))
    nodes = [{"key": "pay", "type": "http.greet", "pool": "billing"}]
    inner = [{"key": "part", "workflow": {"name": "inner", "nodes": nodes}}]
    for name, of in {"pay": nodes, "stored": [{"key": "part", "workflow": "pay"}]}.items():
        api.workflows.define({"name": name, "nodes": of})
    for name, fields in {"own": {"job_type": "http.greet", "pool": "billing"}, "run": {"workflow": "stored"}}.items():
        Schedule.objects.create(name=name, cron="0 5 * * *", **fields)
    run = api.workflows.start({"name": "outer", "nodes": inner}).id
    maker, operator = program("maker"), program("operator")
    User.objects.get(username="maker").user_permissions.add(Permission.objects.get(codename="operate"))  # to replace

    refusals = [
        maker.post("jobs", {"type": "http.greet", "pool": "billing"}),
        maker.post("jobs", {"type": "http.greet", "payloads": [{}, {}], "pool": "billing"}),
        maker.post("jobs", {"type": "http.greet", "unique_key": "bill", "on_duplicate": "replace"}),
        maker.post("jobs", {"type": "workflow.start", "payload": {"workflow": "pay", "payload": {}}}),
        maker.post("workflows", {"name": "pay"}),
        maker.post("workflows", {"name": "stored"}),
        maker.post("workflows", {"workflow": {"name": "mine", "nodes": inner}}),
        *(operator.post(f"schedules/{name}/run") for name in ("own", "run")),
        *(operator.post(f"workflows/{run}/{verb}") for verb in ("cancel", "pause", "retry")),
    ]

    assert [answer.status for answer in refusals] == [403] * len(refusals)
    assert all("billing" in answer.words for answer in refusals)
    assert (
        maker.post("workflows", {"workflow": {"name": "b", "nodes": [{"key": "b", "type": "http.greet"}]}}).status
        == 201
    )
    assert maker.post("jobs", {"type": "http.greet", "unique_key": "bill"}).status == 201


def test_who_did_it_from_where_and_why_is_written_down(program: Programs, shop: Shop) -> None:
    job = shop.dead()

    program("operator").post(f"jobs/{job}/resubmit", {"reason": "incident 212"})

    entry = AuditEntry.objects.filter(action="job.resubmit").get()
    assert (entry.who, entry.source, entry.target, entry.reason) == ("operator", "api", job, "incident 212")


class TestEnqueuesInTheAuditLog:
    def entries(self) -> list[tuple[str, str, str, int]]:
        found = AuditEntry.objects.filter(action="job.enqueue").order_by("id")
        return [(one.who, one.source, one.after["type"], one.after["jobs_this_hour"]) for one in found]

    def test_a_flood_of_one_leaves_an_entry_at_each_tenfold(self, program: Programs) -> None:
        making = program("maker")
        one, many = {"type": "http.greet"}, {"type": "http.greet", "payloads": [{}] * 60}
        made = [making.post("jobs", one).document["id"] for _ in range(12)]
        making.post("jobs", many)
        making.post("jobs", many)

        assert self.entries() == [("maker", "api", "http.greet", number) for number in (1, 10, 132)]
        first = AuditEntry.objects.filter(action="job.enqueue").earliest("id")
        [token] = ApiToken.objects.all()
        facts = {"type": "http.greet", "pool": "default", "jobs_this_hour": 1}
        assert (first.target, first.after) == (made[0], {**facts, "sent_with": f"token {token.pk}"})

    def test_each_token_and_each_type_is_told_of(self, program: Programs) -> None:
        first, second = program("maker"), program("maker")
        for asking in (first, first, second):
            asking.post("jobs", {"type": "http.greet"})
        first.post("jobs", {"type": "email.send", "payload": {"to": "a@example.com", "subject": "x"}})

        assert self.entries() == [("maker", "api", type, 1) for type in ("http.greet", "http.greet", "email.send")]

    def test_made_up_types_cannot_flood_it(self, program: Programs) -> None:
        making = program("maker")
        for number in range(12):
            assert making.post("jobs", {"type": f"made.up{number}", "allow_unknown": True}).status == 201

        assert [jobs for _, _, _, jobs in self.entries()] == [1, 10]

    def test_jobs_that_are_made_are_told_of_also_where_no_cache_can_count_them(
        self, program: Programs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: Any, **__: Any) -> int:
            raise ConnectionError("the cache is away")

        monkeypatch.setattr("dashboard.api.tally.counted", away)

        assert program("maker").post("jobs", {"type": "http.greet"}).status == 201
        assert self.entries() == [("maker", "api", "http.greet", 1)]

    def test_what_made_nothing_is_not_told_of(self, program: Programs) -> None:
        making = program("maker")
        keyed = {"type": "http.greet", "unique_key": "once"}
        for order in (keyed, keyed, {"type": "http.greeet"}):
            making.post("jobs", order)

        assert len(self.entries()) == 1


class TestReplacing:
    ORDER: ClassVar = {"type": "http.greet", "unique_key": "greeting", "delay": 60, "on_duplicate": "replace"}

    def test_it_takes_the_permission_to_cancel(self, program: Programs) -> None:
        waiting = program("maker").post("jobs", {**self.ORDER, "on_duplicate": "return"}).document["id"]

        refused = program("maker").post("jobs", self.ORDER)

        assert (refused.status, refused.code) == (403, "forbidden")
        assert "jobs.operate" in refused.words
        assert api.get_job(waiting).state == "scheduled"

    def test_and_a_scope_that_holds_it(self, program: Programs) -> None:
        User.objects.create_superuser("root")
        waiting = program("root", "enqueue").post("jobs", {**self.ORDER, "on_duplicate": "return"}).document["id"]

        assert program("root", "enqueue").post("jobs", self.ORDER).status == 403
        assert program("root", "operate").post("jobs", self.ORDER).status == 403, "it makes a job too"
        assert api.get_job(waiting).state == "scheduled"
        assert program("root", "enqueue", "operate").post("jobs", self.ORDER).status == 201
        assert api.get_job(waiting).state == "cancelled"
        assert AuditEntry.objects.filter(action="job.enqueue", after__on_duplicate="replace").exists()


@pytest.mark.parametrize("reason", ["\0", "a\0b", "\u202e"])
def test_no_reason_keeps_an_act_out_of_the_log(program: Programs, shop: Shop, reason: str) -> None:
    job = shop.ready()

    answer = program("operator").post(f"jobs/{job}/cancel", {"reason": reason})

    kept = AuditEntry.objects.get(action="job.cancel").reason
    assert (answer.status, "Warning" in answer.headers) == (200, False)
    assert kept == reason.replace("\0", r"\x00")


def test_metrics_open_to_a_token_that_may_look(program: Programs) -> None:
    looking, making = program("viewer", "view"), program("maker", "enqueue")

    for asking, status in ((looking, 200), (making, 403)):
        assert asking.client.get("/metrics", headers=asking.headers).status_code == status


def test_who_asks_too_often_is_told_to_slow_down_and_others_are_not(program: Programs, settings) -> None:
    hurried, calm = program("viewer"), program("operator")
    asked = hurried.get("pools").status
    settings.SCHEDULER = {**settings.SCHEDULER, "API_REQUESTS_PER_MINUTE": 1}

    refused = [hurried.get("pools") for _ in range(3)][-1]

    assert asked == 200
    assert (refused.status, refused.code) == (429, "too_many_requests")
    assert refused.headers["Retry-After"] == "20"
    settings.SCHEDULER = {**settings.SCHEDULER, "API_REQUESTS_PER_MINUTE": 0}
    assert hurried.get("pools").status == calm.get("pools").status == 200


@pytest.fixture
def guessed(settings) -> None:
    """Two guesses of an address are let through in a minute."""
    settings.SCHEDULER = {**settings.SCHEDULER, "API_FAILED_TOKENS_PER_MINUTE": 2}


def guess(program: Program, address: str = "10.0.0.1", path: str = "pools") -> Any:
    return program.client.get(f"/api/v1/{path}", headers=program.headers, REMOTE_ADDR=address)


def test_who_guesses_tokens_is_held_up_and_whoever_has_one_behind_the_same_proxy_is_not(
    program: Programs, guessed: None, caplog: pytest.LogCaptureFixture
) -> None:
    guessing, honest = Program("mainspring_wrong"), program("viewer")

    answers = [guess(guessing) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [401, 401, 429, 429, 429]
    assert answers[-1]["Retry-After"] == "20"
    assert answers[-1].json()["error"]["code"] == "too_many_requests"
    assert caplog.text.count("api.tokens_guessed by 10.0.0.1") == 1
    assert guess(honest).status_code == 200
    assert guess(guessing, "10.0.0.2").status_code == 401, "another address"


def test_who_has_many_addresses_of_one_network_has_no_more_guesses(guessed: None) -> None:
    guessing = Program("mainspring_wrong")

    answers = [guess(guessing, f"2001:db8:0:1:{number}::1").status_code for number in range(3)]

    assert answers == [401, 401, 429]
    assert guess(guessing, "2001:db8:0:2::1").status_code == 401


def test_metrics_are_no_other_place_to_guess_at(guessed: None) -> None:
    guessing = Program("mainspring_wrong")
    statuses = [
        guessing.client.get("/metrics", headers=guessing.headers, REMOTE_ADDR="10.0.0.3").status_code for _ in range(3)
    ]

    assert statuses == [401, 401, 429]
    assert guess(guessing, "10.0.0.3").status_code == 429


def test_guessing_can_be_left_to_others(guessed: None, settings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "API_FAILED_TOKENS_PER_MINUTE": 0}

    assert [guess(Program("mainspring_wrong")).status_code for _ in range(4)] == [401] * 4


def test_a_cache_that_keeps_nothing_keeps_nobody_out(program: Programs, settings) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

    assert program("viewer").get("pools").status == 200


def test_a_database_that_is_away_is_told_to_a_scraper(program: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = program("viewer")

    def away(_secret: str) -> None:
        raise DatabaseError

    monkeypatch.setattr(api.tokens, "bearer", away)

    assert asking.client.get("/metrics", headers=asking.headers).status_code == 503
