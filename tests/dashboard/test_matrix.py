"""Who may do what, found by walking: every address of the dashboard, every role, every method, every action.

Nothing is listed that could be forgotten. An address without a declared permission fails; whoever lacks a permission
tries everything by hand-made requests, and not one byte of the store or the database may change.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.actions import ACTIONS
from dashboard.models import SavedView
from dashboard.panels import BY_SLUG
from dashboard.permissions import ENQUEUE, VIEW
from jobs import api
from jobs.engine import Engine, get_engine
from jobs.models import Pool, Schedule
from jobs.services.bulk import BulkWorker
from tests.dashboard.asking import Program
from tests.dashboard.browsing import TOKEN, tags
from tests.dashboard.conftest import ROLES, Login
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

pytestmark = pytest.mark.django_db

OPEN = {"livez", "readyz", "accounts/login/", "accounts/logout/", "favicon.ico", ""}
"""What may be asked for without a login: it shows nothing and changes nothing but the asker's own session."""

API = "api/v1/"

LOGGED_IN = {f"{API}openapi.json", API, API.rstrip("/"), f"{API}<rest:rest>"}
"""What takes a login and no permission: it tells what the API is, or that there is nothing."""

OWN_CHOICES = {"dashboard/theme/", "dashboard/timezone/"}
"""What changes nothing but the asker's own cookies."""

OWN_ROWS = {"dashboard/views/save/", "dashboard/views/forget/"}
"""What changes nothing but the asker's own saved views."""

LOOKS = {"dashboard/reveal/"}
"""What shows, and writes down that it did."""

FOLDED = (b":live:", b":control", b":seconds", b":minutes", b":counters", b":clock")
"""Keys of figures, which readers carry from one to the other."""

METHODS = ("get", "post", "put", "patch", "delete")


def addresses() -> Iterator[tuple[str, URLPattern]]:
    """Route and pattern of every address that is not the admin's or the samples'."""

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, URLPattern]]:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route, pattern

    return walk(get_resolver("dashboard.urls").url_patterns, "")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hundreds of refusals are no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Things:
    """One of each thing that somebody could act on, by the words under which requests name it."""

    def __init__(self, shop: Shop) -> None:
        shop.worker(host="h", pools={"default": 2})
        self.jobs = {state: shop.in_state(state) for state in ("dead", "retry_wait", "scheduled", "ready", "succeeded")}
        ana = User.objects.create_user("ana")
        SavedView.objects.create(owner=ana, page="jobs", name="shared", query="state=dead", is_shared=True)
        Schedule.objects.create(name="nightly", job_type="report.build", payload={"year": 2024}, cron="0 5 * * *")
        self._by_noun = {"pool": ["default"], "schedule": ["nightly"], "worker": ["h/1", "h"], "scheduler": [""]}
        self._by_noun |= {"run": [_run(shop)], "bulk": [_bulk_operation(shop)], "mute": ["type:email.send"]}
        api.mutes.mute("type", "email.send", span=3600, reason="known")

    def ids(self, address: str) -> list[str]:
        """What a request to this address may be about: the things of its noun, else a job and something by its name."""
        _, _, rest = address.partition("/actions/")
        verb = rest.partition("/")[2].strip("/")
        state = {"retry": "retry_wait", "run-now": "scheduled", "cancel": "ready", "move": "ready"}.get(verb, "dead")
        state = "ready" if verb == "prioritize" else state
        if address.startswith(f"/{API}"):
            return [""]  # it stands in the address
        return self._by_noun.get(rest.partition("/")[0], [self.jobs[state]] if rest else [self.jobs["dead"], "default"])

    def fields(self, id: str) -> dict[str, Any]:
        """A request that would do something with almost any form: what it asks for, under each of the names in use."""
        numbers = {
            "slots": "3",
            "max_running": "3",
            "max_pending": "3",
            "min_slots": "1",
            "max_slots": "5",
            "rate": "5",
        }
        waits = {"target_wait_seconds": "5", "tolerance_seconds": "1", "cooldown_seconds": "30", "mode": "on"}
        chosen = {"state": "dead", "until": "2100-01-01T00:00:00+00:00", "expected": "1", "typed": "1", "span": ""}
        chosen |= {"priority": "7", "to": "default", "what": "waiting", "start": "1d", "number": "1", "shared": "on"}
        names = dict.fromkeys(("id", "name", "target", "job", "run", "node"), id)
        return names | numbers | waits | chosen | {"payload": "{}", "reason": "x", "type": "email.send", "pool": ""}


