"""What people see of a job hides its secrets, wherever they are repeated; and seeing them is on record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jobs import api, job
from jobs.api import JobFilter, audit
from jobs.core.fingerprint import fingerprint_of
from jobs.core.states import JobState
from jobs.models import Schedule
from jobs.registry import registry
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

SECRET, ACCOUNT = "tok-4711", "DE02-1203"
QUOTED = {"type": "Refused", "message": f"no {SECRET}", "traceback": f"pay({SECRET!r}, '{ACCOUNT}')\n"}


@pytest.fixture
def shop() -> Iterator[Shop]:
    with registry.restored():
        job("pay.out", redact=("account",))(lambda account, token, amount=0: None)
        yield Shop()


def pay(shop: Shop, state: str = "dead", **options) -> str:
    payload = {"account": ACCOUNT, "token": SECRET, "amount": 12}
    return shop.in_state(state, type="pay.out", payload=payload, **options)


def as_text(shown: object) -> str:
    return json.dumps(shown, ensure_ascii=False, default=str)


def test_what_a_type_redacts_and_what_a_key_names_is_hidden_in_the_payload(shop: Shop) -> None:
    shown = api.shown(api.get_job(pay(shop)))

    assert shown.payload == {"account": "•••", "token": "•••", "amount": 12}


def test_errors_and_attempts_do_not_quote_it(shop: Shop) -> None:
    shown = api.shown(api.get_job(pay(shop, error=QUOTED)))

    assert shown.error == {"type": "Refused", "message": "no •••", "traceback": "pay('•••', '•••')\n"}
    assert SECRET not in as_text(shown.as_dict())
    assert ACCOUNT not in as_text(shown.as_dict())


def test_neither_do_results_tags_meta_and_keys(shop: Shop) -> None:
    id = pay(
        shop,
        "succeeded",
        result={"said": f"paid to {ACCOUNT}", "session": {"cookie": "c-1"}},
        tags=[f"to-{ACCOUNT}"],
        meta={"note": SECRET, "api_key": "k-1"},
    )

    shown = api.shown(api.get_job(id))

    assert shown.result == {"said": "paid to •••", "session": {"cookie": "•••"}}
    assert (shown.tags, shown.meta) == (["to-•••"], {"note": "•••", "api_key": "•••"})


def test_programs_read_what_is_stored(shop: Shop) -> None:
    assert api.get_job(pay(shop)).payload["token"] == SECRET


def test_groups_of_errors_do_not_quote_it(shop: Shop) -> None:
    pay(shop, error=QUOTED)

    [group] = api.error_groups()

    assert group.message == "no •••"


def test_a_search_does_not_tell_secrets_letter_by_letter(shop: Shop) -> None:
    id = pay(shop, error=QUOTED)

    assert not api.list_jobs(JobFilter(states=(JobState.DEAD,), search="tok-4")).items
    assert [found.id for found in api.list_jobs(JobFilter(search="pay.out")).items] == [id]


def test_a_group_of_errors_confirms_no_guess_of_what_it_hides(shop: Shop) -> None:
    for token in ("plum", "fig-tree"):
        shop.dead(type="pay.out", payload={"token": token}, error={**QUOTED, "message": f"no {token}"})

    [group] = api.error_groups()
    guess = fingerprint_of({**QUOTED, "message": "no plum"})

    assert group.count == 2, "they differ in nothing that may be seen"
    assert group.fingerprint != guess
    assert not api.list_jobs(JobFilter(fingerprint=guess)).items
    assert len(api.list_jobs(JobFilter(fingerprint=group.fingerprint)).items) == 2


IN = {"name": "in", "nodes": [{"key": "pay", "type": "pay.out", "payload": {"account": ACCOUNT, "token": SECRET}}]}


@pytest.mark.parametrize(
    "node",
    [
        IN["nodes"][0],
        {"key": "part", "type": "", "workflow": IN},
        {"key": "parts", "type": "", "workflow": IN, "each": [1, 2]},
        {**IN["nodes"][0], "each": [1]},
    ],
    ids=["job", "sub-workflow", "each of a list by a sub-workflow", "each of a list"],
)
def test_the_result_of_a_run_tells_no_more_than_those_of_its_jobs(shop: Shop, node: dict[str, Any]) -> None:
    runs = Runs(shop.engine)
    run = runs.start(node)
    for leased in runs.lease():
        runs.end(leased, result={"said": f"paid to {ACCOUNT}", "account": ACCOUNT, "sum": 12})

    told = api.workflows.shown_document(run)
    assert ACCOUNT in as_text(api.workflows.document(run)["result"])
    assert ACCOUNT not in as_text(told)
    assert '{"said": "paid to •••", "account": "•••", "sum": 12}' in as_text(told["result"])


@pytest.mark.django_db
def test_who_reveals_a_job_is_on_record(shop: Shop) -> None:
    id = pay(shop)

    with audit.acting("ada", "dashboard"):
        revealed = api.reveal(id, reason="incident 212")

    [entry] = audit.list().items
    assert revealed.payload["token"] == SECRET
    assert (entry.who, entry.action, entry.target, entry.reason) == ("ada", "job.reveal", id, "incident 212")
    assert SECRET not in as_text(entry.as_dict())


@pytest.mark.django_db
def test_who_takes_definitions_away_with_their_secrets_is_on_record(shop: Shop) -> None:
    hidden, open_ = {"account": ACCOUNT, "token": SECRET}, {"amount": 1, "account": None, "token": None}
    for name, payload in (("pays", hidden), ("tips", hidden), ("counts", open_)):
        Schedule.objects.create(name=name, job_type="pay.out", cron="0 5 * * *", payload=payload)
        api.workflows.define({"name": name, "nodes": [{"key": "a", "type": "pay.out", "payload": payload}]})

    with audit.acting("ada", "command"):
        taken = [api.schedules.export(), api.workflows.export()]

    assert as_text(taken).count(SECRET) == 4, "or they could not be read back"
    entries = [(entry.who, entry.action, entry.target) for entry in audit.list().items if "export" in entry.action]
    assert sorted(entries) == [
        ("ada", f"{noun}.export", name) for noun in ("schedule", "workflow") for name in ("pays", "tips")
    ]


@pytest.mark.django_db
def test_the_audit_log_keeps_no_secrets(shop: Shop) -> None:
    audit.record("anything", after={"nested": [{"password": "hunter2"}]})

    assert audit.list().items[0].after == {"nested": [{"password": "•••"}]}


def test_the_words_that_hide_can_be_chosen(settings, shop: Shop) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDACT_KEYS": ["iban"]}

    assert api.shown_value("any", {"iban": "DE", "token": "t"}) == {"iban": "•••", "token": "t"}
