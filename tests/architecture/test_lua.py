"""The Lua files: each says what it does, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.core.states import TRANSITIONS, JobState
from jobs.store import failures, scripts

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(scripts.LUA_DIR.glob("*.lua"))
INCLUDES = sorted((scripts.LUA_DIR / "include").glob("*.lua"))
STATES = {str(state) for state in JobState}

every_script = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
every_include = pytest.mark.parametrize("path", INCLUDES, ids=lambda path: path.stem)


def fact(path: Path, name: str) -> str:
    match = re.search(rf"^-- {name}: (.*)$", path.read_text(), re.MULTILINE)
    return match[1] if match else ""


def included(text: str) -> list[str]:
    return re.findall(r"^-- #include (\w+)$", text, re.MULTILINE)


@every_script
def test_a_script_begins_with_a_sentence_and_its_signature_is_in_order(path):
    assert re.match(r"-- [A-Z].*", path.read_text()), "the first line says in a sentence what the script does"
    assert scripts.script(path.stem).keys


@every_script
def test_the_errors_in_the_header_are_those_in_the_code_and_each_has_a_class(path):
    raised = set(re.findall(r"error_reply\(['\"]([A-Z_]+) ", scripts.script(path.stem).source))
    named = set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", fact(path, "Errors")))

    assert raised == named
    assert raised <= set(failures._ERRORS)


@every_script
def test_the_transitions_in_the_header_are_allowed(path):
    for change in re.split(r"[;,] (?=\w+[^,;]*->)", re.sub(r"\([^)]*\)", "", fact(path, "State"))):
        before, arrow, after = change.partition("->")
        sources = [word for word in re.findall(r"\w+", before) if word in STATES]
        targets = [word for word in re.findall(r"\w+", after) if word in STATES]
        assert not arrow or sources or targets, change
        for source in sources:
            for target in targets:
                assert source == target or target in TRANSITIONS[JobState(source)], f"{source} -> {target}"


@every_script
def test_a_script_has_tests(path):
    tests = [*(ROOT / "tests" / "lua").glob("*.py"), *(ROOT / "tests" / "engine").glob("*.py")]

    assert any(re.search(rf"\b{path.stem}\b", test.read_text()) or path.stem in test.stem for test in tests)


@every_script
def test_a_script_takes_part_in_the_code(path):
    python = [source.read_text() for source in (ROOT / "jobs").rglob("*.py")]

    assert any(f'"{path.stem}"' in text for text in python), "no code runs this script"


@every_include
def test_an_include_is_used_and_defines_what_its_name_says(path):
    users = [other for other in SCRIPTS if path.stem in included(other.read_text())]

    assert users, "no script includes it"
    assert re.match(r"-- [A-Z]", path.read_text())


@every_script
def test_includes_stand_after_what_they_need(path):
    """An include that calls another one's function needs it above itself."""
    names = included(path.read_text())
    for position, name in enumerate(names):
        needs = re.search(r"Needs: ([\w, ]+)\.", (scripts.LUA_DIR / "include" / f"{name}.lua").read_text())
        for needed in re.findall(r"\w+", needs[1]) if needs else []:
            assert needed in names[:position], f"{name} needs {needed} before it"