def _run(shop: Shop) -> str:
    """A run that waits for somebody's yes, in a node of its own name: requests name both by one word."""
    return Runs(shop.engine).start({"key": "work"}, {"key": "default", "type": "", "approval": "Go?"}, id="default")


def _bulk_operation(shop: Shop) -> str:
    """One that waits to be confirmed."""
    operation = api.bulk.start("resubmit", api.JobFilter(), id="waits")
    BulkWorker(shop.engine).step()
    assert api.bulk.get(operation.id).state == "waiting"
    return operation.id


def concrete(route: str, things: Things) -> list[str]:
    """The addresses that a route stands for, its parts replaced by what there is."""
    found = [f"/{route}"]
    verb = route.rpartition("/")[2]
    parts = {
        "jobs/<thing:id>": [f"jobs/{id}" for id in things.ids(f"/actions/job/{verb}/")],
        "workers/<thing:id>": ["workers/h/1", "workers/h"],
        "schedules/<thing:name>": ["schedules/nightly"],
        "<rest:rest>": ["nothing"],
        "<slug:slug>": [*BY_SLUG, "job"],
        "<slug:noun>/<slug:verb>": [f"{action.noun}/{action.verb}" for action in ACTIONS],
        "<slug:verb>": sorted({action.verb for action in ACTIONS}),
        "<path:job_id>": [things.jobs["dead"]],
    }
    for part, values in parts.items():
        found = [address.replace(part, value) for address in found for value in (values if part in address else [""])]
    return [address if "<" not in address else _guess(address) for address in dict.fromkeys(found)]


def _guess(address: str) -> str:
    """Of a part that nobody has described: some word, so that the address is tried at all."""
    while "<" in address:
        before, _, rest = address.partition("<")
        kind, _, after = rest.partition(">")
        address = before + ("1" if kind.startswith("int:") else "default") + after
    return address


def contents(engine: Engine) -> dict[str, Any]:
    """All that is stored: the keys of the store and the rows of our models, as bytes and values; of saved views only
    those of somebody else than the asker: ``OWN_ROWS``.
    """
    client = engine.store.client
    keys = sorted(client.scan_iter(match=f"{engine.store.namespace}:*", count=5_000))
    stored = {key: client.dump(key) for key in keys if not any(part in key for part in FOLDED)}
    rows = {model.__name__: list(model._default_manager.order_by("pk").values()) for model in _models()}
    return {"store": stored, "rows": rows}


def _models() -> list[Any]:
    models = [*apps.get_app_config("jobs").get_models(), *apps.get_app_config("dashboard").get_models()]
    return [model for model in models if not model._meta.auto_created]


def ask(client: Client, method: str, address: str, fields: dict[str, Any], *, machine: bool = False) -> Any:
    """By hand: with the form's token, and of the kind that the page's script makes where ``machine``."""
    client.cookies["csrftoken"] = TOKEN
    if address.startswith(f"/{API}"):
        return _ask_api(client, method, address, fields)
    headers = {"accept": "application/json" if machine else "text/html", "x-csrftoken": TOKEN}
    if method == "get":
        return client.get(address, fields, headers=headers)
    body = {"csrfmiddlewaretoken": TOKEN, **fields}
    if method == "post":
        return client.post(address, body, headers=headers)
    return client.generic(method.upper(), address, json.dumps(body), content_type="application/json", headers=headers)


ORDERS = {
    "jobs": {"type": "email.send", "payload": {"to": "a@example.com", "subject": "x"}},
    "workflows": {"workflow": {"name": "a", "nodes": [{"key": "a", "type": "x", "approval": "Go?"}]}},
    "scale": {"slots": 3},
    "limit": {"max_running": 3},
    "signal": {"name": "x"},
    **{verb: {"node": "default"} for verb in ("skip", "approve", "reject")},
}
"""Last part of an address → a body that it takes; others need none."""


