"""What goes to which stream, in which dress."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management.base import OutputWrapper
from django.utils import timezone

from jobs.core.wording import visible
from jobs.management.output import Column, Output, ago

ROWS = [("01KB7ZZZ-default.1.0", "dead", "connection refused " * 10), ("01KB7YYY-default.1.0", "ready", None)]
COLUMNS = (
    Column("ID", lambda row: row[0]),
    Column("STATE", lambda row: row[1]),
    Column("ERROR", lambda row: row[2], elastic=True),
)
ESCAPE = "\x1b"


class Stream(StringIO):
    """A stream that says whether it is a terminal, and what it can carry."""

    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal = terminal
        self._encoding = encoding

    @property
    def encoding(self):
        return self._encoding

    def isatty(self):
        return self._terminal


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


def written(stream, show, **options):
    """What ``show`` writes to this stream."""
    show(Output(OutputWrapper(stream), OutputWrapper(Stream(terminal=False)), as_json=False, **options))
    return stream.getvalue()


def table(output):
    output.table(COLUMNS, ROWS)


def test_in_a_pipe_a_table_is_lines_of_cells_apart_by_tabs():
    lines = written(Stream(terminal=False), table).splitlines()

    assert lines[0] == "id\tstate\terror"
    assert lines[2] == "01KB7YYY-default.1.0\tready\t-"
    assert ESCAPE not in "".join(lines)


def test_on_a_terminal_a_table_fits_its_width_and_keeps_ids_whole():
    text = written(Stream(terminal=True), table, colour=False)

    assert all(len(line) <= 80 for line in text.splitlines())
    assert "01KB7ZZZ-default.1.0  dead   connection refused" in text
    assert "…" in text


def test_a_narrow_terminal_never_costs_an_id(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")

    assert "01KB7ZZZ-default.1.0" in written(Stream(terminal=True), table, colour=False)


def test_an_empty_table_is_its_titles():
    assert written(Stream(terminal=True), lambda output: output.table(COLUMNS, []), colour=False).startswith("ID")


def test_a_terminal_gets_colour():
    assert ESCAPE in written(Stream(terminal=True), table)


def test_a_pipe_gets_no_colour():
    assert ESCAPE not in written(Stream(terminal=False), table)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_can_forbid_colour(monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    assert ESCAPE not in written(Stream(terminal=True), table)


def test_no_color_wins_over_force_color(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESCAPE in written(Stream(terminal=False), table)

    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE not in written(Stream(terminal=False), table)


def test_an_option_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE in written(Stream(terminal=False), table, colour=True)

    monkeypatch.delenv("NO_COLOR")
    assert ESCAPE not in written(Stream(terminal=True), table, colour=False)


@pytest.mark.parametrize("terminal", [True, False])
def test_control_characters_in_data_reach_no_terminal(terminal):
    hostile = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\r\n\x00"

    def show(output):
        output.table([Column("ID", str)], [hostile])
        output.facts([("id", hostile)])
        output.line(hostile)
        output.text(hostile)
        output.heading(hostile)

    text = written(Stream(terminal=terminal), show, colour=False)

    assert not set(text) & set("\x1b\x07\x9b\u202e\r\x00")
    assert r"\x1b[2J" in text


def test_markup_in_data_is_only_text():
    def show(output):
        output.facts([("id", "[bold red]x[/] :smile:")])

    assert "[bold red]x[/] :smile:" in written(Stream(terminal=True), show, colour=False)


def test_text_of_several_lines_keeps_its_lines():
    assert visible("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"


def test_json_is_ascii_and_one_line_in_a_pipe():
    stream = Stream(terminal=False, encoding="ascii")

    Output(OutputWrapper(stream), OutputWrapper(stream), as_json=True).document({"id": "é\x1b\udc80"})

    assert stream.getvalue() == '{"id": "\\u00e9\\u001b\\udc80"}\n'
    assert json.loads(stream.getvalue()) == {"id": "é\x1b\udc80"}


def test_what_the_stream_cannot_carry_is_escaped():
    assert written(Stream(terminal=False, encoding="ascii"), lambda output: output.line("naïve")) == "na\\xefve\n"
    assert written(Stream(terminal=False), lambda output: output.line("lone \udc80")) == "lone \\udc80\n"


def test_times_are_relative_for_people_and_exact_for_programs():
    at = datetime(2026, 1, 31, 9, 0, 0, 5000, tzinfo=UTC)

    def show(output):
        output.facts([("at", at), ("took", timedelta(seconds=90))])

    assert "2026-01-31T09:00:00.005Z" in written(Stream(terminal=False), show)
    assert "90.000" in written(Stream(terminal=False), show)
    assert "1m 30s" in written(Stream(terminal=True), show, colour=False)


def test_a_moment_is_told_from_now():
    now = timezone.now()

    assert ago(now) == "now"
    assert ago(now - timedelta(seconds=12)) == "12s ago"
    assert ago(now + timedelta(minutes=5, seconds=1)) in {"in 5m", "in 5m 1s"}


def test_remarks_go_to_standard_error():
    out, err = Stream(terminal=False), Stream(terminal=False)
    output = Output(OutputWrapper(out), OutputWrapper(err), as_json=False)

    output.note("a remark")
    output.error("It broke.")

    assert out.getvalue() == ""
    assert err.getvalue() == "a remark\nError: It broke.\n"
