"""In what two JSON values differ, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

DEEPEST = 3
"""Levels of objects that are looked into; what lies deeper is one value. A list always is."""


class Difference(msgspec.Struct, frozen=True):
    """A field that is not the same. ``UNSET``: it is not there."""

    path: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET

    def as_dict(self) -> dict[str, Any]:
        """Its JSON: ``before`` or ``after`` is left out where it is not there."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(path, value) of all that is no object with fields: ``{"a": {"b": 1}}`` has ``a.b``."""
    if isinstance(value, dict) and value and depth < DEEPEST:
        for name, child in value.items():
            yield from leaves(child, f"{path}.{name}" if path else str(name), depth + 1)
    elif path:
        yield path, value


def differences(before: Any, after: Any) -> list[Difference]:
    """Fields that are not the same in both, in the order of the older one."""
    old, new = dict(leaves(before)), dict(leaves(after))
    return [
        Difference(path, old.get(path, msgspec.UNSET), new.get(path, msgspec.UNSET))
        for path in {**old, **new}
        if path not in old or path not in new or old[path] != new[path]
    ]
