"""Which job types are meant, wherever jobs are narrowed by type: one by its name, or all whose names begin alike.

``billing.charge`` is that type, ``billing.*`` every one that begins with ``billing.``, and ``*`` every one. The ``*``
stands at the end and nowhere else, so that a comparison costs the same for any pattern. No type has one in its name.
"""

from __future__ import annotations

from jobs.core.wording import shown
from jobs.exceptions import OptionInvalid

ANY_END = "*"


def means(pattern: str, type: str) -> bool:
    """Whether the pattern means this type."""
    if pattern.endswith(ANY_END):
        return type.startswith(pattern[: -len(ANY_END)])
    return type == pattern


def check_type_pattern(name: str, pattern: str) -> str:
    """The pattern as it was given. ``name`` is the option's; OptionInvalid for a ``*`` that is not at its end."""
    if ANY_END in pattern[:-1]:
        raise OptionInvalid(
            f"{name}: {shown(pattern)} has a * before its end",
            fix="Write a whole name, or its beginning and a *: billing.*",
        )
    return pattern
