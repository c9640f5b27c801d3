"""The words of the command line: the parser itself, and the options that several commands share.

Filters carry the same names as in the URLs of the dashboard and the HTTP API.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import CommandParser, DjangoHelpFormatter

from jobs.api import JobFilter, workers
from jobs.core.states import JobState
from jobs.core.type_pattern import check_type_pattern
from jobs.exceptions import OptionInvalid, PayloadInvalid, PayloadTooLarge
from jobs.management.durations import duration, since
from jobs.management.errors import usage

MAX_LIMIT = 1_000
"""More than this is not fetched in one page; ask for the next with ``--cursor``."""
MAX_INPUT_BYTES = 16 * 1024 * 1024
"""No payload may be near this size: a wrong file is refused before it fills the memory."""

FILTERS = ("state", "pool", "type", "tag", "group", "search", "since", "older", "worker", "attempts")

DEPLOY = "deploy"
"""Instead of a moment: when the newest version of the code was first told of."""

_MISSING = "\0"
"""Stands for an option without its value; no command line can hold it."""


class HelpFormatter(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Django's order of options; examples keep their lines."""


class Parser(CommandParser):
    """Says in one paragraph what is wrong with a command line, with the nearest word that would have been right.

    Options cannot be shortened: a script that says ``--sta`` would change its meaning with the next option added.
    """

    def __init__(self, *, examples: str = "", **options: Any) -> None:
        options.setdefault("formatter_class", HelpFormatter)
        options.setdefault("allow_abbrev", False)
        options.setdefault("epilog", _examples(examples))
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        raise usage(f"{self.prog}: {message}{self._nearest(message)}", fix=f"See '{self.prog} --help'.")

    def _nearest(self, message: str) -> str:
        """Did-you-mean for a word that the message quotes or calls unrecognized."""
        if "invalid choice: " in message:
            wrong = message.split("invalid choice: ", 1)[1].split(" (", 1)[0].strip("'\"")
            known = {choice for action in _actions(self) for choice in map(str, action.choices or ())}
        elif "unrecognized arguments: " in message:
            wrong = message.split("unrecognized arguments: ", 1)[1].split()[0].split("=")[0]
            known = {option for action in _actions(self) for option in action.option_strings}
        else:
            return ""
        near = difflib.get_close_matches(wrong, known, n=1)
        return f". Did you mean {near[0]!r}?" if near else ""


class Verbs:
    """The verbs of a command such as ``jobs``: each with its own options, help and examples."""

    def __init__(self, parser: Parser) -> None:
        self._choices = parser.add_subparsers(
            title="verbs", dest="verb", metavar="VERB", required=True, parser_class=Parser
        )

    def add(self, name: str, run: Callable[..., None], *, help: str, examples: str = "") -> Parser:
        parser = self._choices.add_parser(name, help=help, description=help, examples=examples)
        assert isinstance(parser, Parser)
        parser.set_defaults(run=run)
        add_common(parser, top=False)
        return parser


def add_common(parser: Parser, *, top: bool) -> None:
    """Options of every command. They may stand before or after the verb: below the top they only speak when given."""
    absent = argparse.SUPPRESS
    group = parser.add_argument_group("output and errors")
    group.add_argument(
        "--json",
        action="store_true",
        dest="as_json",
        default=False if top else absent,
        help="one JSON document on standard output; an error is one on standard error",
    )
    colours = group.add_mutually_exclusive_group()
    colours.add_argument(
        "--no-color", action="store_true", default=False if top else absent, help="no colours (NO_COLOR does the same)"
    )
    colours.add_argument(
        "--force-color",
        action="store_true",
        default=False if top else absent,
        help="colours and tables even into a pipe (FORCE_COLOR does the same)",
    )
    group.add_argument(
        "--traceback",
        action="store_true",
        default=False if top else absent,
        help="on an error, also say where in the code it happened",
    )
    # Django's own, the same for every command: accepted everywhere, not repeated in each help text.
    group.add_argument("--settings", default=None if top else absent, help=absent)
    group.add_argument("--pythonpath", default=None if top else absent, help=absent)
    group.add_argument("-v", "--verbosity", type=int, choices=range(4), default=1 if top else absent, help=absent)
    group.add_argument("--skip-checks", action="store_true", default=False if top else absent, help=absent)


