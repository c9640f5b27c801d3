"""Writes docs/reference/ from the code, so that it says what the code does. ``make docs`` runs it.

Sources: the docstrings of ``jobs.exceptions``, the headers of the Lua files, the fields of ``jobs.conf.Settings`` with
.env.example, the parsers of the commands, and the structs of ``jobs.core.workflow``. A test generates all pages again
and compares.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")

import django  # noqa: E402

django.setup()

from django.core.management import load_command_class  # noqa: E402

from dashboard.api.documentation import document as openapi  # noqa: E402
from dashboard.api.documentation import nouns  # noqa: E402
from jobs import conf, exceptions  # noqa: E402
from jobs.core.workflow import schema  # noqa: E402
from jobs.store import scripts  # noqa: E402

REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by docs/generate.py from the code; edit there. -->"
DJANGOS_OWN = {
    "help",
    "version",
    "verbosity",
    "settings",
    "pythonpath",
    "traceback",
    "no_color",
    "force_color",
    "skip_checks",
}


def pages() -> dict[str, str]:
    """File name in docs/reference/ → its text."""
    return {
        "errors.md": errors(),
        "lua.md": lua(),
        "settings.md": settings(),
        "commands.md": commands(),
        "api.md": http_api(),
        "workflow.schema.json": json.dumps(schema(), indent=2, ensure_ascii=False) + "\n",
    }


def errors() -> str:
    """The error tree: name, code, and the first sentence of each docstring."""
    found = [
        kind
        for _, kind in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(kind, exceptions.SchedulerError) and kind is not exceptions.SchedulerError
    ]
    order = inspect.getsource(exceptions)
    found.sort(key=lambda kind: order.index(f"class {kind.__name__}("))
    rows = [f"| `{kind.__name__}` | `{kind.code}` | {first_paragraph(kind.__doc__)} |" for kind in found]
    return document(
        "Errors",
        """
        All are subclasses of `jobs.exceptions.SchedulerError`. The text of an error is its message; `error.code` is the
        stable word below, which command line and pages show too; `error.fix`, where there is one, says what to do.
        """,
        table(("error", "code", "meaning"), rows),
    )


def lua() -> str:
    """One section a script: the comment at its top, then its signature."""
    parts = [
        section(path.stem, path.read_text(), scripts.script(path.stem))
        for path in sorted(scripts.LUA_DIR.glob("*.lua"))
    ]
    includes = [
        f"| `{path.stem}` | {' '.join(header(path.read_text())[0])} |"
        for path in sorted((scripts.LUA_DIR / "include").glob("*.lua"))
    ]
    return document(
        "Lua scripts",
        """
        Each change of state is one script over the keys of one hash slot: it checks everything before its first write,
        so it happens whole or not at all. The file's first lines are its contract; this page is made of them.
        """,
        *parts,
        "## Includes",
        "Each holds one function or one table; `-- #include name` puts it into a script.",
        table(("include", "what it is for"), includes),
    )


def section(name: str, text: str, script: scripts.Script) -> str:
    sentences, facts = header(text)
    lines = [f"## {name}", " ".join(sentences)]
    lines += [f"- **{fact}**: {value}" for fact, value in facts]
    lines.append(f"- **Keys**: {', '.join(f'`{key}`' for key in script.keys) or 'none'}")
    arguments = [f"`{argument}`" for argument in script.arguments] + (["`items…`"] if script.takes_items else [])
    lines.append(f"- **Arguments**: {', '.join(arguments) or 'none'}")
    return lines[0] + "\n\n" + lines[1] + "\n\n" + "\n".join(lines[2:])


def header(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The leading comment as sentences and as (fact, value) lines such as State, Errors, Reply."""
    sentences: list[str] = []
    facts: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        line = line.removeprefix("--").strip()
        if line.startswith("#include"):
            continue
        if match := re.match(r"(State|Errors|Reply|Emits): (.*)", line):
            facts.append((match[1], match[2]))
        elif facts:
            facts[-1] = (facts[-1][0], f"{facts[-1][1]} {line}")
        else:
            sentences.append(line)
    return sentences, facts


