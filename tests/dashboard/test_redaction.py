"""No page, fragment, download or frame tells a secret; who may and must see one asks for it, and that is on record."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.test import Client

from dashboard.figures import figures
from dashboard.reads import overall
from jobs import api, job
from jobs.engine import NewLines
from jobs.models import Schedule
from jobs.registry import registry
from jobs.store.log_lines import encode_line
from tests.dashboard.asking import Program
from tests.dashboard.browsing import send, text
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

SECRETS = ("tok-4711", "DE02-1203", "hunter2")
QUOTED = {"type": "Refused", "message": "no tok-4711 for hunter2", "traceback": "pay('DE02-1203', password='hunter2')"}


@pytest.fixture
def secret(shop: Shop) -> Iterator[str]:
    """A dead job that holds secrets: one that its type redacts, others that their keys name; its error quotes them."""
    with registry.restored():
        job("pay.out", redact=("account",))(lambda account, token, amount=0, login=None: None)
        payload = {"amount": 37, "account": SECRETS[1], "token": SECRETS[0], "login": {"password": SECRETS[2]}}
        job_id = shop.ready(type="pay.out", payload=payload, meta={"api_key": "hunter2"}, tags=["tok-4711"])
        log(shop, job_id, "asked with tok-4711", {"account": "DE02-1203", "said": "no hunter2"})
        shop.fail(job_id, "dead", error=QUOTED)
        yield job_id


def log(shop: Shop, job_id: str, message: str, fields: dict[str, str]) -> None:
    """An attempt logs this line, and goes back."""
    job_id, token, route, _ = shop._lease(job_id)
    line = encode_line(1, 20, message, fields)
    assert shop.engine.logs.append(route, [NewLines(job_id, token, [line], gone=0)]) == []
    shop.engine.leases.release(route, [(job_id, token)])


def test_pages_fragments_downloads_and_frames_show_none(administrator: Client, secret: str) -> None:
    for address in (
        "/dashboard/",
        "/dashboard/jobs/",
        "/dashboard/dead/",
        f"/dashboard/jobs/{secret}/",
        f"/dashboard/fragments/job/?id={secret}",
        f"/dashboard/fragments/jobs/?updates=1&shown={secret}",
        f"/dashboard/fragments/dead/?updates=1&shown={secret}",
        f"/dashboard/raw/?id={secret}",
        "/dashboard/snapshot/",
        f"/dashboard/actions/job/discard/?id={secret}",
        f"/dashboard/dead/?group={api.error_groups()[0].fingerprint}",
        "/dashboard/audit/export/?format=jsonl",
        "/metrics",
    ):
        response = administrator.get(address)

        assert response.status_code == 200, address
        assert not [word for word in SECRETS if word in response.content.decode()], address
    page = text(administrator.get(f"/dashboard/jobs/{secret}/"))
    assert "37" in page
    assert "asked with •••" in page
    assert not [word for word in SECRETS if word in json.dumps(figures(overall()))]


def test_the_api_tells_none(root: Program, shop: Shop, secret: str) -> None:
    Schedule.objects.create(name="pays", job_type="pay.out", cron="0 5 * * *", payload=api.get_job(secret).payload)
    payload = {"account": "DE02-1203", "token": "tok-4711"}
    api.workflows.define({"name": "pays", "nodes": [{"key": "a", "type": "pay.out", "payload": payload}]})
    run = api.workflows.start("pays", {"password": "hunter2"}, allow_unknown=True).id
    node = api.workflows.nodes(run)[0].job
    asked = [
        *("jobs", "dlq", "dlq/groups", "schedules", "schedules/pays", "workflows", "workflows/definitions", "stats"),
        *(f"jobs/{secret}", f"jobs/{secret}/logs", f"jobs/{node}", f"workflows/{run}"),
    ]
    answers = {address: root.get(address) for address in asked}
    answers |= {verb: root.post(f"jobs/{secret}/{verb}") for verb in ("resubmit", "cancel", "retry")}
    answers |= {verb: root.post(f"schedules/pays/{verb}") for verb in ("pause", "resume", "run")}
    answers |= {f"run {verb}": root.post(f"workflows/{run}/{verb}") for verb in ("pause", "resume", "cancel")}
    wrong = {"type": "pay.out", "payload": {"account": "DE02-1203", "token": "tok-4711", "amuont": 1}}
    refusals = [root.post("jobs", wrong), root.post("jobs", {**wrong, "payload": {"account": ["DE02-1203"]}})]

    assert {answer.status for answer in answers.values()} == {200}
    assert "asked with •••" in json.dumps(answers[f"jobs/{secret}/logs"].document, ensure_ascii=False)
    assert {answer.status for answer in refusals} == {400}
    for address, answer in [*answers.items(), *enumerate(refusals)]:
        told = json.dumps(answer.document, ensure_ascii=False)
        assert not [word for word in SECRETS if word in told], address


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_the_offer_is_made_to_nobody_else(role: str, login: Login, secret: str) -> None:
    client = login(role)

    assert "Reveal" not in text(client.get(f"/dashboard/jobs/{secret}/"))
    assert send(client, "/dashboard/reveal/", {"id": secret}).status_code == 403
    assert not api.audit.list().items


def test_who_may_administer_sees_everything_once_and_is_on_record(administrator: Client, secret: str) -> None:
    assert "Reveal" in text(administrator.get(f"/dashboard/jobs/{secret}/"))

    response = send(administrator, "/dashboard/reveal/", {"id": secret, "reason": "incident 212"})

    assert response.status_code == 200
    assert not [word for word in SECRETS if word not in text(response)]
    assert "no-store" in response["Cache-Control"]
    [entry] = api.audit.list().items
    assert (entry.who, entry.action, entry.target, entry.reason) == (
        "administrator",
        "job.reveal",
        secret,
        "incident 212",
    )


def test_it_cannot_be_had_by_following_a_link(administrator: Client, secret: str) -> None:
    assert administrator.get("/dashboard/reveal/", {"id": secret}).status_code == 405


def test_a_job_that_is_gone_is_404_and_not_on_record(administrator: Client, db: None) -> None:
    assert send(administrator, "/dashboard/reveal/", {"id": "nothing"}).status_code == 404
    assert not api.audit.list().items


def test_where_nothing_is_hidden_nothing_is_offered(administrator: Client, shop: Shop) -> None:
    assert "Reveal" not in text(administrator.get(f"/dashboard/jobs/{shop.dead()}/"))


def test_a_run_does_not_tell_what_the_payloads_of_its_nodes_hide(viewer: Client, shop: Shop) -> None:
    runs = Runs(shop.engine)
    run = runs.start({"key": "load", "payload": {"login": {"password": "hunter2"}}}, payload={"api_key": "tok-4711"})
    [leased] = runs.lease()
    runs.fail(leased, "dead", message="no tok-4711x for hunter2, token=DE02-1203")
    runs.tell([leased])

    for address in (
        f"/dashboard/workflows/{run}/",
        f"/dashboard/workflows/{run}/?view=table",
        f"/dashboard/workflows/{run}/?node=load",
        f"/dashboard/fragments/run/?id={run}",
        "/dashboard/workflows/",
    ):
        page = text(viewer.get(address))
        assert "ValueError" in page, address
        assert not [word for word in ("hunter2", "DE02-1203") if word in page], address
    told = json.dumps(api.workflows.shown_document(run))
    assert "ValueError" in told
    assert not [word for word in ("hunter2", "DE02-1203", '"tok-4711"') if word in told]


def test_of_many_failed_nodes_it_tells_no_more_than_of_a_few(
    shop: Shop, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.redaction, "ERRORS_READ", 1)
    runs = Runs(shop.engine)
    run = runs.start(*({"key": key, "payload": {"password": "hunter2"}} for key in "ab"))
    for leased in runs.lease():
        runs.fail(leased, "dead", message="no hunter2")
        runs.tell([leased])

    first, second = api.shown_nodes(api.workflows.nodes(run))

    assert (first.error["message"], second.error["message"]) == ("no •••", "•••")
    assert second.error["type"] == "ValueError"


def test_a_process_that_does_not_know_the_type_hides_what_it_redacts(viewer: Client, shop: Shop) -> None:
    with registry.restored():
        pay = job("pay.out", redact=("account",))(lambda account: None)
        job_id = pay.enqueue(account=SECRETS[1]).id
    assert "pay.out" not in registry

    assert SECRETS[1] not in viewer.get(f"/dashboard/jobs/{job_id}/").content.decode()
    assert SECRETS[1] not in viewer.get("/dashboard/jobs/").content.decode()


def test_a_guessed_tag_that_is_hidden_is_not_confirmed(viewer: Client, shop: Shop, secret: str) -> None:
    assert secret in viewer.get("/dashboard/jobs/?type=pay.out").content.decode()

    assert secret not in viewer.get("/dashboard/jobs/?tag=tok-4711").content.decode()
