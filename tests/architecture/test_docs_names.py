"""What the documentation names is there: files, commands with their options, make targets, settings, Python names."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from django.apps import apps
from django.contrib.auth import get_permission_codename
from django.core.management import get_commands, load_command_class

from jobs.conf import Settings
from jobs.testing import CapturedJobs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
MADE_BY_THE_READER = {
    *(f"mysite/{name}.py" for name in ("asgi", "settings", "urls")),
    "jobs/lua/job_raise.lua",
    "orders/jobs.py",
    "shop/jobs.py",
    "tests/lua/test_job_raise.py",
    "var/samples/",
}

SUFFIXES = {".py", ".lua", ".html", ".js", ".css", ".md", ".toml", ".sh", ".json", ".txt"}

VERBS = ("add", "change", "delete", "view")


class Code(NamedTuple):
    page: str
    text: str
    in_block: bool

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


@cache
def code() -> list[Code]:
    """Lines of blocks, and what stands between backticks, of all pages."""
    found: list[Code] = []
    for page in PAGES:
        text, name = page.read_text(), str(page.relative_to(ROOT))
        blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
        rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
        found += [Code(name, line, True) for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        found += [Code(name, words, False) for words in re.findall(r"`([^`\n]+)`", rest)]
    return found


def test_files() -> None:
    for one in code():
        places = (ROOT, ROOT / "jobs", ROOT / "jobs" / "lua", (ROOT / one.page).parent)
        for name in re.findall(r"(?<![\w./<:$])[\w.-]+(?:/[\w.-]+)+/?(?![\w<*/])", one.text):
            is_folder = name.endswith("/") and (ROOT / name.split("/")[0]).exists()
            if (is_folder or Path(name).suffix in SUFFIXES) and name not in MADE_BY_THE_READER:
                assert any((place / name).exists() for place in places), one


def test_every_part_of_the_library_has_its_row_among_the_layers() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`jobs/(\w+)(?:\.py)?`", row)}
    parts = {path.stem for path in (ROOT / "jobs").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert parts - named == {"__init__", "migrations"}


@cache
def parser_of(command: str) -> argparse.ArgumentParser:
    return load_command_class(get_commands()[command], command).create_parser("manage.py", command)


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next((action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)), {})


def commands_in(text: str) -> Iterator[list[str]]:
    """Words of each command line. Without ``manage.py`` it is one if a command of ours stands first."""
    ours = {name for name, app in get_commands().items() if app == "jobs"}
    without_comment = re.split(r"\s+# ", text)[0]
    for part in re.split(r"[|;&]\s|\s>", without_comment):
        _, found, line = part.partition("manage.py ")
        words = (line if found else part).split()
        if words and words[0].islower() and (found or (words[0] in ours and len(words) > 1)):
            yield words


def test_commands_with_their_verbs_and_options() -> None:
    for one in code():
        for command, *words in commands_in(one.text):
            assert command in get_commands(), one
            parser = parser_of(command)
            if verbs := verbs_of(parser):
                verb, *words = words or ["…"]
                if not re.fullmatch(r"[a-z-]+", verb):
                    continue  # several, or any
                assert verb in verbs, one
                parser = verbs[verb]
            known = {option for action in parser._actions for option in action.option_strings}
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", " ".join(words))) <= known, one


def test_programs_and_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for one in code():
        for program in re.findall(r"(?<![\w/.])(?:bin|\.ci)/\w+", one.text):
            assert (ROOT / program).exists(), one
        assert set(re.findall(r"(?:^|[\s;])make ([a-z][a-z-]*)", one.text)) <= targets, one


def test_settings() -> None:
    known = {field.name.upper() for field in dataclasses.fields(Settings)}
    for one in code():
        assert set(re.findall(r"SCHEDULER\[[\"'](\w+)[\"']\]", one.text)) <= known, one


def test_python_can_be_parsed() -> None:
    for page in PAGES:
        for _, block in re.findall(r"^( *)```python\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE):
            ast.parse(textwrap.dedent(block), str(page))


def test_python_names() -> None:
    """Imports in blocks; and names between backticks that begin with a package of ours, or with the permissions."""
    permissions = {
        f"{model._meta.app_label}.{name}"
        for model in apps.get_models()
        for name, _ in (*model._meta.permissions, *((get_permission_codename(verb, model._meta), "") for verb in VERBS))
    }
    for one in code():
        for module, names in re.findall(r"^\s*from ((?:jobs|dashboard|samples)[\w.]*) import ([\w, ]+)", one.text):
            imported = [name.partition(" as ")[0].strip() for name in names.split(",")]
            assert all(hasattr(import_module(module), name) for name in imported), one
        dotted = re.match(r"(jobs(?:\.(?![A-Z]\d)[A-Za-z_]\w*)+)(\(|$)", one.text)
        if dotted and not one.in_block and dotted[1] not in (*permissions, "jobs.py"):
            in_tests = hasattr(CapturedJobs, dotted[1].removeprefix("jobs."))  # where they call it ``jobs``
            assert in_tests or can_be_found(dotted[1]), one


def can_be_found(dotted: str) -> bool:
    for cut in range(dotted.count(".") + 1):
        module, *names = dotted.rsplit(".", cut)
        with suppress(ImportError, AttributeError):
            return (
                attrgetter(".".join(names))(import_module(module)) is not None if names else bool(import_module(module))
            )
    return False