# -- which jobs -------------------------------------------------------------------------------------------------


def add_ids(parser: Parser, *, many: bool = True, optional: bool = False) -> None:
    nargs = ("*" if optional else "+") if many else None
    parser.add_argument("ids", metavar="ID", nargs=nargs, help="id of a job")


REVEALED = "Values that pages mask stand in this in full: keep it as you keep a password. The audit log has an entry."
"""Said beside a copy that must be whole, because it is going to be read back."""


def add_reveal(parser: Parser) -> None:
    parser.add_argument(
        "--reveal", action="store_true", help="show secrets too, which are masked otherwise; the audit log tells"
    )


def _state(word: str) -> str:
    """A state by its name, or by the word that tables have for it."""
    return JobState.LEASED.value if word == "running" else word


def _since(text: str) -> datetime | str:
    """A moment; ``deploy`` as it stands, since the store is asked only once the command runs."""
    return DEPLOY if text.strip() == DEPLOY else since(text)


def type_pattern(text: str) -> str:
    """A job type, or the beginning of several and a ``*``."""
    try:
        return check_type_pattern("type", text)
    except OptionInvalid as problem:
        raise argparse.ArgumentTypeError(f"{problem}. {problem.fix}") from None


def add_filters(parser: Parser, *, states: bool = True) -> None:
    group = parser.add_argument_group("filters")
    if states:
        group.add_argument(
            "--state",
            action="append",
            type=_state,
            choices=[state.value for state in JobState],
            default=None,
            metavar="STATE",
            help="only jobs in this state (running is another word for leased); give it again for more states",
        )
    group.add_argument("--pool", metavar="POOL", help="only jobs of this pool")
    group.add_argument(
        "--type", type=type_pattern, metavar="TYPE", help="only jobs of this type; 'billing.*': of all that begin so"
    )
    group.add_argument("--tag", metavar="TAG", help="only jobs with this tag")
    group.add_argument("--group", metavar="FINGERPRINT", help="only jobs that ended with this error: see 'dlq groups'")
    group.add_argument("--search", metavar="TEXT", help="only jobs whose id, type, tags, meta or error hold this text")
    group.add_argument(
        "--since",
        type=_since,
        metavar="WHEN",
        help="only jobs created since: 5m, 2h, 7d, an ISO 8601 time, or deploy: the newest that workers told of",
    )
    group.add_argument(
        "--older", type=since, metavar="WHEN", help="only jobs in their present state for longer than 5m, 2h, 7d"
    )
    group.add_argument("--worker", metavar="TEXT", help="only jobs that a worker with this in its name has or had")
    group.add_argument("--attempts", type=positive, metavar="N", help="only jobs that were started at least N times")


def add_page(parser: Parser) -> None:
    parser.add_argument(
        "--limit", type=_limit, default=50, metavar="N", help=f"at most N items (default 50, up to {MAX_LIMIT})"
    )
    parser.add_argument("--cursor", metavar="CURSOR", help="go on where the page before ended")


def add_bulk(parser: Parser, what: str, *, states: bool = True) -> None:
    """Ids, or ``--all`` with filters."""
    add_ids(parser, optional=True)
    parser.add_argument("--all", action="store_true", help=what)
    add_filters(parser, states=states)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only say how many and which; change nothing")
    parser.add_argument(
        "--background", action="store_true", help="with --all: worker hosts do it; see 'bulk show' how far they are"
    )


def add_pause(parser: Parser) -> None:
    """Options of every pause."""
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; shown wherever the pause is")
    parser.add_argument("--for", dest="span", type=duration, metavar="SPAN", help="resume by itself after: 30m, 1h")


def job_filter(options: dict[str, Any], *, states: tuple[JobState, ...] | None = None) -> JobFilter:
    """The filter that the options describe; ``states`` where the command itself decides them."""
    chosen = states if states is not None else tuple(JobState(state) for state in options["state"] or ())
    return JobFilter(
        states=chosen,
        pool=options["pool"],
        type=options["type"],
        tag=options["tag"],
        search=options["search"],
        fingerprint=options["group"],
        since=workers.newest_release().at if options["since"] == DEPLOY else options["since"],
        before=options["older"],
        worker=options["worker"],
        attempts=options["attempts"],
    )


