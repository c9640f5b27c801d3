"""Whatever is stored is shown as text: a marker stands in every field of every model and of everything in the store,
and no page makes an element or an attribute of it. Models and fields are found by walking, so a new one is tested too.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dashboard.panels import BY_SLUG
from jobs.core.autoscale import Decision, Sighting
from jobs.core.job import JobSpec
from jobs.core.pause import EVERYTHING, Scope
from jobs.engine import get_engine
from tests.dashboard.browsing import tags
from tests.dashboard.seeding import Shop

pytestmark = pytest.mark.django_db

MARK = "<i mark>\"' onmark=1 {{7*7}}{% now %}</script><!--"
"""An element, an attribute where a value is not quoted or escaped, a template, the end of a script."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def jobs(shop: Shop) -> list[str]:
    """A job in each state with markers in all that it holds, and what pools, workers, pauses and scalings say."""
    everything: dict[str, Any] = {
        "type": MARK,
        "tags": (MARK,),
        "meta": {MARK: MARK},
        "payload": {MARK: [MARK, {MARK: MARK}]},
        "schedule": MARK,
        "workflow_run": MARK,
        "node": MARK,
        "concurrency_key": MARK,
        "rate_key": MARK,
    }
    error = {"type": MARK, "message": MARK, "traceback": MARK}
    made = [shop.in_state(state, **everything) for state in ("ready", "scheduled", "cancelled")]
    made += [shop.in_state(state, error=error, **everything) for state in ("dead", "retry_wait")]
    made += [shop.succeeded(result={MARK: MARK}, **everything), shop.leased(worker=MARK, **everything)]
    engine = get_engine()
    shop.engine.jobs.enqueue(JobSpec(type="x", id=MARK), [b"{}"])
    current = [{"id": MARK, "type": MARK, "started_at": MARK}, {"id": made[-1], "type": MARK, "started_at": MARK}]
    shop.worker(host=MARK, hostname=MARK, state=MARK, version=MARK, current=current, running=2, pools={"default": 2})
    for scope in (Scope("pool", "default"), Scope("type", MARK), EVERYTHING):
        engine.pauses.pause(scope, by=MARK, reason=MARK)
    engine.workers.pause(MARK, by=MARK, reason=MARK)
    token = engine.scalings.take(MARK, 60_000)
    assert token is not None
    decision = Decision(slots=2, reason=MARK)
    engine.scalings.decided(token, "default", Sighting(slots=1, workers=1), decision, at_ms=_now(), dry_run=True)
    return made


@pytest.fixture
def rows() -> dict[str, Any]:
    """A row of each model with a marker in each field that can hold one. Not as forms would let it in: as it may be."""
    made: dict[type[models.Model], Any] = {}
    owner = User.objects.create_user(username=MARK[:150])
    waiting = [model for model in apps.get_app_config("jobs").get_models() if not model._meta.auto_created]
    while waiting:
        model = waiting.pop(0)
        parents = {field.related_model for field in model._meta.concrete_fields if field.is_relation}
        if parents & set(waiting):
            waiting.append(model)
            continue
        row = model(**{field.name: _marked(field, {User: owner, **made}) for field in model._meta.concrete_fields})
        [made[model]] = model._default_manager.bulk_create([row])
    return {model.__name__: row for model, row in made.items()}


def _marked(field: Any, made: dict[type[models.Model], Any]) -> Any:
    """What the field of a row holds: a marker where that can be, else what it has by itself, else something."""
    match field:
        case models.ForeignKey():
            return made.get(field.related_model)
        case models.JSONField():
            return {MARK: [MARK]}
        case models.CharField() | models.TextField() if not field.choices and field.name != "timezone":
            return MARK[: field.max_length]
        case _ if field.has_default() or field.null or field.primary_key:
            return field.get_default()
        case models.DateTimeField():
            return timezone.now()
        case _:
            return field.choices[0][0] if field.choices else 1


def test_no_page_makes_anything_of_what_is_stored(admin_client: Client, jobs: list[str], rows: dict[str, Any]) -> None:
    addresses = [reverse(f"dashboard:{slug}") for slug in BY_SLUG]
    addresses += [reverse("dashboard:fragment", args=[slug]) for slug in BY_SLUG]
    addresses += [reverse("dashboard:job", args=[job_id]) for job_id in jobs]
    addresses += [reverse("dashboard:audit_export") + "?format=jsonl", "/dashboard/snapshot/"]
    pages = [(address, {}) for address in addresses]
    pages += [
        (reverse(f"dashboard:{slug}"), {"name": name}) for slug in ("pools", "schedules") for name in ("default", MARK)
    ]
    pages += [(reverse(f"dashboard:{slug}"), _every_filter()) for slug in BY_SLUG]
    pages += [("/dashboard/job/", {"id": MARK}), ("/dashboard/find/", {"q": MARK})]

    taken = {}
    for address, query in pages:
        response = admin_client.get(address, query)
        if response.status_code >= 500 or (made := _made_of(response)):
            taken[address, tuple(query)] = response.status_code if response.status_code >= 500 else made

    assert taken == {}


def test_no_page_of_the_admin_does(admin_client: Client, jobs: list[str], rows: dict[str, Any]) -> None:
    taken = {}
    for name, row in rows.items():
        model = type(row)
        for view, arguments in (("changelist", []), ("change", [row.pk])):
            try:
                address = reverse(f"admin:jobs_{name.lower()}_{view}", args=arguments)
            except Exception:  # it has no page of its own
                continue
            response = admin_client.get(address)
            if response.status_code >= 500 or (made := _made_of(response)):
                taken[address] = response.status_code if response.status_code >= 500 else made
        assert model._default_manager.count() >= 1

    assert taken == {}


def test_what_is_shown_is_the_text_itself(admin_client: Client, jobs: list[str], rows: dict[str, Any]) -> None:
    from tests.dashboard.browsing import text

    for address in (f"/dashboard/jobs/{jobs[3]}/", "/dashboard/workers/", "/dashboard/audit/", "/dashboard/pools/"):
        assert MARK[:20] in text(admin_client.get(address)), address


def _every_filter() -> dict[str, str]:
    words = ("pool", "type", "tag", "search", "since", "state", "cursor", "who", "action", "target", "source", "limit")
    return dict.fromkeys((*words, "range", "page", "id", "group", "name", "older", "next"), MARK)


def _made_of(response: Any) -> list[Any]:
    """Elements and attributes that a marker became."""
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return []
    return [(tag, list(found)) for tag, found in tags(response) if {"mark", "onmark"} & set(found)]


def _now() -> int:
    return int(time.time() * 1000)


def test_the_parser_of_these_tests_would_see_one() -> None:
    class Page:
        content = json.dumps(f"<p title={MARK}>{MARK}").encode()

        headers = {"Content-Type": "text/html"}

    assert _made_of(Page())
