"""Every action there is, done in a browser: its question answered, its button pressed, and found in the audit log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.actions import ACTIONS
from dashboard.actions.base import Action
from jobs import api, job
from jobs.core.states import JobState
from jobs.models import Schedule
from jobs.registry import registry
from jobs.services.bulk import BulkWorker
from tests.browser.conftest import Site
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

pytestmark = pytest.mark.thorough

ANSWERS = {
    "priority": "7",
    "to": "elsewhere",
    "slots": "3",
    "max_running": "5",
    "typed": "default",
    "argument-amount": "4",
    "start": "1d",
    "payload": '{"amount": 4}',
    "reason": "incident 212",
}
"""Field of a question → what is answered; others are left as they stand there."""

STATES = {"retry": "retry_wait", "run-now": "scheduled", "cancel": "ready", "move": "ready", "prioritize": "ready"}
"""Verb → the state of a job that it is for; all others are for dead ones."""


@pytest.fixture(autouse=True)
def types() -> Iterator[None]:
    def charge(amount: int) -> None: ...

    with registry.restored():
        job("shop.charge")(charge)
        yield


class Stage:
    """Makes what an action is done to, as it must be before it."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.runs = shop, Runs(shop.engine)

    def set_for(self, action: Action) -> str:
        """The query string by which a link names it."""
        return str(getattr(self, f"_{action.noun}")(action.verb))

    def _job(self, verb: str) -> str:
        if verb == "new":
            return "type=shop.charge"
        self.shop.ready(pool="elsewhere")
        return f"id={self.shop.in_state(STATES.get(verb, 'dead'), type='shop.charge', payload={'amount': 3})}"

    def _matching(self, verb: str) -> str:
        state = STATES.get(verb, "dead")
        self.shop.in_state(state)
        self.shop.ready(pool="elsewhere")
        return f"state={state}&pool=default"

    def _bulk(self, verb: str) -> str:
        self.shop.dead()
        operation = api.bulk.start("resubmit", api.JobFilter(pool="default"), confirmed=10 if verb == "undo" else 0)
        BulkWorker(self.shop.engine).tick()
        return f"id={operation.id}"

    def _mute(self, verb: str) -> str:
        if verb == "end":
            api.mutes.mute("type", "email.send", span=3600, reason="known")
        return "id=type:email.send"

    def _pool(self, verb: str) -> str:
        self.shop.ready()
        if verb == "resume":
            api.pools.pause("default")
        return "id=default"

    def _scheduler(self, verb: str) -> str:
        if verb == "resume":
            api.scheduler.pause()
        return ""

    def _worker(self, verb: str) -> str:
        self.shop.worker(host="h")
        if verb == "resume":
            api.workers.pause("h")
        return "id=h"

    def _schedule(self, verb: str) -> str:
        Schedule.objects.update_or_create(
            name="hourly", defaults={"job_type": "shop.charge", "payload": {"amount": 3}, "cron": "0 * * * *"}
        )
        if verb == "resume":
            api.schedules.pause("hourly", by="ana")
        return "id=hourly"

    def _run(self, verb: str) -> str:
        waiting = ({"key": "ask", "type": "", "approval": "Go?"}, {"key": "paid", "type": "", "signal": "paid"})
        run = self.runs.start({"key": "work"}, *waiting)
        if verb == "retry":
            self.runs.run_all({"work": JobState.DEAD})
        if verb == "resume":
            api.workflows.pause(run, by="ana")
        node = {"skip": "work", "approve": "ask", "reject": "ask"}.get(verb, "")
        return f"id={run}&node={node}"

    def _workflow(self, _: str) -> str:
        api.workflows.define({"name": "nightly", "nodes": [{"key": "go", "signal": "go"}]})
        return "id=nightly"


def answer(field: Locator) -> None:
    given = ANSWERS.get(field.get_attribute("name") or "")
    if given is None:
        return
    if field.evaluate("each => each.localName") == "select":
        field.select_option(given)
    else:
        field.fill(given)


def carry_out(page: Page) -> None:
    """Answers the question, and the one that its answer leads to."""
    question = page.locator("form.confirm")
    while True:
        for field in question.locator(":is(input, select, textarea):visible").all():
            answer(field)
        is_last = question.get_attribute("method") == "post"
        with page.expect_navigation():
            question.locator("button").click()
        if is_last:
            return


@pytest.mark.parametrize("noun", sorted({action.noun for action in ACTIONS}))
def test_each_is_asked_about_done_and_written_down(noun: str, admin: Page, site: Site, shop: Shop) -> None:
    stage = Stage(shop)
    for action in (each for each in ACTIONS if each.noun == noun):
        query = stage.set_for(action)
        before = {entry.id for entry in api.audit.list().items}
        admin.goto(f"{site.url}{action.url}?{query}")
        carry_out(admin)

        expect(admin.locator("#messages .is-succeeded"), action.slug).to_be_visible()
        found = [entry for entry in api.audit.list().items if entry.id not in before]
        assert [(entry.who, entry.source, entry.reason) for entry in found] == [
            ("root", "dashboard", ANSWERS["reason"])
        ], action.slug