def is_filtered(options: dict[str, Any]) -> bool:
    return any(options.get(name) is not None for name in FILTERS)


# -- payloads ---------------------------------------------------------------------------------------------------


def add_payload(parser: Parser, *, what: str) -> None:
    group = parser.add_argument_group("payload")
    group.add_argument("--payload", nargs="?", const=_MISSING, metavar="JSON", help=f"{what} as a JSON object")
    group.add_argument("--payload-file", nargs="?", const=_MISSING, metavar="FILE", help="a file that holds it")
    # An option, not a positional: argparse takes positionals only side by side, and "-" may come last.
    group.add_argument("-", action="store_true", dest="stdin", help="read it from standard input")


def payload_from(options: dict[str, Any]) -> dict[str, Any] | None:
    """The payload that the options give, or None when they give none.

    Raises PayloadInvalid for what is not one JSON object and PayloadTooLarge for a file that can be no payload.
    """
    text, file, stdin = options["payload"], options["payload_file"], options["stdin"]
    if stdin and _MISSING in (text, file):  # "--payload -", "--payload-file -"
        text, file = (None if given == _MISSING else given for given in (text, file))
    if _MISSING in (text, file) or [text is not None, file is not None, stdin].count(True) > 1:
        raise usage(
            "The payload is given twice or not at all.",
            fix="Write one of --payload JSON, --payload-file FILE and - (standard input).",
        )
    if text is not None:
        return parse_payload(text, "--payload")
    if file is not None:
        return parse_payload(read_input(str(file), "payload"), str(file))
    if stdin:
        return parse_payload(read_input("-", "payload"), "standard input")
    return None


def parse_payload(text: str | bytes, source: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise PayloadInvalid(f"The payload from {source} is nested too deeply.", fix="Flatten it.") from None
    except ValueError as error:  # covers wrong JSON and bytes that are not UTF-8
        raise PayloadInvalid(
            f"The payload from {source} is not JSON: {error}.",
            fix='Write a JSON object, in a shell between single quotes: --payload \'{"to": "ana@example.com"}\'.',
        ) from error
    if not isinstance(value, dict):
        raise PayloadInvalid(
            f"The payload from {source} is a JSON {_kind(value)}, not an object.",
            fix="A payload holds the keyword arguments of the job type: '{\"name\": value}'.",
        )
    return value


def read_input(source: str, what: str) -> bytes:
    """The content of a file, or of standard input for ``-``. ``what`` it is, for the words of refusals."""
    try:
        if source == "-":
            return _limited(sys.stdin.buffer.read(MAX_INPUT_BYTES + 1), "standard input", what)
        with Path(source).open("rb") as file:
            return _limited(file.read(MAX_INPUT_BYTES + 1), source, what)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = getattr(error, "strerror", None) or error
        raise usage(f"The {what} file {source!r} cannot be read: {reason}.", fix="Check the path.") from error


def _limited(content: bytes, source: str, what: str) -> bytes:
    if len(content) > MAX_INPUT_BYTES:
        raise PayloadTooLarge(
            f"The {what} from {source} is larger than {MAX_INPUT_BYTES:,} bytes.",
            fix="Store the data elsewhere and pass its address.",
        )
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed in JSON")


def _kind(value: Any) -> str:
    match value:
        case list():
            return "array"
        case str():
            return "string"
        case bool() | None:
            return "literal"
        case _:
            return "number"


# -- small parts ------------------------------------------------------------------------------------------------


def pair(text: str) -> tuple[str, str]:
    """``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def positive(text: str) -> int:
    return _from(1, text)


def not_negative(text: str) -> int:
    return _from(0, text)


def _limit(text: str) -> int:
    return min(positive(text), MAX_LIMIT)


def _from(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
    return number


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All options of a parser and of its verbs."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _actions(verb)


def _examples(examples: str) -> str | None:
    lines = [line.strip() for line in examples.strip().splitlines()]
    return "examples:\n" + "\n".join(f"  {line}" for line in lines) if lines else None
