"""Lua scripts by name, with named arguments.

The unpack block at the top of a Lua file is its signature, and this module reads it::

    local ready = KEYS[1]  -- zset: … -- the key comes from the attribute of that name of the keys object
    local limit = tonumber(ARGV[1])   -- the argument ``limit``
    local items = 2 -- ARGV[2..]: …   -- the rest: ``items``

``-- #include name`` is replaced by ``include/name.lua``; a line ``-- Reads only.`` says that nothing is written.

A server without memory left refuses what brings it new work, in scripts with a line ``-- Brings work.``. All others run
all the same: they bring what is there to its end, and only that makes room.

Scripts are isolated, but not rolled back: so that a key of the wrong type cannot stop one half-way, the types that the
signature names are checked before the first statement. A check costs as much as a write: a script that each job passes
says ``-- Checks its keys itself.``, and reads or checks what it writes before its first write.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

LUA_DIR = Path(__file__).resolve().parent.parent / "lua"

_INCLUDE = re.compile(r"^-- #include (\w+)$", re.MULTILINE)
_KEY = re.compile(r"^local (\w+) = KEYS\[(\d+)\]", re.MULTILINE)
_TYPED_KEY = re.compile(r"^local (\w+) = KEYS\[\d+\] -- (\w+)", re.MULTILINE)
_SIGNATURE_END = re.compile(r"\A.*^local \w+ = [^\n]*(?:KEYS|ARGV)\[[^\n]*\n", re.MULTILINE | re.DOTALL)
_ARGUMENT = re.compile(r"^local (\w+) = (?:tonumber\()?ARGV\[(\d+)\]", re.MULTILINE)
_READS_ONLY = re.compile(r"^-- Reads only\.$", re.MULTILINE)
_CHECKS_ITSELF = re.compile(r"^-- Checks its keys itself\.$", re.MULTILINE)
_BRINGS_WORK = re.compile(r"^-- Brings work\.$", re.MULTILINE)
_ITEMS = re.compile(r"^local items = (\d+) -- ARGV\[\1\.\.\]", re.MULTILINE)


_CHECKS = {
    "string": "STRLEN",
    "hash": "HLEN",
    "zset": "ZCARD",
    "list": "LLEN",
    "stream": "XLEN",
    "prefix": None,
}
"""Type of a key → a command that takes no time and fails on every other type. A prefix is no key itself."""


class Call(NamedTuple):
    """What one call gives to a script."""

    keys: object
    arguments: Mapping[str, Any]
    items: Sequence[Any] = ()


class Script(msgspec.Struct, frozen=True):
    """One Lua file, ready to run."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    takes_items: bool
    changes: bool  # False: it only reads
    is_checked: bool  # whether the types of all keys are checked before its first statement
    keys_of: Callable[[Any], Iterable[Any]]
    arguments_of: Callable[[Any], Iterable[Any]]

    def pack(self, keys: object, arguments: Mapping[str, Any], items: Sequence[Any]) -> list[Any]:
        """Keys and arguments in the order of the signature; TypeError where they do not fit it."""
        if len(arguments) != len(self.arguments) or (items and not self.takes_items):
            self._refuse(arguments)
        try:
            packed = [*self.keys_of(keys), *self.arguments_of(arguments)]
        except KeyError:
            self._refuse(arguments)
        packed += items
        return packed

    def _refuse(self, arguments: Mapping[str, Any]) -> None:
        wanted = ", ".join(self.arguments + (("items",) if self.takes_items else ()))
        raise TypeError(f"{self.name}.lua takes ({wanted}), not ({', '.join(arguments)})")


def read_script(directory: Path, name: str) -> Script:
    """Reads one file with its includes. ValueError where the unpack block skips a position."""
    text = (directory / f"{name}.lua").read_text()
    body = _INCLUDE.sub(lambda match: (directory / "include" / f"{match[1]}.lua").read_text().rstrip(), text)
    keys = _in_order(name, _KEY.findall(text))
    arguments = _in_order(name, _ARGUMENT.findall(text))
    changes = not _READS_ONLY.search(text)
    is_checked = changes and not _CHECKS_ITSELF.search(text)
    if is_checked:
        body = _SIGNATURE_END.sub(lambda match: match[0] + _type_checks(name, text), body, count=1)
    if changes:
        body = f"#!lua{'' if _BRINGS_WORK.search(text) else ' flags=allow-oom'}\n{body}"
    items = _ITEMS.search(text)
    if items and int(items[1]) != len(arguments) + 1:
        raise ValueError(f"{name}.lua: items begin at ARGV[{items[1]}], after {len(arguments)} named arguments")
    sha = hashlib.sha1(body.encode(), usedforsecurity=False).hexdigest()
    return Script(
        name=name,
        source=body,
        sha=sha,
        keys=keys,
        arguments=arguments,
        takes_items=bool(items),
        changes=changes,
        is_checked=is_checked,
        keys_of=_all(attrgetter, keys),
        arguments_of=_all(itemgetter, arguments),
    )


def _all(getter: Callable[..., Callable[[Any], Any]], names: tuple[str, ...]) -> Callable[[Any], Iterable[Any]]:
    """One call for all names: ``attrgetter`` and ``itemgetter`` answer with a tuple where they have several."""
    if len(names) > 1:
        return getter(*names)
    return lambda source: [getter(name)(source) for name in names]


def _type_checks(name: str, text: str) -> str:
    try:
        checks = [(_CHECKS[kind], key) for key, kind in _TYPED_KEY.findall(text)]
    except KeyError as error:
        raise ValueError(f"{name}.lua: {error} is no type of key; one of {', '.join(_CHECKS)} is") from None
    return " ".join(f"redis.call('{command}', {key})" for command, key in checks if command) + "\n"


def _in_order(name: str, found: list[tuple[str, str]]) -> tuple[str, ...]:
    for position, (variable, index) in enumerate(found, start=1):
        if int(index) != position:
            raise ValueError(f"{name}.lua: {variable} is at position {index}, expected {position}")
    return tuple(variable for variable, _ in found)


@cache
def script(name: str) -> Script:
    """The script of this name. ``SCHEDULER_LUA_DIR`` lets tests run deliberately broken copies."""
    return read_script(Path(os.environ.get("SCHEDULER_LUA_DIR") or LUA_DIR), name)
