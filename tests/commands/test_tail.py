"""``jobs tail`` and ``jobs show --logs``."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobs.core.job import LeasedJob
from jobs.engine import NewLines, get_engine
from jobs.management import tailing
from jobs.store.log_lines import encode_line
from tests.commands.conftest import Cli, greet


def keep(held: LeasedJob, *messages: str, **fields: Any) -> None:
    """The handler of this lease logs something."""
    lines = [encode_line(held.leased_at, 20, message, fields) for message in messages]
    assert get_engine().logs.append(held.route, [NewLines(held.id, held.token, lines)]) == []


@pytest.fixture
def between_looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``between_looks(one, two)``: what happens while the tail sleeps, the first time, the second; then Ctrl-C."""

    def script(*steps: Callable[[], object]) -> None:
        left = iter(steps)

        def sleep(_: float) -> None:
            next(left, lambda: signal.raise_signal(signal.SIGINT))()

        monkeypatch.setattr(tailing, "sleep", sleep)

    return script


@pytest.fixture(autouse=True)
def _python_hears_ctrl_c() -> Iterator[None]:
    """Also where the run was started in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def items(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


class TestAll:
    def test_jobs_are_shown_as_they_change_until_ctrl_c_which_needs_no_words(
        self, cli: Cli, between_looks: Callable[..., None], bury: Callable[..., str]
    ) -> None:
        ids: list[str] = []
        between_looks(lambda: ids.append(greet.enqueue().id), lambda: bury(ids[0]), lambda: None)

        result = cli("jobs", "tail", "--json")

        assert (result.code, result.err) == (130, "")
        assert [(item["kind"], item["id"], item["state"]) for item in items(result.out)] == [
            ("state", ids[0], "ready"),
            ("state", ids[0], "dead"),
        ]

    def test_only_those_that_match(
        self, cli: Cli, between_looks: Callable[..., None], bury: Callable[..., str]
    ) -> None:
        between_looks(lambda: bury(greet.enqueue().id), lambda: greet.enqueue(), lambda: None)

        result = cli("jobs", "tail", "--state", "dead")

        (line,) = result.out.splitlines()
        assert line.split("\t")[1:3] == ["dead", "commands.greet"]
        assert line.endswith("OSError: no route to host")

    def test_a_flood_is_cut_and_says_so(
        self, cli: Cli, between_looks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tailing, "LINES_AT_ONCE", 3)
        between_looks(lambda: greet.enqueue_many([{}] * 5), lambda: None)

        result = cli("jobs", "tail", "--json")

        assert [item["kind"] for item in items(result.out)] == ["state"] * 3 + ["gap"]
        assert items(result.out)[-1] == {"kind": "gap", "count": 2, "what": "jobs"}


class TestOne:
    def test_a_job_is_followed_to_its_end_with_its_log_and_progress(
        self, cli: Cli, between_looks: Callable[..., None], lease: Callable[[str], LeasedJob]
    ) -> None:
        id = greet.enqueue().id
        engine = get_engine()
        held: list[LeasedJob] = []

        def start() -> None:
            held.append(lease(id))
            keep(held[0], "first", page="a")

        def go_on() -> None:
            keep(held[0], "second")
            engine.leases.progress(held[0], 3, 12, "a quarter")

        def end() -> None:
            keep(held[0], "last")
            engine.jobs.cancel(id)
            engine.leases.complete(held[0].route, [_completion(held[0])])

        between_looks(start, go_on, end)
        result = cli("jobs", "tail", id, "--json")

        assert (result.code, result.err) == (0, "")
        assert [_short(item) for item in items(result.out)] == [
            "ready",
            "leased",
            "first page=a",
            "second",
            "3 of 12",
            "last",
            "cancelled",
        ]

    def test_for_people_each_is_a_line(
        self, cli: Cli, between_looks: Callable[..., None], lease: Callable[[str], LeasedJob]
    ) -> None:
        id = greet.enqueue().id
        held = lease(id)
        keep(held, "built May", rows=12)
        between_looks()

        result = cli("jobs", "tail", id)

        assert result.code == 130
        assert [line.split("\t")[1:] for line in result.out.splitlines()] == [
            ["running", "commands.greet", id],
            ["info", "#1", "built May rows=12"],
        ]

    def test_lines_that_made_room_before_they_were_seen_are_a_gap(
        self, cli: Cli, between_looks: Callable[..., None], lease: Callable[[str], LeasedJob], settings: Any
    ) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "LOG_LINES": 2}
        id = greet.enqueue().id
        held = lease(id)
        keep(held, "1", "2", "3", "4", "5")
        between_looks()

        result = cli("jobs", "tail", id, "--json")

        assert [_short(item) for item in items(result.out)] == ["leased", "gap of 3", "4", "5"]

    def test_one_that_has_ended_is_shown_and_that_is_all(
        self, cli: Cli, between_looks: Callable[..., None], bury: Callable[..., str]
    ) -> None:
        between_looks()

        assert cli("jobs", "tail", bury(greet.enqueue().id), "--json").code == 0

    def test_there_must_be_one(self, cli: Cli) -> None:
        assert cli("jobs", "tail", "nobody").code == 3

    def test_an_id_and_a_filter_are_one_too_many(self, cli: Cli) -> None:
        assert cli("jobs", "tail", "some-id", "--pool", "default").code == 2


class TestShow:
    def test_the_log_of_all_attempts(self, cli: Cli, lease: Callable[[str], LeasedJob]) -> None:
        id = greet.enqueue().id
        keep(lease(id), "built May", rows=12)

        plain, shown = cli("jobs", "show", id), cli("jobs", "show", id, "--logs")

        assert "built May" not in plain.out
        assert "1  INFO     built May rows=12" in shown.out
        assert cli("jobs", "show", id, "--logs", "--json").json["logs"]["lines"][0]["fields"] == {"rows": 12}

    def test_without_lines_it_says_so(self, cli: Cli) -> None:
        assert "Nothing was logged through ctx.log." in cli("jobs", "show", greet.enqueue().id, "--logs").out

    def test_progress_that_has_stalled_is_called_so(
        self, cli: Cli, lease: Callable[[str], LeasedJob], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from datetime import timedelta

        from django.utils import timezone

        id = greet.enqueue().id
        get_engine().leases.progress(lease(id), 3, 12, "a quarter")
        assert "stalled" not in cli("jobs", "show", id).out

        later = timezone.now() + timedelta(minutes=2)
        monkeypatch.setattr(timezone, "now", lambda: later)
        assert "3 of 12 a quarter (stalled: nothing new for 2m" in cli("jobs", "show", id).out


def _completion(held: LeasedJob) -> Any:
    from jobs.engine import Completion

    return Completion(held.id, held.token, held.type, held.leased_at, None, None)


def _short(item: dict[str, Any]) -> str:
    match item["kind"]:
        case "state":
            return str(item["state"])
        case "log":
            return " ".join([item["message"], *(f"{name}={value}" for name, value in item["fields"].items())])
        case "progress":
            return f"{item['progress']['current']} of {item['progress']['total']}"
        case _:
            return f"gap of {item['count']}"