def _ask_api(client: Client, method: str, address: str, fields: dict[str, Any]) -> Any:
    """With the session, and what shows that a page of ours sent it: as a program with a token, but for the token."""
    body = json.dumps(ORDERS.get(address.rpartition("/")[2], {}))
    headers = {"x-csrftoken": TOKEN}
    return client.generic(method.upper(), address, body, content_type="application/json", headers=headers)


@pytest.mark.parametrize(("route", "pattern"), list(addresses()), ids=[route or "home" for route, _ in addresses()])
def test_every_address_declares_its_permission(route: str, pattern: URLPattern) -> None:
    needed = getattr(pattern.callback, "required_permissions", None)
    if route in OPEN | LOGGED_IN:
        return
    if route.startswith(API) and hasattr(pattern.callback, "operations"):
        for method, operation in pattern.callback.operations.items():
            [needs] = operation.auth_callbacks
            assert needs.permissions == (ENQUEUE,) or VIEW in needs.permissions, (method, route)
        return
    assert needed is not None, f"{route}: decorate the view with requires(…)"
    assert route in OWN_CHOICES or VIEW in needed, f"{route}: what shows or does something needs {VIEW} at least"


def try_everything(client: Client, things: Things, *, but: frozenset[str] = frozenset()) -> dict[str, set[int]]:
    """Every method on every address, about each thing that it could be about; the statuses of the answers."""
    answered: dict[str, set[int]] = {}
    for route, _ in addresses():
        if route in but | {"accounts/logout/"}:
            continue
        for number, address in enumerate(concrete(route, things)):
            for method in METHODS if number == 0 else METHODS[:2]:
                for id in things.ids(address) if method == "post" else things.ids(address)[:1]:
                    response = ask(client, method, address, things.fields(id), machine=method == "post")
                    answered.setdefault(f"{method} {address}", set()).add(response.status_code)
    return answered


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    """Keys of the store and names of models whose content is another one."""
    return [
        name
        for part in ("store", "rows")
        for name in before[part].keys() | after[part].keys()
        if before[part].get(name) != after[part].get(name)
    ]


@pytest.mark.parametrize("role", ["anonymous", "stranger", "viewer"])
def test_who_may_not_act_changes_nothing_by_any_request(role: str, login: Login, shop: Shop) -> None:
    things, client = Things(shop), login(role)
    before = contents(get_engine())

    answered = try_everything(client, things)

    if role == "viewer":
        SavedView.objects.filter(owner__username=role, is_shared=False).delete()  # what OWN_ROWS may have made
    assert changed(before, contents(get_engine())) == []
    assert not [asked for asked, codes in answered.items() if max(codes) >= 500]
    allowed = {asked for asked, codes in answered.items() if asked.startswith("post") and min(codes) < 300}
    assert {asked.partition(" /")[2] for asked in allowed} <= OWN_CHOICES | OPEN


def test_who_is_in_no_group_of_a_pool_changes_nothing_in_it_by_any_request(
    user: Callable[[str], User], login: Login, shop: Shop
) -> None:
    """Whatever else they may do: each pool that something is in, or would come to, is kept for others."""
    others = Group.objects.create(name="others")
    for name in {"default", *(type.pool for type in api.job_types().values())}:
        pool, _ = Pool.objects.get_or_create(name=name)
        pool.operators.add(others)
    user("administrator").user_permissions.add(Permission.objects.get(codename="enqueue"))
    things, client = Things(shop), login("administrator")
    before = contents(get_engine())

    answered = try_everything(client, things, but=frozenset(OWN_ROWS | LOOKS))

    assert changed(before, contents(get_engine())) == []
    refused = [asked for asked, codes in answered.items() if asked.startswith("post") and 403 in codes]
    assert len(refused) >= len(ACTIONS)


