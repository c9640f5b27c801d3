"""The HTTP API as a whole: shapes of its answers, its manners, and what it says where something is away."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from django.core.management import load_command_class
from django.db import DatabaseError, DataError

from dashboard import reads
from dashboard.api import service
from dashboard.api.documentation import document
from jobs import api
from jobs.models import AuditEntry, Schedule
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.asking import Answer, Program
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs
from tests.support.valkey import ValkeyServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What a command says with ``--json``."""

    monkeypatch.setattr("jobs.management.base.connections.close_all", lambda: None)  # this process goes on

    def run(*argv: str) -> Any:
        capsys.readouterr()
        load_command_class("jobs", argv[0]).run_from_argv(["manage.py", *argv, "--json"])
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def filled(shop: Shop) -> dict[str, str]:
    """Something of each kind."""
    shop.worker(host="h", pools={"default": 2})
    Schedule.objects.create(name="nightly", job_type="http.greet", cron="0 5 * * *", payload={"name": "Ana"})
    Runs(shop.engine).start({"key": "load"}, {"key": "ask", "type": "", "approval": "Go?"}, id="run-1")
    api.workflows.define({"name": "stored", "nodes": [{"key": "load", "type": "http.greet"}]})
    shop.retry_wait()
    return {"dead": shop.dead(), "succeeded": shop.succeeded(result={"sent": 1}), "leased": shop.leased()}


VOLATILE = {
    *("heartbeat_age_seconds", "server_time", "oldest_ready_age_seconds", "age_seconds", "load"),
    *("throughput_per_second", "predicted_wait_seconds", "late_seconds"),
}


def lasting(value: Any) -> Any:
    """Without what another moment changes, and the figure that only the API has."""
    if isinstance(value, dict):
        return {name: lasting(each) for name, each in value.items() if name not in VOLATILE}
    return [lasting(each) for each in value] if isinstance(value, list) else value


class TestShapes:
    SAME = {
        "jobs": ("jobs", "list"),
        "jobs/{dead}": ("jobs", "show", "{dead}"),
        "dlq": ("dlq", "list"),
        "dlq/groups": ("dlq", "groups"),
        "pools": ("pools", "list"),
        "pools/default": ("pools", "show", "default"),
        "scheduler": ("scheduler", "status"),
        "workers": ("workers", "list"),
        "workers/h": ("workers", "show", "h"),
        "schedules": ("schedules", "list"),
        "schedules/nightly": ("schedules", "show", "nightly"),
        "workflows": ("workflows", "list"),
        "workflows/run-1": ("workflows", "show", "run-1"),
        "workflows/definitions": ("workflows", "definitions"),
    }

    def test_answers_are_what_the_command_line_says(
        self, root: Program, filled: dict[str, str], told: Callable[..., Any]
    ) -> None:
        for address, argv in self.SAME.items():
            answer = root.get(address.format(**filled))
            said = told(*(word.format(**filled) for word in argv))
            assert lasting(answer.document) == lasting(said), address

    def test_answers_are_of_the_shapes_that_the_document_tells(self, root: Program, filled: dict[str, str]) -> None:
        found = document("/api/v1/")
        for path, methods in found["paths"].items():
            if "get" not in methods:
                continue
            address = path.removeprefix("/api/v1/")
            for part, thing in {
                "jobs/{id}": f"jobs/{filled['dead']}",
                "pools/{name}": "pools/default",
                "workers/{id}": "workers/h/1",
                "schedules/{name}": "schedules/nightly",
                "workflows/{run}": "workflows/run-1",
            }.items():
                address = address.replace(part, thing)
            answer = root.get(address)
            schema = methods["get"]["responses"][200]["content"]["application/json"]["schema"]
            assert answer.status == 200, address
            jsonschema.validate(answer.document, {**schema, "components": found["components"]})

    def test_errors_are_of_the_shape_that_the_document_tells(self, root: Program) -> None:
        found = document("/api/v1/")
        for answer in (root.get("nothing"), root.post("jobs", {}), Program().get("jobs")):
            schema = {"$ref": "#/components/schemas/Error", "components": found["components"]}
            jsonschema.validate(answer.document, schema)

    def test_it_describes_itself(self, root: Program) -> None:
        found = root.get("openapi.json").document

        assert found["openapi"].startswith("3.")
        assert found["paths"]["/api/v1/pools/{name}/scale"]["post"]["x-permissions"] == [
            "jobs.view_dashboard",
            "jobs.operate",
        ]
        ids = [one["operationId"] for methods in found["paths"].values() for one in methods.values()]
        assert len(ids) == len(set(ids))
        assert root.get("").document["openapi"] == "/api/v1/openapi.json"

    def test_the_page_about_it_names_each_operation_and_holds_no_script_of_its_own(self, root: Program) -> None:
        page = root.client.get("/api/v1/docs", headers=root.headers)
        text = page.content.decode()

        for path, methods in root.get("openapi.json").document["paths"].items():
            assert path in text
            assert all(f"<b>{method.upper()}</b> {path}" in text for method in methods)
        assert text.count('aria-current="page"') == 1, "the navigation marks this page and no other"
        assert "style=" not in text
        assert text.count("<script") == len(re.findall(r'<script type="module"[^>]* src="/static/', text))
        assert "default-src 'none'" in page["Content-Security-Policy"]