def settings() -> str:
    rows = []
    described = field_docstrings()
    for setting in fields(conf.Settings):
        default = setting.default if setting.default_factory is MISSING else setting.default_factory()
        shown = str(default) if isinstance(default, Path) else default
        rows.append(f"| `{setting.name.upper()}` | `{shown!r}` | {described[setting.name]} |")
    return document(
        "Settings",
        "",
        "## The environment",
        "Read by `scheduler_project/settings.py`; every variable has a default that is safe for development.",
        table(("variable", "default", "meaning"), environment()),
        "## The `SCHEDULER` dict",
        "Read by the library from Django's settings. Unknown keys and wrong types are errors of `manage.py check`.",
        table(("key", "default", "meaning"), rows),
    )


def field_docstrings() -> dict[str, str]:
    """The string that stands below each field of ``Settings``."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(conf.Settings)))
    (kind,) = tree.body
    assert isinstance(kind, ast.ClassDef)
    found = {}
    for statement, following in zip(kind.body, kind.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            assert isinstance(statement.target, ast.Name)
            assert isinstance(following.value, ast.Constant)
            found[statement.target.id] = " ".join(str(following.value.value).split())
    return found


def environment() -> Iterator[str]:
    """The variables of .env.example, each described by the comment above it."""
    comment: list[str] = []
    for line in (ROOT / ".env.example").read_text().splitlines():
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
            continue
        name, assigned, default = line.partition("=")
        if assigned:
            yield f"| `{name}` | {f'`{default}`' if default else 'empty'} | {' '.join(comment)} |"
        comment = []


def commands() -> str:
    parts = []
    for path in sorted((ROOT / "jobs" / "management" / "commands").glob("[a-z]*.py")):
        parser = load_command_class("jobs", path.stem).create_parser("manage.py", path.stem)
        parts += command(f"{path.stem}", parser, 2)
    return document(
        "Commands",
        """
        `.venv/bin/python manage.py COMMAND`. Commands that print take `--json`, `--no-color`, `--force-color` and
        `--traceback` before or after the verb. What scripts may rely on (streams, exit codes, JSON) is said in
        [On the command line](../guides/command-line.md).
        """,
        *parts,
    )


def http_api() -> str:
    """One table a noun, from the OpenAPI document; below it what the addresses take."""
    parts = []
    for noun, operations in nouns(openapi("/api/v1/")).items():
        rows = [f"| `{address(one)}` | {' + '.join(one['scopes'])} | {one['summary']} |" for one in operations]
        parts += [f"## {noun}", table(("address", "scopes", "what it does"), rows)]
        parts += [f"`{address(one)}` takes {taken}." for one in operations if (taken := taken_by(one))]
    return document(
        "HTTP API",
        """
        Below `/api/v1`. How to ask, and what errors look like, is in [the guide](../guides/api.md). Every order also
        takes a `reason`. The shapes of answers are in `/api/v1/openapi.json`.
        """,
        *parts,
    )


def address(operation: dict[str, Any]) -> str:
    return f"{operation['method']} {operation['path'].removeprefix('/api/v1')}"


def taken_by(operation: dict[str, Any]) -> str:
    """Words after the question mark and fields of the body, without the reason that all have."""
    fields = [field for field in (*operation["words"], *operation["fields"]) if field["name"] != "reason"]
    return ", ".join(f"`{field['name']}` ({field['type']})" for field in fields)


def command(name: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    if parser.description:
        yield parser.description
    rows, verbs = [], {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            verbs = action.choices
        elif action.dest not in DJANGOS_OWN | {"as_json", "force_color"} and action.help != argparse.SUPPRESS:
            rows.append(f"| `{words(action)}` | {(action.help or '').replace('|', '│') % vars_of(action)} |")
    if rows:
        yield table(("argument", "meaning"), rows)
    for verb, verb_parser in verbs.items():
        yield from command(f"{name} {verb}", verb_parser, level + 1)


def words(action: argparse.Action) -> str:
    value = action.metavar or action.dest.upper()
    if not action.option_strings:
        return str(value)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def vars_of(action: argparse.Action) -> dict[str, object]:
    return {"default": action.default, "choices": action.choices, "prog": "manage.py"}


def document(title: str, introduction: str, *parts: str) -> str:
    text = [NOTE, f"# {title}", inspect.cleandoc(introduction), *parts]
    return "\n\n".join(part.strip() for part in text if part.strip()).replace("``", "`") + "\n"


def table(heads: tuple[str, ...], rows: list[str] | Iterator[str]) -> str:
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *rows])


def first_paragraph(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
        print(f"docs/reference/{name}")