def test_a_token_that_may_only_look_changes_nothing_whoever_it_stands_for(root: Program, shop: Shop) -> None:
    things, looking = Things(shop), Program(api.tokens.create("root", scopes=["view"])[0])
    looking.get("pools")  # from now on it is known to be in use
    before = contents(get_engine())

    answered: dict[str, int] = {}
    for route, _ in addresses():
        for address in concrete(route, things) if route.startswith(API) else ():
            body = ORDERS.get(address.rpartition("/")[2], {})
            for method in METHODS[1:]:
                answered[f"{method} {address}"] = looking.ask(method, address.removeprefix(f"/{API}"), body).status

    assert contents(get_engine()) == before
    assert set(answered.values()) <= {403, 404, 405}
    assert sum(status == 403 for status in answered.values()) > 20


@pytest.mark.parametrize("role", ["anonymous", "stranger"])
def test_who_may_not_look_is_shown_nothing(role: str, login: Login, shop: Shop) -> None:
    things, client = Things(shop), login(role)
    shown = []
    for route, _ in addresses():
        if route in OPEN | OWN_CHOICES | LOGGED_IN:
            continue
        for address in concrete(route, things):
            response = ask(client, "get", address, things.fields(things.jobs["dead"]))
            if response.status_code not in (302, 401, 403, 405) or things.jobs["dead"] in response.content.decode():
                shown.append((address, response.status_code))
            if response.status_code == 302:
                assert response["Location"].startswith("/accounts/login/"), address
    assert shown == []


@pytest.mark.parametrize("role", ["viewer", "operator", "administrator"])
def test_a_page_offers_just_what_its_reader_may_do(role: str, login: Login, shop: Shop) -> None:
    things, client = Things(shop), login(role)
    allowed = {action.url for action in ACTIONS if action.permission in {f"jobs.{name}" for name in ROLES[role]}}
    offered: set[str] = set()
    for route, pattern in addresses():
        if pattern.name in BY_SLUG or pattern.name == "job":
            for address in concrete(route, things):
                offered |= _offers(ask(client, "get", address, {}))
    offered |= _offers(client.get("/dashboard/pools/?name=default"))
    offered |= _offers(client.get("/dashboard/schedules/?name=nightly"))
    for job_id in things.jobs.values():
        offered |= _offers(client.get(f"/dashboard/jobs/{job_id}/"))

    assert offered <= allowed
    if role != "viewer":
        assert offered


def _offers(response: Any) -> set[str]:
    """Addresses of actions that forms, buttons and links of the page lead to."""
    named = (
        attributes.get(name) or "" for _, attributes in tags(response) for name in ("href", "action", "formaction")
    )
    return {address.partition("?")[0] for address in named if address.startswith("/dashboard/actions/")}


@pytest.mark.parametrize("role", sorted({*ROLES, "anonymous"}))
def test_an_action_obeys_only_those_with_its_permission(role: str, login: Login, shop: Shop) -> None:
    """It asks or refuses; whether it then does the right thing is for the tests of the action."""
    things, client = Things(shop), login(role)
    held = {f"jobs.{name}" for name in ROLES.get(role, ())}
    refused = {"anonymous": 302}.get(role, 403)
    for action in ACTIONS:
        response = ask(client, "get", action.url, {"id": things.ids(action.url)[0]})

        assert (response.status_code != refused) == (held >= {VIEW, action.permission}), action.slug


def test_no_action_happens_by_get(login: Login, shop: Shop) -> None:
    things, client = Things(shop), login("administrator")
    before = contents(get_engine())
    for action in ACTIONS:
        for id in things.ids(action.url):
            ask(client, "get", action.url, things.fields(id))

    after = contents(get_engine())
    assert after == before


def test_no_action_happens_without_the_token_of_the_form(login: Login, shop: Shop) -> None:
    things, client = Things(shop), login("administrator")
    before = contents(get_engine())
    answers = set()
    for route, pattern in addresses():
        if route in OPEN:
            continue
        for address in concrete(route, things):
            response = client.post(address, things.fields(things.jobs["dead"]))
            answers.add(response.status_code)
            assert response.status_code in (403, 405), (pattern.name, address)

    assert contents(get_engine()) == before
    assert 403 in answers