class TestManners:
    def test_head_is_get_without_a_body(self, root: Program) -> None:
        assert root.ask("head", "pools").status == 200
        assert Program().ask("head", "pools").status == 401

    def test_options_tell_what_an_address_takes(self) -> None:
        answer = Program().ask("options", "jobs")

        assert (answer.status, answer.document) == (204, None)
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS, POST"

    @pytest.mark.parametrize(("method", "address"), [("put", "jobs"), ("get", "jobs/x/cancel"), ("post", "stats")])
    def test_another_method_is_refused_with_those_that_there_are(
        self, root: Program, method: str, address: str
    ) -> None:
        answer = root.ask(method, address)

        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert "OPTIONS" in answer.headers["Allow"]

    def test_a_slash_at_the_end_changes_nothing(self, root: Program, shop: Shop) -> None:
        id = shop.ready()

        assert root.get("pools/default/").document["name"] == "default"
        assert root.get(f"jobs/{id}/").document["id"] == id
        assert root.post(f"jobs/{id}/cancel/").document["state"] == "cancelled"

    @pytest.mark.parametrize(
        "address", ["nothing", "%0a", "jobs%0a", "jobs/a%0ab", "x%0ay/", "pools/a%2fb", "/jobs", "workers/%00", "%ff"]
    )
    def test_whatever_there_is_not_is_not_there_in_json(self, root: Program, address: str) -> None:
        for method in ("get", "post", "delete"):
            answer = root.ask(method, address)

            assert (answer.status, answer.headers["Content-Type"]) in (
                (404, "application/json"),
                (405, "application/json"),
            )
        assert root.get(address).status == 404

    def test_the_root_is_there_without_its_slash_too(self, root: Program) -> None:
        answer = root.client.get("/api/v1", headers=root.headers)

        assert (answer.status_code, answer.json()) == (200, root.get("").document)
        assert root.client.post("/api/v1", headers=root.headers).status_code == 405

    @pytest.mark.parametrize(
        ("method", "address"), [("get", "schedules/nothing"), ("put", "jobs"), ("post", "workflows/nothing/cancel")]
    )
    def test_each_error_says_what_to_do(self, root: Program, method: str, address: str) -> None:
        assert root.ask(method, address).document["error"]["fix"]

    def test_answers_are_json_that_no_browser_takes_for_anything_else(self, root: Program) -> None:
        answer = root.get("pools")

        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"

    def test_a_database_that_is_away_is_503(self, root: Program, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(*_args: Any, **_options: Any) -> None:
            raise DatabaseError("no such host db.internal")

        monkeypatch.setattr(api.schedules, "page", away)
        answer = root.get("schedules")

        assert (answer.status, answer.code) == (503, "database_unavailable")
        assert "db.internal" not in answer.words

    def test_what_a_database_cannot_hold_is_no_reason_to_come_again(
        self, root: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuses(*_args: Any, **_options: Any) -> None:
            raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")

        monkeypatch.setattr(api.schedules, "page", refuses)
        answer = root.get("schedules", cursor="\0")

        assert (answer.status, answer.code) == (400, "request_invalid")
        assert "Retry-After" not in answer.headers

    def test_what_nobody_expected_is_told_to_the_log_only(
        self, root: Program, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken() -> None:
            raise ZeroDivisionError("at /srv/secret")

        monkeypatch.setattr(api.pools, "list", broken)
        root.client.raise_request_exception = False
        answer = root.get("pools")

        assert (answer.status, answer.code) == (500, "internal_error")
        assert "secret" not in answer.words
        assert "at /srv/secret" in caplog.text

    def test_what_was_not_written_into_the_audit_log_is_said(
        self, root: Program, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id = shop.ready()

        def away(*_args: Any, **_options: Any) -> None:
            raise DatabaseError

        monkeypatch.setattr(AuditEntry.objects, "create", away)
        answer = root.post(f"jobs/{id}/cancel")

        assert answer.status == 200
        assert "audit log" in answer.headers["Warning"]


@pytest.fixture
def store_of_its_own(settings: Any, private_valkey: ValkeyServer) -> Iterator[ValkeyServer]:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    yield private_valkey
    reads.last_known.forget()


def test_a_store_that_is_away_is_503_without_its_address(
    store_of_its_own: ValkeyServer, root: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BUDGET_SECONDS", 0.2)
    store_of_its_own.kill()

    refused: list[Answer] = [
        root.get("jobs"),
        root.get("stats"),
        root.post("jobs", {"type": "http.greet"}),
        root.post("scheduler/pause"),
    ]

    for answer in refused:
        assert answer.status == 503
        assert answer.code in ("store_unavailable", "outcome_unknown")
        assert int(answer.headers["Retry-After"]) > 0
        assert store_of_its_own.url not in answer.words
