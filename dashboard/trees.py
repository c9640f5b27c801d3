"""Payloads and results as a reader meets them: a call in one line, a value as a tree that folds, JSON to be copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from dashboard import formats

TREE_DEPTH = 12
TREE_ITEMS = 500
TEXT_SHOWN = 2000
FOLD_ABOVE = 12


def call(payload: Any) -> str:
    """The first arguments of a job as a reader would write them: ``to="a@example.com", amount=3``."""
    if not isinstance(payload, dict):
        return ""
    shown = []
    for name, value in list(payload.items())[:4]:
        text = formats.shortened(_flat(value), 40)
        shown.append(f"{name}={text}")
    return formats.shortened(", ".join(shown), 120)


def tree(value: Any) -> SafeString:
    """A JSON value as nested, foldable lists; deep, long and wide ones are cut and say so."""
    budget = iter(range(TREE_ITEMS))
    if not isinstance(value, (dict, list)):
        return format_html('<p class="tree mono">{}</p>', _leaf(value))
    if not value:
        return format_html('<p class="tree mono">{}</p>', "{}" if isinstance(value, dict) else "[]")
    return format_html('<ul class="tree mono">{}</ul>', mark_safe("".join(_branches(value, budget, 1))))  # noqa: S308  # made of format_html


def raw_json(value: Any) -> str:
    """The value as JSON for the copy button; empty when it is too long to be carried twice."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError, RecursionError):
        return ""
    return text if len(text) <= 20_000 else ""


def _branches(value: dict[str, Any] | list[Any], budget: Iterator[int], depth: int) -> Iterator[str]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for number, (name, child) in enumerate(pairs):
        if next(budget, None) is None:
            yield format_html('<li class="cut">… {} more, not shown</li>', len(value) - number)
            return
        key = format_html('<span class="key">{}</span>', f"{_scalar(name)}:" if isinstance(name, str) else f"{name}:")
        if isinstance(child, (dict, list)) and child:
            yield _branch(key, child, budget, depth)
        else:
            yield format_html("<li>{} {}</li>", key, _leaf(child))


def _branch(key: SafeString, child: dict[str, Any] | list[Any], budget: Iterator[int], depth: int) -> SafeString:
    many = formats.plural(len(child), "key" if isinstance(child, dict) else "item")
    if depth >= TREE_DEPTH:
        return format_html('<li>{} <span class="cut">{}, too deep to show</span></li>', key, many)
    return format_html(
        '<li><details{}><summary>{} <span class="soft">{}</span></summary><ul>{}</ul></details></li>',
        SafeString(" open") if len(child) <= FOLD_ABOVE else "",
        key,
        many,
        mark_safe("".join(_branches(child, budget, depth + 1))),  # noqa: S308  # made of format_html
    )


def _leaf(value: Any) -> SafeString:
    text = "{}" if value == {} else "[]" if value == [] else _scalar(value)
    if len(text) > TEXT_SHOWN:
        return format_html(
            '{}<span class="cut">… {} more characters</span>', text[:TEXT_SHOWN], formats.count(len(text) - TEXT_SHOWN)
        )
    return format_html("{}", text)


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """As JSON; a string that cannot be encoded is shown as it is."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError):
        return repr(value)
