"""How a long operation shows how far it is."""

from io import StringIO

import pytest
from rich.console import Console

from jobs.management import progress
from jobs.management.progress import Display
from tests.support.wait import eventually


@pytest.fixture
def lines(monkeypatch):
    """The lines that are written where no bar can be drawn; at once, not after seconds."""
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY_SECONDS", 0.01)
    return []


@pytest.fixture
def clock(monkeypatch):
    """The time that passes for a display: ``clock[0]``."""
    moment = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: moment[0])
    return moment


def display(lines, total=None, console=None):
    return Display("resubmit", total, console=console, line=lines.append)


def test_what_is_done_soon_shows_nothing():
    lines = []

    shown = display(lines, 100)
    shown.step(50)
    shown.close()

    assert lines == []


def test_where_no_bar_can_be_drawn_a_line_is_written_now_and_then(lines):
    shown = display(lines, 100)
    shown.step(50)

    eventually(lambda: len(lines) > 2)
    shown.close()

    assert lines[-1].startswith("resubmit: 50 of 100")


def test_an_operation_that_hangs_between_two_steps_is_shown_too(lines):
    shown = display(lines)

    eventually(lambda: lines)
    shown.close()

    assert lines[0].startswith("resubmit: ")


def test_rate_and_time_left_are_told(lines, clock):
    shown = display(lines, 1000)
    clock[0] = 60.0  # counting took a minute, which is no part of the rate
    shown.step(0)
    clock[0] = 70.0
    shown.step(250)

    assert shown.facts() == "250 of 1,000, 25/s, 30s left"
    shown.close()


def test_a_total_may_become_known_later(lines, clock):
    shown = display(lines)
    shown.step(1, total=3)

    assert shown.facts() == "1 of 3"
    shown.close()


def test_without_a_total_the_time_taken_is_told_with_a_word_about_now(lines, clock):
    shown = display(lines)
    clock[0] = 75.0
    shown.step(0, note="running, 3 of 12\x1b")

    assert shown.facts() == "1m 15s, running, 3 of 12\\x1b"
    shown.close()


@pytest.mark.usefixtures("lines")
def test_on_a_terminal_there_is_a_bar():
    terminal = StringIO()
    shown = display([], 100, Console(file=terminal, force_terminal=True, width=100))

    def drawn():
        shown.step(25, note="\x1b[2J")
        return "25 of 100" in terminal.getvalue()

    eventually(drawn)
    shown.close()

    assert "resubmit" in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()
