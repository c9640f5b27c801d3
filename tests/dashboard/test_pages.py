"""The pages: what each says when there is nothing, when there is much, and when what is there is hostile."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from dashboard.reads import of_jobs
from jobs import api
from jobs.core.job import JobSpec, Unique
from jobs.core.pause import EVERYTHING
from tests.dashboard.browsing import tags, text
from tests.dashboard.seeding import Shop

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

PAGES = (
    "/dashboard/",
    "/dashboard/jobs/",
    "/dashboard/dead/",
    "/dashboard/pools/",
    "/dashboard/workers/",
    "/dashboard/schedules/",
    "/dashboard/charts/",
    "/dashboard/timezone/",
    "/dashboard/workflows/",
)
STATES = ("scheduled", "ready", "leased", "retry_wait", "succeeded", "dead", "cancelled")


def rows(response: object) -> list[str]:
    """Ids of the jobs listed, in order."""
    return [
        str(attributes["data-key"]) for tag, attributes in tags(response) if tag == "tr" and attributes.get("data-key")
    ]


def link(response: object, **wanted: str | None) -> str:
    """The address of the first link that has these attributes."""
    for tag, attributes in tags(response):
        if tag == "a" and all(attributes.get(name, "absent") == value for name, value in wanted.items()):
            return str(attributes["href"])
    raise AssertionError(f"no link with {wanted}")


class TestOverview:
    def test_with_nothing_in_it_it_says_so_and_needs_nobody(self, viewer: Client) -> None:
        words = text(viewer.get("/dashboard/"))

        assert "Nothing needs you" in words
        assert "No job has been enqueued yet." in words
        assert "No pool has been used yet." in words
        assert "python manage.py runworkers" in words

    def test_it_says_what_runs_what_waits_and_what_failed(self, viewer: Client, shop: Shop) -> None:
        shop.worker()
        shop.leased()
        shop.many(3)
        shop.dead()

        assert "1 job runs, 3 wait, 1 is dead." in text(viewer.get("/dashboard/"))

    def test_a_pool_with_ready_jobs_and_no_worker_is_a_finding_with_the_command(
        self, viewer: Client, shop: Shop
    ) -> None:
        shop.ready(pool="reports")

        page = viewer.get("/dashboard/")

        assert re.search("One thing needs you .* Pool reports has 1 ready job and no worker", text(page))
        assert "python manage.py runworkers --pool reports" in text(page)

    def test_a_paused_pool_is_no_missing_worker(self, viewer: Client, shop: Shop) -> None:
        shop.ready(pool="reports")
        shop.engine.pools.pause("reports", by="ana", reason="disk move")

        words = text(viewer.get("/dashboard/"))

        assert "Nothing needs you" in words
        assert "paused by ana: disk move" in words

    @pytest.mark.parametrize("page", ["/dashboard/", "/dashboard/pools/", "/dashboard/pools/?name=default"])
    def test_where_each_host_is_paused_nothing_is_called_idle(self, page: str, viewer: Client, shop: Shop) -> None:
        shop.worker()
        shop.ready()
        shop.engine.workers.pause("host-1", by="ana", until=timezone.now() + timedelta(minutes=10))

        words = text(viewer.get(page))

        assert "Each host that serves it is paused" in words
        assert "idle" not in words
        assert re.search(r"It takes jobs again at \d\d:\d\d\.", words)

    def test_the_dead_are_one_finding_that_names_the_commonest_error(self, viewer: Client, shop: Shop) -> None:
        shop.worker()
        for _ in range(2):
            shop.dead(type="billing.charge")
        shop.dead(type="email.send", error={"type": "TimeoutError", "message": "no answer"})

        words = text(viewer.get("/dashboard/"))

        assert "3 jobs died" in words
        assert "2 are one error of billing.charge: Declined: insufficient funds" in words

    def test_the_counters_add_up_to_the_jobs_there_are(self, viewer: Client, shop: Shop) -> None:
        for state in STATES:
            shop.in_state(state)

        figures = viewer.get("/dashboard/snapshot/").json()["figures"]

        assert sum(int(count) for key, count in figures.items() if key.startswith("states.")) == len(STATES)

    def test_the_title_and_the_favicon_show_failures(self, viewer: Client, shop: Shop) -> None:
        calm = viewer.get("/dashboard/").content.decode()
        shop.dead()
        bad = viewer.get("/dashboard/").content.decode()

        assert "<title>Overview, Mainspring</title>" in calm
        assert "<title>1 needs you, 1 dead: Overview, Mainspring</title>" in bad
        assert 'id="favicon" href="/static/dashboard/favicon-dead.svg"' in bad


class TestJobs:
    def test_never_used_and_nothing_matches_are_two_different_texts(self, viewer: Client, shop: Shop) -> None:
        assert "No job has been enqueued yet." in text(viewer.get("/dashboard/jobs/"))
        shop.ready()

        filtered = text(viewer.get("/dashboard/jobs/?pool=billing&state=dead"))

        assert "No job matches 2 filters." in filtered
        assert "Narrowed to state dead, pool billing." in filtered
        assert "Clear all filters" in filtered

    @pytest.mark.parametrize(("state", "word"), [("leased", "running"), ("retry_wait", "retry wait")])
    def test_a_state_has_one_word_wherever_it_stands(self, state: str, word: str, viewer: Client) -> None:
        page = text(viewer.get(f"/dashboard/jobs/?state={state}"))

        assert f"Narrowed to state {word}." in page
        assert state not in page

    def test_what_is_due_says_when_in_one_place_which_ticks(self, viewer: Client, shop: Shop) -> None:
        shop.in_state("scheduled")
        shop.in_state("retry_wait")

        page = viewer.get("/dashboard/jobs/").content.decode()

        assert page.count('data-tick="until"') == 2
        assert "ue in" not in page
        assert "Attempt 2 is next. Declined: insufficient funds" in page

    @pytest.mark.parametrize("state", STATES)
    def test_it_lists_by_state(self, state: str, viewer: Client, shop: Shop) -> None:
        made = {name: shop.in_state(name) for name in STATES}

        assert rows(viewer.get(f"/dashboard/jobs/?state={state}")) == [made[state]]

    def test_it_filters_by_pool_type_tag_text_and_time_together(self, viewer: Client, shop: Shop) -> None:
        wanted = shop.dead(pool="billing", type="billing.charge", tags=("eu",))
        shop.dead(pool="billing", type="billing.charge", tags=("us",))
        shop.dead(pool="billing", type="billing.refund", tags=("eu",))
        shop.dead(type="billing.charge", tags=("eu",))

        page = viewer.get("/dashboard/jobs/?pool=billing&type=billing.charge&tag=eu&search=INSUFFICIENT&since=5m")

        assert rows(page) == [wanted]

    def test_each_filter_is_a_chip_whose_link_removes_just_it(self, viewer: Client) -> None:
        page = viewer.get("/dashboard/jobs/?state=dead&state=ready&pool=billing&tag=eu")

        chips = [
            str(attributes["href"])
            for tag, attributes in tags(page)
            if tag == "a" and attributes.get("class") == "chip"
        ]
        left = [parse_qs(urlsplit(chip).query) for chip in chips]
        assert left == [
            {"state": ["ready"], "pool": ["billing"], "tag": ["eu"]},
            {"state": ["dead"], "pool": ["billing"], "tag": ["eu"]},
            {"state": ["dead", "ready"], "tag": ["eu"]},
            {"state": ["dead", "ready"], "pool": ["billing"]},
        ]

    def test_pages_by_cursor_show_every_job_once_while_new_ones_arrive(self, viewer: Client, shop: Shop) -> None:
        made = [shop.dead() for _ in range(5)]

        first = viewer.get("/dashboard/jobs/?state=dead&limit=2")
        shop.dead()
        second = viewer.get(link(first, rel="next"))
        third = viewer.get(link(second, rel="next"))

        assert rows(first) + rows(second) + rows(third) == list(reversed(made))

    def test_a_cursor_that_is_not_ours_is_explained(self, viewer: Client, shop: Shop) -> None:
        shop.ready()

        page = viewer.get("/dashboard/jobs/?cursor=%00nonsense")

        assert page.status_code == 200
        assert "This cursor is not one of ours." in text(page)

    def test_an_unknown_state_is_explained_with_the_nearest(self, viewer: Client) -> None:
        assert "“deed” is no state. Did you mean dead?" in text(viewer.get("/dashboard/jobs/?state=deed"))

    def test_a_row_says_its_call_and_why_it_waits(self, viewer: Client, shop: Shop) -> None:
        shop.ready(pool="reports", payload={"day": "2026-01-01", "rows": 7})

        words = text(viewer.get("/dashboard/jobs/"))

        assert 'email.send day="2026-01-01", rows=7' in words
        assert "No worker serves pool reports." in words

    def test_a_row_says_first_what_holds_everything(self, viewer: Client, shop: Shop) -> None:
        shop.ready(pool="reports")
        shop.engine.pauses.pause(EVERYTHING, by="ana", reason="disk move")

        assert "Everything is paused by ana" in text(viewer.get("/dashboard/jobs/"))

    def test_a_page_of_large_jobs_is_as_long_as_fits_and_leads_on_to_the_others(
        self, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(of_jobs, "FIRST", 2)
        monkeypatch.setattr(of_jobs, "MOST_BYTES", 5_000)
        large = [shop.ready(payload={"text": "x" * 1_000}, pool="large") for _ in range(8)]
        small = [shop.ready(pool="small") for _ in range(8)]

        first = viewer.get("/dashboard/jobs/", {"pool": "large", "limit": 8})
        second = viewer.get(link(first, rel="next"))

        assert rows(first) == large[:4]
        assert rows(second) == large[4:]
        assert rows(viewer.get("/dashboard/jobs/", {"pool": "small", "limit": 8})) == small

    def newer(self, viewer: Client, shown: list[str], **words: Any) -> str:
        """How many newer ones an open page with these rows is told of."""
        words = {"updates": "1", "shown": shown, "rows": len(shown), **words}
        page = viewer.get("/dashboard/fragments/jobs/", words).content.decode()
        return page.partition('data-newer="')[2].partition('"')[0]

    def test_what_moves_up_as_others_leave_is_not_called_new(self, viewer: Client, shop: Shop) -> None:
        first, second, third = (shop.dead() for _ in range(3))
        shown = [third, second]
        shop.engine.jobs.resubmit(second)
        assert self.newer(viewer, shown, state="dead", limit=2) == "0"

        shop.dead()
        assert self.newer(viewer, shown, state="dead", limit=2) == "1"
        assert self.newer(viewer, [third, first], state="dead", limit=50) == "1"

    def test_rows_that_do_not_fit_into_an_address_are_not_called_new(self, viewer: Client, shop: Shop) -> None:
        jobs = [shop.dead() for _ in range(6)][::-1]

        assert self.newer(viewer, jobs[:3], rows=6, state="dead", limit=50) == "0"

    def test_what_comes_last_in_a_short_list_is_new(self, viewer: Client, shop: Shop) -> None:
        shown = [shop.ready()]
        shop.ready()

        assert self.newer(viewer, shown, state="ready") == "1"


class TestSearch:
    @pytest.mark.parametrize("state", STATES)
    def test_a_whole_id_opens_the_job_in_any_state(self, state: str, viewer: Client, shop: Shop) -> None:
        job_id = shop.in_state(state)

        assert viewer.get("/dashboard/find/", {"q": f" {job_id} "})["Location"] == f"/dashboard/jobs/{job_id}/"

    def test_words_become_filters_and_the_rest_is_searched(self, viewer: Client) -> None:
        response = viewer.get("/dashboard/find/", {"q": 'state:running pool:billing tag:"a b" insufficient funds'})

        wanted = "state=leased&pool=billing&tag=a+b&search=insufficient+funds"
        assert response["Location"] == f"/dashboard/jobs/?{wanted}"

    def test_nothing_leads_to_the_list(self, viewer: Client) -> None:
        assert viewer.get("/dashboard/find/")["Location"] == "/dashboard/jobs/"


class TestJob:
    @pytest.mark.parametrize(
        ("state", "says"),
        [
            ("scheduled", "Due in 59 min."),
            ("ready", "No worker serves pool default."),
            ("leased", "Running for 0 s."),
            ("retry_wait", "Attempt 1 failed. Declined: insufficient funds."),
            ("succeeded", "Succeeded in"),
            ("dead", "Gave up after 1 attempt in"),
            ("cancelled", "Cancelled."),
        ],
    )
    def test_it_says_what_happened(self, state: str, says: str, viewer: Client, shop: Shop) -> None:
        job_id = shop.in_state(state)

        assert says in text(viewer.get(f"/dashboard/jobs/{job_id}/"))

    def test_while_it_runs_it_says_when_its_worker_was_last_heard_of(self, viewer: Client, shop: Shop) -> None:
        running, ended = shop.leased(worker="host-1/1"), shop.succeeded()
        shop.worker()

        page = text(viewer.get(f"/dashboard/jobs/{running}/"))
        assert re.search(r"Worker host-1/1 , heard of (now|1 s ago)", page)
        assert "heard of" not in text(viewer.get(f"/dashboard/jobs/{ended}/"))

    def test_it_shows_attempts_with_folded_tracebacks_payload_and_result(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.retry_wait(payload={"invoice": {"lines": [1, 2]}})
        shop.engine.jobs.run_now(job_id)
        shop.fail(job_id, "dead")

        words = text(viewer.get(f"/dashboard/jobs/{job_id}/"))

        assert re.search(r"Attempt 2 Declined: insufficient funds .* Attempt 1 same error", words)
        assert words.count('File "/srv/shop/billing.py", line 88, in settle') == 2
        assert '"invoice": 1 key "lines": 2 items 0: 1 1: 2' in words

    def test_a_time_that_has_passed_is_not_promised(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.ready(delay_ms=1)
        time.sleep(0.05)

        words = text(viewer.get("/dashboard/jobs/", {"peek": job_id}))

        assert "Due since 0 s, and stands in line when a worker looks." in words

    def test_what_was_done_to_a_thing_of_the_same_name_was_not_done_to_it(self, viewer: Client, shop: Shop) -> None:
        shop.ready(id="default")
        api.pools.pause("default", reason="disk full")

        assert "What people did" not in text(viewer.get("/dashboard/jobs/default/"))

    def test_a_resubmitted_job_keeps_what_happened_before(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.dead()
        shop.engine.jobs.resubmit(job_id)

        words = text(viewer.get(f"/dashboard/jobs/{job_id}/"))

        assert "Resubmitted 1 time" in words
        assert "Attempt 1 failed" in words

    def test_it_links_to_its_trace_where_the_project_says_where_traces_are(
        self, viewer: Client, shop: Shop, settings: SettingsWrapper
    ) -> None:
        trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
        traced = shop.ready(meta={"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"})
        untraced = shop.ready(meta={"traceparent": "00-elsewhere"})
        link = f'href="https://traces.example.com/t/{trace_id}"'
        assert link not in viewer.get(f"/dashboard/jobs/{traced}/").content.decode()

        settings.SCHEDULER = {**settings.SCHEDULER, "TRACE_URL": "https://traces.example.com/t/{trace_id}"}

        assert link in viewer.get(f"/dashboard/jobs/{traced}/").content.decode()
        assert "traces.example.com" not in viewer.get(f"/dashboard/jobs/{untraced}/").content.decode()

    def test_it_leads_to_its_schedule_and_names_the_keys_that_hold_it(self, viewer: Client, shop: Shop) -> None:
        held = {"concurrency_key": "customer:42", "rate_key": "smtp"}
        job_id = shop.ready(schedule="nightly run", fire_time_ms=1_700_000_000_000, **held)

        page = viewer.get(f"/dashboard/jobs/{job_id}/")

        assert "Concurrency key customer:42 Rate key smtp Schedule nightly run , fired for" in text(page)
        assert "/dashboard/schedules/?name=nightly%20run" in [found.get("href") for _, found in tags(page)]

    def test_progress_is_shown_with_its_message(self, viewer: Client, shop: Shop) -> None:
        shop.ready()
        route = shop.engine.topology.partitions("default")[0]
        held = shop.engine.leases.lease(route, worker="w", token="t" * 22, limit=1, lease_ms=60_000).jobs[0]
        shop.engine.leases.start(route, [(held.id, held.token, held.leased_at)])
        shop.engine.leases.progress(held, 3, 12, "page three")

        assert "3 of 12: page three" in text(viewer.get(f"/dashboard/jobs/{held.id}/"))

    def test_a_job_that_no_slot_has_begun_has_not_started(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.ready()
        route = shop.engine.topology.partitions("default")[0]
        [held] = shop.engine.leases.lease(route, worker="w", token="t" * 22, limit=1, lease_ms=60_000).jobs
        address = f"/dashboard/jobs/{job_id}/"
        assert "none yet, 3 retries allowed" in text(viewer.get(address))

        shop.engine.leases.start(route, [(held.id, held.token, held.leased_at)])

        assert "1 started, 3 retries allowed" in text(viewer.get(address))

    @pytest.mark.parametrize(
        ("state", "loud"),
        [
            ("scheduled", ["/dashboard/actions/job/run-now/"]),
            ("ready", []),
            ("leased", []),
            ("retry_wait", ["/dashboard/actions/job/retry/"]),
            ("succeeded", []),
            ("dead", ["/dashboard/actions/job/resubmit/"]),
            ("cancelled", ["/dashboard/actions/job/resubmit/"]),
        ],
    )
    def test_the_loud_button_gets_the_job_going_and_none_ends_it(
        self, state: str, loud: list[str], operator: Client, shop: Shop
    ) -> None:
        found, address = [], ""
        for tag, attributes in tags(operator.get(f"/dashboard/jobs/{shop.in_state(state)}/")):
            if tag == "form":
                address = str(attributes.get("action"))
            if "primary" in str(attributes.get("class")).split():
                found.append(address)

        assert found == loud

    @pytest.mark.parametrize(("state", "address"), [("dead", "/dashboard/dead/"), ("ready", "/dashboard/jobs/")])
    def test_the_navigation_marks_the_list_that_it_is_in(
        self, viewer: Client, shop: Shop, state: str, address: str
    ) -> None:
        page = viewer.get(f"/dashboard/jobs/{shop.in_state(state)}/")

        assert {found["href"] for _, found in tags(page) if found.get("aria-current") == "page"} == {address}

    def test_one_that_is_not_there_is_404_in_words(self, viewer: Client) -> None:
        page = viewer.get("/dashboard/jobs/01gone-default.1.0/")

        assert page.status_code == 404
        assert "There is no such job" in text(page)

    @pytest.mark.parametrize(
        "job_id", ["order/42", "a b", "..", ".", "a/../b", "50%", "ümläut", "a?b#c&d=e", "x/", "//", "{}'\""]
    )
    def test_callers_ids_of_any_shape_have_a_page_that_links_reach(
        self, job_id: str, viewer: Client, shop: Shop
    ) -> None:
        shop.engine.jobs.enqueue(JobSpec(type="order.ship", id=job_id), [b"{}"])

        address = link(viewer.get("/dashboard/jobs/"), **{"data-open": None})
        parts = urlsplit(address)

        assert not {".", "..", ""} & set(parts.path.strip("/").split("/"))
        assert f"<code>{escaped(job_id)}</code>" in viewer.get(address).content.decode()

    def test_a_deep_and_wide_payload_is_cut_and_says_so(self, viewer: Client, shop: Shop) -> None:
        deep: object = "bottom"
        for _ in range(200):
            deep = {"down": deep}
        job_id = shop.ready(payload={"deep": deep, "wide": list(range(5_000)), "long": "x" * 50_000})

        page = viewer.get(f"/dashboard/jobs/{job_id}/")

        words = text(page)
        assert "too deep to show" in words
        assert "more, not shown" in words
        assert len(page.content) < 150_000
        whole = viewer.get("/dashboard/raw/", {"id": job_id, "part": "payload"})
        assert whole["Content-Disposition"] == 'attachment; filename="payload.json"'
        assert whole.json()["long"] == "x" * 50_000


def escaped(words: str) -> str:
    return escape(words)


class TestPoolsAndWorkers:
    def test_a_worker_is_shown_with_its_slots_and_its_jobs(self, viewer: Client, shop: Shop) -> None:
        job_id = shop.leased()
        shop.worker(current=[{"id": job_id, "type": "email.send", "started_at": None}])

        page = viewer.get("/dashboard/workers/")

        assert "1 worker on 1 host, all of them heard from." in text(page)
        assert "serves default (10)" in text(page)
        assert f"/dashboard/jobs/{job_id}/" in page.content.decode()

    def test_a_worker_that_takes_no_jobs_says_why(self, viewer: Client, shop: Shop) -> None:
        shop.worker(state="not consuming: the store does not answer")

        assert "not consuming: the store does not answer" in text(viewer.get("/dashboard/workers/"))

    def test_every_pool_is_listed_with_its_figures(self, viewer: Client, shop: Shop) -> None:
        shop.many(2, pool="billing")
        shop.scheduled(pool="media")

        words = text(viewer.get("/dashboard/pools/"))

        assert "No worker serves billing, where jobs are ready." in words
        assert "media" in words


MARK = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"{{7*7}}{% now %}"


@pytest.fixture
def hostile(shop: Shop) -> list[str]:
    """Jobs and a worker with the mark in every field that takes text."""
    common = {
        "type": MARK,
        "tags": (MARK,),
        "meta": {MARK: MARK},
        "payload": {MARK: MARK, "nested": [{MARK: [MARK]}]},
        "schedule": MARK,
        "fire_time_ms": 1_700_000_000_000,
        "workflow_run": MARK,
        "node": MARK,
        "concurrency_key": MARK,
        "rate_key": MARK,
    }
    error = {"type": MARK, "message": MARK, "traceback": MARK}
    shop.worker(hostname=MARK, state=MARK, version=MARK, current=[{"id": MARK, "type": MARK, "started_at": None}])
    shop.engine.jobs.enqueue(JobSpec(type=MARK, id=MARK, unique=Unique(key=MARK)), [b"{}"])
    made = [shop.dead(error=error, **common), shop.retry_wait(error=error, **common)]
    made += [shop.succeeded(result={MARK: MARK}, **common), shop.leased(worker=MARK, pool="busy", **common)]
    shop.engine.pools.pause("busy", by=MARK, reason=MARK)
    return [*made, MARK]


def test_markup_in_any_field_is_shown_as_text(viewer: Client, hostile: list[str]) -> None:
    addresses = [*PAGES, "/dashboard/jobs/?state=dead", *(f"/dashboard/job/?id={quoted(job_id)}" for job_id in hostile)]
    for address in addresses:
        page = viewer.get(address)

        assert page.status_code == 200, address
        body = page.content.decode()
        assert "<script>alert" not in body, address
        assert "<img" not in body, address
        assert all(not name.startswith("on") for _, attributes in tags(page) for name in attributes), address
        assert "&quot;49" not in body, address  # what stands before {{7*7}}, and its value
    assert MARK in text(viewer.get(f"/dashboard/jobs/{hostile[0]}/"))


def quoted(words: str) -> str:
    return quote(words, safe="")


@pytest.mark.parametrize("word", ["state", "pool", "type", "tag", "search", "since", "limit", "cursor"])
def test_markup_in_the_query_is_shown_as_text(word: str, viewer: Client, shop: Shop) -> None:
    shop.ready()
    for path in ("/dashboard/jobs/", "/dashboard/dead/", "/dashboard/fragments/jobs/"):
        page = viewer.get(path, {word: MARK})

        assert page.status_code in (200, 400), (path, word)
        assert "<script>alert" not in page.content.decode()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_carries_script_or_style_or_a_foreign_address_of_its_own(
    path: str, administrator: Client, shop: Shop
) -> None:
    shop.dead()
    for tag, attributes in tags(administrator.get(path)):
        assert tag != "style"
        assert "style" not in attributes
        assert tag != "script" or str(attributes["src"]).startswith("/static/")
        for name in ("href", "src", "action", "formaction"):
            assert str(attributes.get(name) or "/")[0] in "/#?", attributes


def test_every_answer_carries_the_headers_that_keep_others_out(client: Client, viewer: Client) -> None:
    for response in (
        viewer.get("/dashboard/"),
        client.get("/accounts/login/", headers={"host": "localhost"}),
        viewer.get("/no"),
    ):
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Cache-Control"]
        assert response["Referrer-Policy"] == "same-origin"
