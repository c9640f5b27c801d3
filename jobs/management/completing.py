"""What may come next on a command line: commands, verbs, options, their words, and the names of what there is now."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.core.management import get_commands, load_command_class

from jobs import api
from jobs.api import run_history

SECONDS = 1.0
"""Whoever presses Tab does not wait longer for names."""


def candidates(words: Sequence[str]) -> list[str]:
    """What the last word may become, after the words before it (without ``manage.py``). Nothing where nothing is known:
    a shell has no use for errors.
    """
    *before, begun = words or [""]
    try:
        found = _within(before[0], before[1:], begun) if before else get_commands()
        return sorted({word for word in found if word.startswith(begun)})
    except Exception:
        return []


def _within(command: str, words: Sequence[str], begun: str) -> Iterable[str]:
    parser: argparse.ArgumentParser = load_command_class(get_commands()[command], command).create_parser(
        "manage.py", command
    )
    option: argparse.Action | None = None  # whose value comes next
    passed = 0  # arguments that are no options
    for word in words:
        known = parser._option_string_actions.get(word)
        if known is not None:
            option = known if known.nargs != 0 else None
        elif option is not None:
            option = None
        elif (verbs := _verbs(parser)) is not None and word in verbs:
            parser = verbs[word]
        else:
            passed += 1
    if option is not None:
        return _values(option, command)
    if begun.startswith("-"):
        shown = (action for action in parser._actions if action.help != argparse.SUPPRESS)
        return (name for action in shown for name in action.option_strings)
    if (verbs := _verbs(parser)) is not None:
        return verbs
    arguments = [action for action in parser._actions if not action.option_strings]
    return _values(arguments[min(passed, len(arguments) - 1)], command) if arguments else ()


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser] | None:
    """The verbs that may come next here, with their parsers."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return None


def _values(action: argparse.Action, command: str) -> Iterable[str]:
    """The words that an option or argument takes, as far as they can be listed."""
    if action.choices:
        return map(str, action.choices)
    kind = command if action.metavar == "NAME" else str(action.metavar)
    with api.budget(SECONDS):
        return _NAMES.get(kind, tuple)()


def _names_of(things: Callable[[], Iterable[Any]]) -> Callable[[], Iterable[str]]:
    return lambda: [thing.name for thing in things()]


_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "POOL": _names_of(api.pools.list),
    "TYPE": api.job_types,
    "schedules": _names_of(api.schedules.list),
    "workflows": _names_of(run_history.definitions),
}
"""What stands in the help for a name, or the command that it is a name of → the names that there are."""
