"""Scripts by name: the unpack block is the signature."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.store import scripts
from jobs.store.scripts import LUA_DIR, read_script, script

NAMES = sorted(path.stem for path in LUA_DIR.glob("*.lua"))

SOURCE = """-- Does something.
-- #include twice
local line = KEYS[1] -- zset
local other = KEYS[2] -- hash
local name = ARGV[1] -- what
local limit = tonumber(ARGV[2]) -- how many
local items = 3 -- ARGV[3..]: id, body
return twice(limit)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "twice.lua").write_text("local function twice(n)\n  return 2 * n\nend\n")
    (tmp_path / "something.lua").write_text(SOURCE)
    return tmp_path


def test_a_script_is_read_with_its_includes_and_its_signature(folder: Path) -> None:
    found = read_script(folder, "something")

    assert (found.keys, found.arguments, found.takes_items) == (("line", "other"), ("name", "limit"), True)
    assert "#include" not in found.source
    assert "return 2 * n" in found.source
    assert found.sha == hashlib.sha1(found.source.encode()).hexdigest()


def test_it_is_called_with_names_and_sent_in_order(folder: Path) -> None:
    keys = SimpleNamespace(other="K2", line="K1", unused="K3")

    packed = read_script(folder, "something").pack(keys, {"limit": 5, "name": "x"}, ["a", b"b"])

    assert packed == ["K1", "K2", "x", 5, "a", b"b"]


@pytest.mark.parametrize("arguments", [{}, {"name": 1}, {"name": 1, "limit": 2, "more": 3}, {"name": 1, "limits": 2}])
def test_a_call_that_does_not_fit_is_refused_before_the_server_is_asked(
    folder: Path, arguments: dict[str, object]
) -> None:
    keys = SimpleNamespace(line="K1", other="K2")

    with pytest.raises(TypeError, match=r"something.lua takes \(name, limit, items\)"):
        read_script(folder, "something").pack(keys, arguments, [])


def test_items_are_refused_where_none_are_taken(folder: Path) -> None:
    (folder / "plain.lua").write_text("local line = KEYS[1] -- zset\nreturn 1\n")

    with pytest.raises(TypeError, match=re.escape("plain.lua takes ()")):
        read_script(folder, "plain").pack(SimpleNamespace(line="K"), {}, ["a"])


def test_keys_that_lack_a_name_are_refused(folder: Path) -> None:
    with pytest.raises(AttributeError):
        read_script(folder, "something").pack(SimpleNamespace(line="K1"), {"name": 1, "limit": 2}, [])


@pytest.mark.parametrize(
    "source",
    [
        "local a = KEYS[2] -- zset\n",
        "local a = KEYS[1] -- zset\nlocal b = KEYS[3] -- zset\n",
        "local a = ARGV[2] -- what\n",
        "local a = ARGV[1] -- what\nlocal items = 3 -- ARGV[3..]: id\n",
    ],
)
def test_a_signature_with_a_gap_is_refused(folder: Path, source: str) -> None:
    (folder / "gap.lua").write_text(source)

    with pytest.raises(ValueError, match=r"gap\.lua"):
        read_script(folder, "gap")


def test_a_folder_of_broken_copies_can_be_used_instead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULER_LUA_DIR", str(folder))
    script.cache_clear()
    try:
        assert script("something").arguments == ("name", "limit")
    finally:
        script.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_each_file_says_what_it_does_and_explains_its_signature(name: str) -> None:
    lines = (LUA_DIR / f"{name}.lua").read_text().splitlines()

    assert lines[0].startswith("-- ")
    assert re.search(r"^-- (State|Reply|Errors): ", "\n".join(lines), re.MULTILINE) or name.startswith("pool_")
    unpacked = [line for line in lines if re.match(r"local \w+ = (tonumber\()?(KEYS|ARGV)\[\d+\]", line)]
    assert unpacked
    assert [line for line in unpacked if " -- " not in line] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_position_of_a_call_is_named(name: str) -> None:
    """Nothing but the unpack block reads a fixed position, so that the signature is whole."""
    text = (LUA_DIR / f"{name}.lua").read_text()
    named = set(re.findall(r"^local \w+ = (?:tonumber\()?((?:KEYS|ARGV)\[\d+\])", text, re.MULTILINE))

    assert set(re.findall(r"(?:KEYS|ARGV)\[\d+\]", text)) == named


@pytest.mark.parametrize("name", NAMES)
def test_each_include_is_used_and_each_function_is_included(name: str) -> None:
    source = script(name).source
    included = re.findall(r"^-- #include (\w+)$", (LUA_DIR / f"{name}.lua").read_text(), re.MULTILINE)

    assert len(set(included)) == len(included)
    for include in included:
        defined = re.findall(
            r"^local function (\w+)\(", (LUA_DIR / "include" / f"{include}.lua").read_text(), re.MULTILINE
        )
        assert all(f"local function {function}(" in source for function in defined)
        called = [function for function in defined if len(re.findall(rf"\b{function}\(", source)) > 1]
        assert called or not defined, f"{name} includes {include} and uses nothing of it"


def test_the_types_of_keys_are_checked_before_anything_is_done(folder: Path) -> None:
    lines = read_script(folder, "something").source.splitlines()

    checks = lines.index("redis.call('ZCARD', line) redis.call('HLEN', other)")
    assert lines[checks - 1].startswith("local items = 3")
    assert lines[checks + 1] == "return twice(limit)"


def test_a_key_of_no_known_type_is_refused(folder: Path) -> None:
    (folder / "odd.lua").write_text("local line = KEYS[1] -- set of ids\nreturn 1\n")

    with pytest.raises(ValueError, match=r"odd\.lua: 'set' is no type of key"):
        read_script(folder, "odd")


def test_a_script_that_only_reads_needs_no_checks(folder: Path) -> None:
    (folder / "look.lua").write_text("-- Looks.\n-- Reads only.\nlocal line = KEYS[1] -- zset\nreturn 1\n")

    assert "ZCARD" not in read_script(folder, "look").source
    assert not read_script(folder, "look").changes


def test_each_file_has_tests_of_its_own() -> None:
    """Scripts of one noun may share a file."""
    tests = "".join(path.read_text() for path in (Path(__file__).parent.parent / "lua").glob("test_*.py"))

    assert [name for name in NAMES if f'"{name}"' not in tests] == []


def test_the_folder_is_where_the_module_says() -> None:
    assert scripts.LUA_DIR.name == "lua"
    assert len(NAMES) > 20
