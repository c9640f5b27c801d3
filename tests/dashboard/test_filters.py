"""Filters: the same list from the same address, whatever the address holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import sleep

import pytest
from django.http import QueryDict
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.filters import PAGE, PAGE_MAX, Filters
from jobs import api
from tests.dashboard.browsing import hidden, send, tags, text
from tests.dashboard.seeding import Shop

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WORDS = (
    "state",
    "pool",
    "type",
    "tag",
    "search",
    "since",
    "older",
    "worker",
    "attempts",
    "peek",
    "limit",
    "cursor",
    "shown",
    "updates",
    "id",
    "q",
)


@pytest.mark.parametrize(
    ("since", "moment"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("5m", NOW - timedelta(minutes=5)),
        ("7d", NOW - timedelta(days=7)),
        ("2026-01-01T09:00:00Z", datetime(2026, 1, 1, 9, tzinfo=UTC)),
        ("2026-01-01T09:00", datetime(2026, 1, 1, 9, tzinfo=UTC)),
        ("2026-01-01T09:00:00+02:00", datetime(2026, 1, 1, 7, tzinfo=UTC)),
    ],
)
def test_since_takes_a_duration_or_a_moment(since: str, moment: datetime) -> None:
    query = QueryDict(mutable=True)
    query["since"] = since

    assert Filters.read(query).selection(NOW).since == moment


@pytest.mark.parametrize("since", ["yesterday", "5", "m", "-5m", "999999999d", "2026-13-01", "²m"])
def test_a_since_that_is_no_time_is_named_and_left_out(since: str) -> None:
    query = QueryDict(mutable=True)
    query["since"] = since
    filters = Filters.read(query)

    assert filters.selection(NOW).since is None
    assert "is no time" in filters.problems[0]


class TestSinceTheDeploy:
    """``since:deploy`` is the same in the search box, in an address and in what is done to all that match."""

    def test_only_jobs_created_since_then_are_listed_and_acted_on(self, operator: Client, shop: Shop) -> None:
        shop.worker(version="41d07aa")
        shop.dead(type="mail.old")
        sleep(0.002)  # a deploy is known by the millisecond
        shop.worker(version="9f3c2ab")
        shop.dead(type="mail.new")

        found = operator.get("/dashboard/find/", {"q": "state:dead since:deploy"})
        listed = text(operator.get(found["Location"]))
        asked = text(operator.get("/dashboard/actions/matching/resubmit/", {"state": "dead", "since": "deploy"}))

        assert found["Location"].endswith("?state=dead&since=deploy")
        assert ("mail.new" in listed, "mail.old" in listed) == (True, False)
        assert "Resubmit 1 job?" in asked

    def test_a_deploy_after_the_question_does_not_change_what_was_asked(self, operator: Client, shop: Shop) -> None:
        shop.worker(version="41d07aa")
        shop.dead()
        address = "/dashboard/actions/matching/resubmit/"
        fields = hidden(operator.get(address, {"state": "dead", "since": "deploy"}))
        sleep(0.002)
        shop.worker(version="9f3c2ab")

        send(operator, address, fields)

        [operation] = api.bulk.newest()
        assert operation.request.filter.since == api.workers.releases()[0].at

    def test_where_no_deploy_is_known_that_is_said_and_nothing_is_done(self, operator: Client, shop: Shop) -> None:
        shop.dead()
        address = "/dashboard/actions/matching/resubmit/"
        words = {"state": "dead", "since": "deploy"}

        page = text(operator.get("/dashboard/dead/", words))
        asked = text(operator.get(operator.get(address, words)["Location"]))
        done = send(operator, address, {**words, "until": NOW.isoformat(), "number": "1"}, script=True)

        assert "No deploy is known" in page
        assert "Start a worker host" in page
        assert "No deploy is known" in asked
        assert (done.status_code, api.bulk.newest()) == (409, [])

    def test_the_dead_letters_offer_it_beside_an_hour_and_a_day(self, viewer: Client, shop: Shop) -> None:
        shop.dead(pool="billing")
        assert "deploy" not in text(viewer.get("/dashboard/dead/"))
        shop.worker(version="9f3c2ab")

        page = viewer.get("/dashboard/dead/?pool=billing&since=deploy")

        words = "deploy 9f3c2ab the last deploy 1h one hour ago 24h 24 hours ago ever ever"
        assert f"Created since {words}" in text(page)
        assert "Only of jobs created since deploy 9f3c2ab, " in text(page)
        links = {str(found.get("href")) for tag, found in tags(page) if tag == "a"}
        assert "/dashboard/dead/?state=dead&pool=billing&since=24h" in links
        assert "/dashboard/dead/?state=dead&pool=billing" in links


@pytest.mark.parametrize(
    ("given_limit", "limit"),
    [
        ("", PAGE),
        ("abc", PAGE),
        ("10", 10),
        ("0", 1),
        ("-1", 1),
        ("1000000000", PAGE_MAX),
        ("NaN", PAGE),
        ("1e9", PAGE),
    ],
)
def test_the_limit_is_bounded(given_limit: str, limit: int) -> None:
    assert Filters.read(QueryDict(f"limit={given_limit}")).limit == limit


def test_words_of_pages_and_of_the_contract_both_name_states() -> None:
    assert Filters.read(QueryDict("state=running,retry-wait&state=DEAD&state=dead")).states == (
        "leased",
        "retry_wait",
        "dead",
    )


def test_the_search_box_knows_worker_attempts_and_age() -> None:
    filters = Filters.from_words("worker:app-3 attempts:2 older:10m too slow")

    assert (filters.worker, filters.attempts, filters.older, filters.search) == ("app-3", "2", "10m", "too slow")
    wanted = filters.selection(NOW)
    assert (wanted.worker, wanted.attempts, wanted.before) == ("app-3", 2, NOW - timedelta(minutes=10))


@pytest.mark.parametrize("attempts", ["two", "0", "-1", "1e3", "²", "99999999"])
def test_attempts_that_are_no_number_are_named_and_left_out(attempts: str) -> None:
    filters = Filters.from_words(f"attempts:{attempts}")

    assert filters.selection(NOW).attempts is None
    assert "is no number of attempts" in filters.problems[0]


def test_a_type_is_a_name_or_a_beginning_and_a_star_in_lists_and_in_what_is_done_to_all(
    operator: Client, shop: Shop
) -> None:
    for name in ("billing.charge", "billing.refund", "mail.send"):
        shop.dead(type=name)

    listed = text(operator.get("/dashboard/dead/?type=billing.*"))
    asked = operator.get("/dashboard/actions/matching/resubmit/", {"state": "dead", "type": "billing.*"})

    assert [name in listed for name in ("billing.charge", "billing.refund", "mail.send")] == [True, True, False]
    assert "Resubmit 2 jobs?" in text(asked)
    assert Filters.from_words("type:billing.*").query == "type=billing.%2A"


def test_a_word_that_is_none_is_searched_for_and_the_nearest_is_named(viewer: Client, shop: Shop) -> None:
    shop.dead()

    page = text(viewer.get("/dashboard/find/", {"q": "stat:dead pool:default http://example.com"}, follow=True))

    assert "“stat:” is searched for as text. Did you mean state:?" in page
    assert page.count("is searched for as text") == 1


def test_a_star_elsewhere_is_named_and_left_out() -> None:
    filters = Filters.from_words("type:*.charge pool:eu")

    assert filters.pairs == [("pool", "eu")]
    assert filters.problems == (
        "type: '*.charge' has a * before its end. Write a whole name, or its beginning and a *: billing.*",
    )


queries = st.lists(st.tuples(st.sampled_from(WORDS), st.text(max_size=300)), max_size=12)


@given(queries)
def test_what_is_written_into_an_address_is_read_back_from_it(pairs: list[tuple[str, str]]) -> None:
    query = QueryDict(mutable=True)
    for word, value in pairs:
        query.appendlist(word, value)
    filters = Filters.read(query)

    again = Filters.read(QueryDict(filters.query))

    assert again.pairs == filters.pairs
    assert again.limit == filters.limit
    assert all(len(value) <= 200 for _, value in filters.pairs)
    assert len(filters.chips) == len(filters.pairs)


@pytest.mark.parametrize(
    "path", ["/dashboard/jobs/", "/dashboard/dead/", "/dashboard/fragments/jobs/", "/dashboard/find/"]
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=queries)
def test_no_query_breaks_a_page(path: str, pairs: list[tuple[str, str]], viewer: Client, shop: Shop) -> None:
    query = QueryDict(mutable=True)
    for word, value in pairs:
        query.appendlist(word, value.encode("utf-8", "replace").decode())

    assert viewer.get(f"{path}?{query.urlencode()}").status_code in (200, 302, 400)
