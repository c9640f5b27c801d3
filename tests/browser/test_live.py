"""What an open page does while things happen: it shows them, and leaves the reader's hand alone."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from jobs.services.bulk import BulkWorker
from tests.browser.conftest import Complaints, Site, Visit, settle
from tests.dashboard.seeding import Shop
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually


def never_reloaded(page: Page) -> bool:
    return bool(page.evaluate("window.sameDocument === true"))


def mark(page: Page) -> None:
    page.evaluate("window.sameDocument = true")


def test_figures_change_without_a_reload(visit: Visit, shop: Shop) -> None:
    page = visit("viewer")
    settle(page)
    mark(page)

    shop.many(1_337, pool="reports")

    expect(page.locator('[data-figure="states.ready"]')).to_have_text("1,337")
    expect(page.locator("h1")).to_have_text("One thing needs you")
    expect(page.get_by_role("row", name="reports")).to_contain_text("no worker")
    expect(page).to_have_title("1 needs you: Overview, Mainspring")
    assert never_reloaded(page)


def test_a_figure_that_is_rounded_is_exact_in_its_title_as_it_changes(
    visit: Visit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.figures.count", lambda number: "many" if (number or 0) > 2 else f"{number}")
    page = visit("viewer")
    settle(page)
    figure = page.locator('[data-figure="states.ready"]')

    first, *_ = shop.many(3)
    expect(figure).to_have_attribute("title", "3")
    expect(figure).to_have_text("many")
    second, *_ = shop.many(1)
    expect(figure).to_have_attribute("title", "4")

    for job_id in (first, second):
        shop.engine.jobs.cancel(job_id)
    expect(figure).to_have_text("2")
    expect(figure).not_to_have_attribute("title", re.compile(""))


@pytest.mark.parametrize("lost", ["main.js", "live.js", "neighbours.js"])
def test_a_script_that_could_not_be_fetched_is_asked_for_again(
    visit: Visit, shop: Shop, complaints: Complaints, lost: str
) -> None:
    shop.dead()
    page = visit("viewer", "/dashboard/jobs/")
    settle(page)
    asked: list[str] = []

    def refuse_once(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.abort()
        else:
            route.continue_()

    page.route(f"**/{lost}", refuse_once)
    page.reload()

    eventually(lambda: page.evaluate("true") and len(asked) > 1)
    settle(page)
    complaints.forgive("ERR_FAILED")


def test_a_script_that_is_wrong_is_not_asked_for_again(visit: Visit, complaints: Complaints) -> None:
    page = visit("viewer")
    page.route("**/live.js", lambda route: route.fulfill(content_type="text/javascript", body="export class Dead {}"))
    page.reload()

    eventually(lambda: page.evaluate("true") and complaints.found)
    complaints.forgive("does not provide an export")


def test_scripts_that_come_late_make_no_wrong_clock_of_it(visit: Visit) -> None:
    page = visit("viewer", "/livez")
    page.route_web_socket("**", lambda line: None)  # whose first frame would tell the time anew
    page.route("**/start.js", lambda route: (page.wait_for_timeout(3_000), route.continue_()))
    page.goto(page.url.replace("/livez", "/dashboard/"), wait_until="commit")

    expect(page.locator("body")).to_have_class(re.compile("has-script"))
    expect(page.locator(".rail [data-skew]")).to_be_hidden()


def test_a_button_that_has_the_focus_keeps_it_however_often_the_page_is_fetched(visit: Visit, shop: Shop) -> None:
    job_id = shop.ready()
    page = visit("operator", f"/dashboard/jobs/{job_id}/")
    settle(page)
    page.get_by_role("button", name="Cancel").focus()
    page.evaluate("window.focused = document.activeElement")

    for number in (1, 2):
        with page.expect_response(re.compile("/fragments/")):
            shop.many(number, pool="reports")
    settle(page)

    assert page.evaluate("document.activeElement === window.focused")


def test_a_job_is_seen_failing_dying_resubmitted_and_succeeding(visit: Visit, shop: Shop) -> None:
    job_id = shop.ready(max_retries=1)
    page = visit("operator", f"/dashboard/jobs/{job_id}/")
    settle(page)
    mark(page)
    state = page.locator("h1 + .tag")
    expect(state).to_have_text("ready")

    shop.fail(job_id, "retry", delay_ms=3_600_000)
    expect(state).to_have_text("retry wait")
    expect(page.locator(".say")).to_contain_text("Attempt 1 failed. Declined: insufficient funds.")

    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#messages")).to_contain_text("The job was sent to run again.")
    expect(state).to_have_text("ready")

    shop.fail(job_id, "dead")
    expect(state).to_have_text("dead")
    expect(page.locator("#favicon")).to_have_attribute("href", "/static/dashboard/favicon-dead.svg")

    page.get_by_role("button", name="Resubmit").click()
    expect(state).to_have_text("ready")
    expect(page.locator("#main")).to_be_focused()  # the button is gone; the next Tab begins at the page

    shop.succeed(job_id, {"sent": True})
    expect(state).to_have_text("succeeded")
    expect(page.get_by_role("region", name="Result")).to_contain_text('"sent": true')
    assert never_reloaded(page)


def test_an_open_traceback_stays_open_and_the_reader_where_he_is(visit: Visit, shop: Shop) -> None:
    job_id = shop.ready()
    shop.fail(job_id, "retry")
    shop.fail(job_id, "retry", delay_ms=3_600_000, error={"type": "Other", "message": "else", "traceback": "T" * 50})
    page = visit("operator", f"/dashboard/jobs/{job_id}/")
    settle(page)
    first = page.locator("details", has_text="Attempt 1")
    first.locator("summary").click()
    newest = page.locator("details", has_text="Attempt 2")
    newest.get_by_label("Wrap lines").check()
    page.evaluate("scrollTo(0, 300)")
    before = page.evaluate("scrollY")

    shop.engine.jobs.run_now(job_id)
    expect(page.locator("h1 + .tag")).to_have_text("ready")

    expect(first).to_have_attribute("open", "")
    expect(newest.get_by_label("Wrap lines")).to_be_checked()
    expect(newest.locator(".traceback pre").first).to_have_css("white-space", "pre-wrap")
    assert page.evaluate("scrollY") == before


class TestList:
    def test_rows_change_in_place_and_newer_ones_wait_to_be_asked_for(self, visit: Visit, shop: Shop) -> None:
        first, second = shop.dead(), shop.dead()
        page = visit("operator", "/dashboard/jobs/")
        settle(page)
        order = page.locator("#rows > tr").evaluate_all("rows => rows.map(row => row.dataset.key)")

        shop.engine.jobs.resubmit(first)
        shop.many(3)

        expect(page.locator(f'[data-key="{first}"] .state')).to_have_text("ready")
        expect(page.locator("[data-newer]")).to_have_text("3 new. Show")
        assert page.locator("#rows > tr").evaluate_all("rows => rows.map(row => row.dataset.key)") == order
        page.locator("[data-newer]").click()
        expect(page.locator("#rows > tr")).to_have_count(5)
        assert second in order

    def test_a_row_that_no_longer_matches_stays_struck_until_the_next_load(self, visit: Visit, shop: Shop) -> None:
        job_id = shop.dead()
        page = visit("operator", "/dashboard/dead/")
        settle(page)

        shop.engine.jobs.resubmit(job_id)

        expect(page.locator(f'[data-key="{job_id}"]')).to_have_class("is-row is-over")

    def test_the_button_for_all_names_their_number_as_it_changes(self, visit: Visit, shop: Shop) -> None:
        shop.dead()
        page = visit("operator", "/dashboard/dead/")
        settle(page)
        button = page.get_by_role("button", name="Resubmit all 1", exact=True)
        button.focus()

        shop.dead()

        expect(page.locator("h1")).to_have_text("2 dead jobs")
        button = page.get_by_role("button", name="Resubmit all 2", exact=True)
        expect(button).to_be_focused()
        button.click()
        expect(page.locator("h1")).to_have_text("Resubmit 2 jobs?")

    def test_focus_selection_and_half_typed_filters_survive(self, visit: Visit, shop: Shop) -> None:
        job_id, other = shop.dead(), shop.dead()
        page = visit("operator", "/dashboard/jobs/")
        settle(page)
        page.locator(f'[data-key="{other}"] input').check()
        page.locator("input[name=type]").press_sequentially("email.se")

        shop.engine.jobs.resubmit(job_id)

        expect(page.locator(f'[data-key="{job_id}"] .state')).to_have_text("ready")
        expect(page.locator("input[name=type]")).to_have_value("email.se")
        expect(page.locator("input[name=type]")).to_be_focused()
        expect(page.locator(f'[data-key="{other}"] input')).to_be_checked()
        expect(page.locator("[data-selected]")).to_have_text("1 selected")

    def test_selected_jobs_are_resubmitted_together(self, visit: Visit, shop: Shop) -> None:
        dead = [shop.dead() for _ in range(3)]
        page = visit("operator", "/dashboard/dead/")
        settle(page)
        page.get_by_label("Select this page").check()

        page.locator(".bulk").get_by_role("button", name="Resubmit", exact=True).click()

        expect(page.locator("#messages")).to_contain_text("3 jobs resubmitted.")
        expect(page.locator("#rows .state", has_text="ready")).to_have_count(3)
        assert {shop.state(job_id) for job_id in dead} == {"ready"}

    def test_all_that_match_are_resubmitted_with_the_exact_number_said_before(
        self, visit: Visit, site: Site, shop: Shop
    ) -> None:
        for _ in range(4):
            shop.dead(pool="billing")
        other = shop.dead()
        page = visit("operator", "/dashboard/dead/?pool=billing")

        page.get_by_role("button", name="Resubmit all 4").click()
        expect(page.locator("h1")).to_have_text("Resubmit 4 jobs?")
        page.get_by_role("button", name="Resubmit 4 jobs").click()

        page.wait_for_url("**/bulk/?id=*")
        worker = BulkWorker(shop.engine)
        worker.step()
        worker.step()
        expect(page.get_by_text("4 of 4 jobs resubmitted")).to_be_visible()
        page.goto(site.url + "/dashboard/dead/?pool=billing")
        expect(page.locator("main")).to_contain_text("No job matches 2 filters.")
        assert shop.state(other) == "dead"


class TestLine:
    def test_it_says_that_it_is_offline_and_then_is_live_again(
        self, visit: Visit, site: Site, shop: Shop, complaints: Complaints
    ) -> None:
        page = visit("viewer")
        settle(page)

        site.stop()
        expect(page.locator("#live")).to_contain_text("Offline")
        expect(page.locator("#live")).to_contain_text(re.compile(r"try \d+ in \d+ s"))
        expect(page.locator("#announce")).to_contain_text("This server has not answered since")
        expect(page.locator("#cut-off")).to_contain_text("This server has not answered since")
        assert "is-stale" in str(page.locator("body").get_attribute("class"))
        site.start()

        page.get_by_role("button", name="Now").click(timeout=3_000) if page.get_by_role(
            "button", name="Now"
        ).is_visible() else None
        settle(page)
        shop.many(5)
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("5")
        expect(page.locator("#cut-off")).to_be_hidden()
        expect(page.locator("#announce")).to_have_text("One thing needs you.")
        complaints.forgive("ERR_CONNECTION_REFUSED")

    def test_where_sockets_are_blocked_it_asks_instead(self, visit: Visit, shop: Shop) -> None:
        page = visit("viewer")
        settle(page)

        def block(route: WebSocketRoute) -> None:
            route.close(code=1011)

        page.route_web_socket("**/ws/dashboard/", block)
        page.reload()
        shop.many(5)

        expect(page.locator("#live")).to_contain_text("Every 5 s")
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("5")

    def test_what_was_lost_on_the_way_is_fetched_whole(self, visit: Visit, shop: Shop) -> None:
        lost: list[str] = []

        def lose_one(line: WebSocketRoute) -> None:
            def pass_on(frame: str | bytes) -> None:
                told = json.loads(frame)
                if told["type"] == "changes" and "dead.loud" in told["figures"] and not lost:
                    lost.append(str(frame))
                else:
                    line.send(frame)

            line.connect_to_server().on_message(pass_on)

        page = visit("viewer", "/livez")
        page.route_web_socket("**/ws/dashboard/", lose_one)
        page.goto(page.url.replace("/livez", "/dashboard/"))
        settle(page)
        badge = page.locator('.rail [data-when="dead.loud"]')
        shop.dead()
        eventually(lambda: page.evaluate("true") and lost)
        expect(badge).to_be_hidden()

        shop.many(5)  # the next frame builds on the one that was lost

        expect(badge).to_be_visible()
        expect(badge.locator("b")).to_have_text("1")

    def test_a_line_that_never_opens_is_tried_again(self, visit: Visit, shop: Shop) -> None:
        page = visit("viewer", "/livez")
        page.clock.install()
        page.add_init_script("""
            const Real = WebSocket;
            const silent = { readyState: 0, close() {} };
            window.WebSocket = function (...where) {
              window.WebSocket = Real;
              return silent; // as where a server takes the connection and says nothing
            };
        """)
        page.goto(page.url.replace("/livez", "/dashboard/"))
        expect(page.locator("#live")).not_to_contain_text("Live")

        page.clock.fast_forward(20_000)

        settle(page)

    def test_paused_it_shows_nothing_new_until_it_goes_on(self, visit: Visit, shop: Shop) -> None:
        page = visit("viewer")
        settle(page)
        page.evaluate("document.getElementById('panel').dataset.refresh = '1'")
        shop.many(1)
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("1")
        page.get_by_role("button", name="Hold live updates").click()  # while the panel is about to be fetched anew
        line = page.locator("#live")
        expect(line).to_contain_text(re.compile(r"On hold since \d\d:\d\d:\d\d · \d+ changes?"))

        shop.many(5)
        expect(line).to_contain_text(re.compile(r"· [1-9]\d* changes"))
        page.wait_for_timeout(1_200)
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("1")
        expect(line).to_contain_text(re.compile(r"· [1-9]\d* changes"))

        page.get_by_role("button", name="Go on").click()
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("6")

    def test_what_was_on_its_way_when_it_was_paused_is_not_shown(self, visit: Visit, shop: Shop) -> None:
        page = visit("viewer")
        settle(page)
        under_way: list[Route] = []
        page.route("**/fragments/**", lambda route: under_way.append(route))
        page.evaluate("document.getElementById('panel').dataset.refresh = '0.1'")
        shop.many(1)
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("1")
        eventually(lambda: page.evaluate("true") and under_way)
        page.get_by_role("button", name="Hold live updates").click()
        shop.many(5)
        expect(page.locator("#live")).to_contain_text(re.compile(r"· [1-9]\d* changes"))

        with page.expect_response("**/fragments/**"):
            under_way[0].continue_()
        page.wait_for_timeout(300)

        expect(page.locator('[data-figure="states.ready"]')).to_have_text("1")

    def test_a_tab_that_is_hidden_before_its_socket_is_open_leaves_neither_error_nor_socket(
        self, visit: Visit, complaints: Complaints
    ) -> None:
        page = visit("viewer")
        settle(page)
        hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
        turn = hide + "; document.dispatchEvent(new Event('visibilitychange'));"

        with page.expect_websocket() as opened:
            page.evaluate(turn % "true" + turn % "false" + turn % "true")

        eventually(lambda: page.evaluate("true") and opened.value.is_closed())
        assert complaints.found == []

    def test_a_hidden_tab_has_no_socket(self, visit: Visit, shop: Shop) -> None:
        page = visit("viewer")
        settle(page)
        hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"

        with page.expect_websocket() as reopened:
            page.evaluate(hide % "true" + "; document.dispatchEvent(new Event('visibilitychange'))")
            page.wait_for_timeout(300)
            shop.many(5)
            expect(page.locator('[data-figure="states.ready"]')).to_have_text("0")
            page.evaluate(hide % "false" + "; document.dispatchEvent(new Event('visibilitychange'))")

        assert not reopened.value.is_closed()
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("5")

    def test_who_loses_the_right_is_told(self, visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
        from django.contrib.auth.models import User

        from dashboard import consumers

        monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.2)
        page = visit("viewer")
        settle(page)

        User.objects.get(username="viewer").user_permissions.clear()

        expect(page.locator("#live")).to_contain_text("No longer allowed")


@pytest.fixture
def store_of_its_own(settings, private_valkey: ValkeyServer) -> ValkeyServer:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    return private_valkey


def test_without_the_store_figures_dim_actions_go_off_and_all_comes_back(
    store_of_its_own: ValkeyServer, visit: Visit
) -> None:
    job_id = Shop().dead()
    page = visit("operator", f"/dashboard/jobs/{job_id}/")
    settle(page)

    store_of_its_own.kill()

    expect(page.locator("#trouble")).to_be_visible()
    expect(page.locator("#trouble")).to_contain_text("The store cannot be reached.")
    expect(page.locator("#announce")).to_have_text("The store cannot be reached.")
    expect(page.get_by_role("button", name="Resubmit")).to_be_disabled()
    expect(page.locator("#live")).to_contain_text("Store unreachable")

    store_of_its_own.start()

    expect(page.locator("#trouble")).to_be_hidden()
    expect(page.get_by_role("button", name="Resubmit")).to_be_enabled()
    settle(page)


def test_links_to_actions_go_off_with_the_store_and_come_back(store_of_its_own: ValkeyServer, visit: Visit) -> None:
    Shop().ready(pool="billing")
    page = visit("operator", "/dashboard/pools/")
    settle(page)
    pause = page.locator("a.deed", has_text="Pause billing")
    expect(pause).to_have_attribute("href", re.compile("/pool/pause/"))

    store_of_its_own.kill()

    expect(pause).to_have_attribute("aria-disabled", "true")
    assert pause.get_attribute("href") is None

    store_of_its_own.start()

    expect(page.locator("#trouble")).to_be_hidden()
    expect(page.locator("a.deed[aria-disabled]")).to_have_count(0)


def test_progress_moves_though_no_figure_changes(visit: Visit, shop: Shop) -> None:
    shop.ready()
    route = shop.engine.topology.partitions("default")[0]
    held = shop.engine.leases.lease(route, worker="w", token="t" * 22, limit=1, lease_ms=60_000).jobs[0]
    shop.engine.leases.start(route, [(held.id, held.token, held.leased_at)])
    shop.engine.leases.progress(held, 3, 12, "page three")
    page = visit("viewer", f"/dashboard/jobs/{held.id}/")
    settle(page)
    expect(page.locator(".progress")).to_contain_text("3 of 12: page three")

    shop.engine.leases.progress(held, 9, 12, "page nine")

    expect(page.locator(".progress")).to_contain_text("9 of 12: page nine")


def test_what_is_waited_for_longer_than_a_second_is_said(visit: Visit, shop: Shop) -> None:
    page = visit("viewer", f"/dashboard/jobs/{shop.ready()}/")
    settle(page)
    held: list[Route] = []
    page.route(re.compile("/fragments/job/"), lambda route: held.append(route))
    shop.leased()

    expect(page.locator("#panel")).to_have_attribute("aria-busy", "true")
    expect(page.get_by_text("waits for this page")).to_be_visible()
    for answer in held:
        answer.continue_()
    expect(page.locator("#panel")).to_have_attribute("aria-busy", "false")
