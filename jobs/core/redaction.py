"""What people are not shown: values under keys that name a secret, and the text that repeats them.

A key hides its value wherever it stands in a tree of data: in a payload, a result, the fields of a log line. Text has
no keys, so there two things are hidden: what looks like ``key=value`` with such a key, and the very values that were
hidden in the data beside it. An exception that quotes a password therefore shows neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

MASK = "•••"

SHORTEST_SECRET = 4
"""Characters. Shorter values are hidden where they stand, not wherever else their letters happen to occur."""

DEEPEST = 60
"""Levels of nesting that are looked through; what lies deeper is hidden."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_KEY = 200

_KEY = re.compile(r"""(?<![\w.-])([A-Za-z][\w.-]{0,63})["']?\s{0,3}(?:=|:(?!//))\s{0,3}""")
_VALUE = re.compile(
    r"""(["'])(?:(?!\1)[^\\\n]|\\.)*(?:\1|)|(?:(?:Bearer|Basic|Digest)\s+)?[^\s,;&)}\]"']+""", re.IGNORECASE
)
_CREDENTIALS = re.compile(r"(://[^\s/:@]{0,200}:)[^\s/@]{1,500}(?=@)")


class Redaction:
    """Hides by key. ``keys``: words that make a key's value a secret, in the order in which they stand in it:
    ``api_key`` is found in ``apiKey``, ``x-api-key`` and ``API_KEY_OLD``, and ``token`` not in ``max_tokens``.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._patterns = tuple(words for key in keys if (words := _words(key)))
        self.hides: Callable[[str], bool] = lru_cache(4096)(self._hides)
        """Whether values under this key are hidden."""

    def value(self, value: Any, names: Collection[str] = ()) -> Any:
        """The data with what is secret replaced by ``MASK``. ``names``: keys that hide too, as they are written."""
        return self._shown(value, frozenset(names), 0)

    def text(self, text: str, secrets: Iterable[str] = ()) -> str:
        """The text without these values, ``key=value`` of keys that hide, and passwords in addresses."""
        for secret in secrets:
            text = text.replace(secret, MASK)
        return _CREDENTIALS.sub(rf"\1{MASK}", "".join(self._without_pairs(text)))

    def secrets(self, value: Any, names: Collection[str] = ()) -> list[str]:
        """The texts that ``value`` would hide, in each form in which an error may quote them; the longest first."""
        found = {form for secret in self._hidden(value, frozenset(names), 0) for form in _forms(secret)}
        return sorted(found, key=len, reverse=True)

    def _hides(self, key: str) -> bool:
        words = _words(key)
        return any(
            words[start : start + len(pattern)] == pattern for pattern in self._patterns for start in range(len(words))
        )

    def _shown(self, value: Any, names: frozenset[str], depth: int) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        if depth >= DEEPEST:
            return MASK
        if isinstance(value, list):
            return [self._shown(item, names, depth + 1) for item in value]
        return {
            key: MASK if item is not None and self._is_secret(key, names) else self._shown(item, names, depth + 1)
            for key, item in value.items()
        }

    def _hidden(self, value: Any, names: frozenset[str], depth: int) -> Iterator[Any]:
        if depth >= DEEPEST:
            return
        if isinstance(value, list):
            for item in value:
                yield from self._hidden(item, names, depth + 1)
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from _leaves(item) if self._is_secret(key, names) else self._hidden(item, names, depth + 1)

    def _is_secret(self, key: object, names: frozenset[str]) -> bool:
        return key in names or self.hides(str(key)[:_LONGEST_KEY])

    def _without_pairs(self, text: str) -> Iterator[str]:
        shown_until = 0
        for key in _KEY.finditer(text):
            if key.start() < shown_until or not self.hides(key[1]):
                continue
            if value := _VALUE.match(text, key.end()):
                quote = value[1] or ""
                yield f"{text[shown_until : key.end()]}{quote}{MASK}{quote}"
                shown_until = value.end()
        yield text[shown_until:]


def restored(edited: Any, original: Any) -> Any:
    """What somebody made of masked data, with the original values where the mask was left as it is.

    By key and by position: an item of a list is restored where it stood.
    """
    if edited == MASK:
        return original
    if isinstance(edited, dict) and isinstance(original, dict):
        return {key: restored(value, original.get(key, value)) for key, value in edited.items()}
    if isinstance(edited, list) and isinstance(original, list):
        beside = [*original, *edited[len(original) :]]
        return [restored(value, beside[place]) for place, value in enumerate(edited)]
    return edited


@lru_cache(1024)
def _words(key: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(key))


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if depth >= DEEPEST:
        return
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth + 1)
    elif value is not None and not isinstance(value, bool):
        yield value


def _forms(secret: Any) -> Iterator[str]:
    """As it is, as Python quotes it, and as JSON does."""
    plain = str(secret)
    if len(plain.strip()) < SHORTEST_SECRET:
        return
    yield plain
    if isinstance(secret, str):
        yield repr(secret)[1:-1]
        yield json.dumps(secret)[1:-1]
        yield json.dumps(secret, ensure_ascii=False)[1:-1]
