"""How commands show what they have: one JSON document, tables for a terminal, plain text for a pipe.

Data goes to standard output and everything else to standard error, so that a pipe never carries a remark. What comes
from jobs (ids, messages, tracebacks) may hold anything: on its way to a terminal each control character is written out
as an escape, since a terminal would obey it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from django.core.management.base import OutputWrapper
from django.utils import timezone

from jobs.core.job import iso
from jobs.core.wording import visible
from jobs.management.durations import spoken
from jobs.management.progress import Display

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

GAP = "  "
"""Between two columns."""
ELASTIC_MINIMUM = 16
"""An elastic column is not made narrower than this; the lines then grow longer than the terminal."""

Item = TypeVar("Item")

Painted = tuple[str, str]
"""A piece of text and its style on a terminal: one of the values of ``STYLES``, "bold", "dim" or nothing."""

STYLES = {
    "succeeded": "green",
    "leased": "cyan",
    "running": "cyan",
    "retry_wait": "yellow",
    "scheduled": "blue",
    "blocked": "magenta",
    "dead": "bold red",
    "failed": "bold red",
    "crashed": "bold red",
    "warning": "yellow",
    "ok": "green",
    "skipped": "dim",
    "cancelled": "dim",
    "paused": "yellow",
    "gone": "bold red",
}
"""Colours of words. The word is always there: colour is never the only sign."""


@dataclass(frozen=True)
class Column(Generic[Item]):
    """One column of a table. ``value`` answers text, a number, moment, span or None; ``elastic``: cut to fit."""

    title: str
    value: Callable[[Item], object]
    right: bool = False
    elastic: bool = False


class Step(Protocol):
    """Moves a progress display: what is done so far, of how much (once known), and a word about now."""

    def __call__(self, done: float, *, total: float | None = None, note: str = "") -> None: ...


class Output:
    """Where one run of a command writes. Built anew for each run from its streams and options."""

    def __init__(
        self, stdout: OutputWrapper, stderr: OutputWrapper, *, as_json: bool, colour: bool | None = None
    ) -> None:
        """``colour``: True and False come from ``--force-color`` and ``--no-color``; None asks the environment."""
        self.as_json = as_json
        self._out, self._err = stdout, stderr
        self._colour_asked = colour
        self.rich = not as_json and self._is_rich(stdout)
        """Whether standard output is read by a person on a terminal, not by a program."""

    # -- data ---------------------------------------------------------------------------------------------------

    def document(self, value: Any) -> None:
        """One JSON document. ASCII only: JSON's own escapes are safe on any terminal and in any encoding."""
        indent = 2 if self._out.isatty() else None
        self._data(json.dumps(value, indent=indent, ensure_ascii=True, allow_nan=False) + "\n")

    def item(self, value: Any) -> None:
        """One JSON document of several, on a line of its own, which is read at once."""
        self._data(json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n")
        self.flush()

    def flush(self) -> None:
        """Lets readers of a pipe see what was written so far."""
        self._out.flush()

    def line(self, text: str) -> None:
        self._data(visible(text) + "\n")

    def painted(self, parts: Iterable[Painted]) -> None:
        """One line of text in colours, where there are any."""
        shown = [(visible(text), style) for text, style in parts]
        if not self.rich:
            self._data("".join(text for text, _ in shown) + "\n")
            return
        from rich.text import Text

        self._print(Text.assemble(*shown))

    def carries(self, text: str) -> bool:
        """Whether standard output can be written these characters."""
        try:
            text.encode(getattr(self._out, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def row(self, *cells: object) -> None:
        """One line of a few cells, for answers that come one by one."""
        self._data((GAP if self.rich else "\t").join(map(self._cell, cells)) + "\n")

    def text(self, text: str) -> None:
        """Text of several lines, such as a traceback."""
        self._data(visible(text, keep="\n\t").rstrip("\n") + "\n")

    def table(self, columns: Sequence[Column[Item]], items: Iterable[Item]) -> None:
        """A table for people; for programs one line per item, cells apart by tabs, under a line of titles."""
        rows = [[self._cell(column.value(item)) for column in columns] for item in items]
        if not self.rich:
            lines = [[column.title.lower() for column in columns], *rows]
            self._data("".join("\t".join(cells) + "\n" for cells in lines))
            return
        self._print(_table(columns, rows, self._width))

    def facts(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Names and values, one pair a line. Pairs whose value is None are left out."""
        shown = [(name, self._cell(value)) for name, value in pairs if value is not None]
        width = max((len(name) for name, _ in shown), default=0)
        if not self.rich:
            self._data("".join(f"{name:<{width}}  {value}\n" for name, value in shown))
            return
        from rich.text import Text

        for name, value in shown:
            self._print(Text.assemble((f"{name:<{width}}  ", "bold"), (value, _style(value))))

    def heading(self, text: str) -> None:
        if not self.rich:
            self._data(f"\n{visible(text)}\n")
            return
        from rich.text import Text

        self._print(Text("\n" + visible(text), style="bold underline"))

    # -- remarks ------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """A remark to the person at the keyboard, on standard error."""
        self._remark(visible(text) + "\n")

    def hint(self, text: str) -> None:
        """A remark that only helps a person: not written into logs and pipes."""
        if self.rich:
            self.note(text)

    def error(self, paragraph: str) -> None:
        if not self._colours(self._err):
            self._remark(f"Error: {visible(paragraph)}\n")
            return
        from rich.text import Text

        self._remark(self._render(Text.assemble(("Error: ", "bold red"), visible(paragraph)), self._err))

    # -- asking and waiting -------------------------------------------------------------------------------------

    @property
    def can_ask(self) -> bool:
        """Whether a person is there to answer: a question in a script would wait for ever."""
        return sys.stdin is not None and sys.stdin.isatty() and self._err.isatty()

    def ask(self, question: str) -> str:
        self._remark(visible(question) + " ")
        self._err.flush()
        return (sys.stdin.readline() or "").strip()

    @contextmanager
    def progress(self, what: str, total: float | None = None) -> Iterator[Step]:
        """Shows how far a long operation is, once it has taken two seconds; ``total`` may become known later."""
        # With --json a program reads standard error, where it expects nothing but the error document.
        display = Display(what, total, console=self._console(), line=(lambda _: None) if self.as_json else self.note)
        try:
            yield display.step
        finally:
            display.close()

    def _console(self) -> Console | None:
        """A console on standard error for things that move; None where nothing can move."""
        if not self._err.isatty() or os.environ.get("TERM") == "dumb":
            return None
        from rich.console import Console

        return Console(file=cast("IO[str]", self._err._out), no_color=not self._colours(self._err))

    # -- how ----------------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        """Columns of the terminal; ``COLUMNS`` overrides it."""
        return shutil.get_terminal_size((100, 24)).columns

    def _is_rich(self, stream: OutputWrapper) -> bool:
        if self._colour_asked or (self._colour_asked is None and os.environ.get("FORCE_COLOR")):
            return True
        return stream.isatty()

    def _colours(self, stream: OutputWrapper) -> bool:
        if self._colour_asked is not None:
            return self._colour_asked
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}

    def _cell(self, value: object) -> str:
        """One line of text. Moments are told from now to people, and exactly to programs."""
        match value:
            case None | "":
                return "-"
            case bool():
                return "yes" if value else "no"
            case datetime():
                return ago(value) if self.rich else str(iso(value))
            case timedelta():
                return spoken(value) if self.rich else f"{value.total_seconds():.3f}"
            case float():
                return f"{value:.3f}".rstrip("0").rstrip(".")
            case _:
                return visible(str(value))

    def _print(self, text: Text) -> None:
        self._data(self._render(text, self._out))

    def _render(self, text: Text, stream: OutputWrapper) -> str:
        from rich.console import Console

        colours = self._colours(stream)
        buffer = StringIO()
        console = Console(
            file=buffer,
            force_terminal=colours,
            color_system="standard" if colours else None,
            no_color=not colours,
            width=self._width,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        console.print(text, soft_wrap=True)
        return buffer.getvalue()

    def _data(self, text: str) -> None:
        _write(self._out, text)

    def _remark(self, text: str) -> None:
        _write(self._err, text)


def _table(columns: Sequence[Column[Any]], rows: Sequence[Sequence[str]], width: int) -> Text:
    """A table laid out by us: rich shortens all columns alike, but an id must stay whole to be copied.

    So only elastic columns give way to a narrow terminal.
    """
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    widths = [
        max(len(column.title), *(cell_len(row[index]) for row in rows)) if rows else len(column.title)
        for index, column in enumerate(columns)
    ]
    spare = width - sum(widths) - len(GAP) * (len(columns) - 1)
    for index, column in enumerate(columns):
        if column.elastic and spare < 0:
            natural = widths[index]
            widths[index] = max(min(natural, ELASTIC_MINIMUM), natural + spare)
            spare += natural - widths[index]

    def fitted(text: str, index: int) -> str:
        if cell_len(text) > widths[index]:
            return set_cell_size(text, widths[index] - 1) + "…"
        padding = " " * (widths[index] - cell_len(text))
        return padding + text if columns[index].right else text + padding

    lines = [Text(GAP.join(fitted(column.title, index) for index, column in enumerate(columns)), style="bold")]
    for row in rows:
        cells = [Text(fitted(cell, index), style=_style(cell)) for index, cell in enumerate(row)]
        lines.append(Text(GAP).join(cells))
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def ago(at: datetime) -> str:
    """``12s ago``, ``in 4m 10s``: short, and what a person wants to know first."""
    span = at - timezone.now()
    if abs(span) < timedelta(seconds=1):
        return "now"
    whole = timedelta(seconds=round(abs(span.total_seconds())))
    return f"in {spoken(whole)}" if span > timedelta() else f"{spoken(whole)} ago"


def _style(cell: str) -> str:
    return STYLES.get(cell.split(" ", 1)[0], "")


def _write(stream: OutputWrapper, text: str) -> None:
    """Writes text whatever the encoding of the stream: what it cannot carry is written as an escape."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # ``str`` as style: Django would paint everything on standard error red.
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding), style_func=str, ending="")
