"""Values in payloads that are known only while a run goes on.

    {"day": {"$from": "run.payload.day"}, "rows": {"$from": "extract.result.rows", "default": []}}

A reference names a node, ``run`` or ``each``, then one of its fields, then the way into it: names of objects and
positions of lists, with dots between. There is no code in it. ``{"$literal": …}`` is for data that would look like a
template. A payload as a whole may be a template too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from jobs.core.parents import KEEP_IT_ELSEWHERE, Ended, is_cut, too_large
from jobs.core.wording import did_you_mean, shown
from jobs.core.workflow.definition import EACH, RUN

FROM, DEFAULT, LITERAL = "$from", "default", "$literal"
FIELDS_OF_RUN = ("payload",)
FIELDS_OF_NODES = ("result", "error", "state")
FIELDS_OF_EACH = ("item", "index")

LONGEST_POSITION = 9
"""Digits of a position in a list: nothing that is stored has more items."""


class TemplateError(ValueError):
    """A template that cannot be read, or (while a run goes on) one whose value is not there. ``fix`` as in errors."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class ValueTooLarge(TemplateError):
    """The value is there, and more than is handed on: no default stands for it."""


class Reference(msgspec.Struct, frozen=True):
    """``extract.result.rows.0``: where a value comes from."""

    source: str  # key of a node, "run", or "each"
    field: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.source, self.field, *self.path))


class Item(msgspec.Struct, frozen=True):
    """What a node is run for, of a list."""

    item: Any
    index: int


def parse(text: object) -> Reference:
    """Raises TemplateError saying what to write."""
    if not isinstance(text, str):
        raise TemplateError(f"{FROM}: expected text, got {shown(text)}", 'Write {"$from": "extract.result.rows"}.')
    source, *rest = text.split(".")
    fields = {RUN: FIELDS_OF_RUN, EACH: FIELDS_OF_EACH}.get(source, FIELDS_OF_NODES)
    if not source or not rest or "" in rest:
        raise TemplateError(
            f"{shown(text)} does not say where the value comes from",
            'Write a node (or "run"), a field, and the way into it: "extract.result.rows.0".',
        )
    if rest[0] not in fields:
        raise TemplateError(f"{shown(text)}: {shown(rest[0])} is no field of {source!r}", did_you_mean(rest[0], fields))
    return Reference(source, rest[0], tuple(rest[1:]))


def references(payload: Any) -> Iterator[Reference]:
    """All of them, wherever they stand. Raises TemplateError at the first object that only looks like a template."""
    for found in references_and_errors(payload):
        if isinstance(found, TemplateError):
            raise found
        yield found


def references_and_errors(payload: Any) -> Iterator[Reference | TemplateError]:
    """All of them, and in the place of each that cannot be read what is wrong with it."""
    if isinstance(payload, Mapping):
        try:
            is_template = _is_template(payload)
            if FROM in payload and is_template:
                yield parse(payload[FROM])
        except TemplateError as error:
            yield error
            return
        if not is_template:
            for value in payload.values():
                yield from references_and_errors(value)
    elif isinstance(payload, list | tuple):
        for value in payload:
            yield from references_and_errors(value)


def known_and_unknown(payload: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]] | None:
    """The payload as far as it is known before a run, and the arguments that hold a reference (null in the payload).

    None where the payload as a whole is a reference.
    """
    if _is_template(payload):
        if LITERAL not in payload:
            return None
        payload = payload[LITERAL]
    unknown = frozenset(name for name, value in payload.items() if any(True for _ in references(value)))
    return {name: None if name in unknown else _filled(value, _no_value) for name, value in payload.items()}, unknown


def render(
    payload: Mapping[str, Any], run_payload: Any, parents: Mapping[str, Ended], each: Item | None = None
) -> dict[str, Any]:
    """The payload with values in place of its templates. TemplateError for a value that is not there."""
    filled = value(payload, run_payload, parents, each)
    if isinstance(filled, dict):
        return filled
    raise TemplateError(f"The payload is {_outline(filled)}", "A payload is an object: the arguments by name.")


def value(template: Any, run_payload: Any, parents: Mapping[str, Ended], each: Item | None = None) -> Any:
    """What a template stands for: ``render`` for anything that is in a payload."""

    def value_of(reference: Reference) -> Any:
        if reference.source == RUN:
            return _walked(reference, run_payload)
        source: Item | Ended | None = each if reference.source == EACH else parents.get(reference.source)
        if source is None:
            raise TemplateError(f"{str(reference)!r}: {reference.source!r} is no parent that has ended")
        if isinstance(source, Ended) and reference.field == "result" and is_cut(source.result):
            raise ValueTooLarge(f"{str(reference)!r}: {too_large(reference.source, source.result)}", KEEP_IT_ELSEWHERE)
        return _walked(reference, getattr(source, reference.field))

    return _filled(template, value_of)


def as_literal(value: Any) -> Any:
    """A template that stands for this value, whatever is in it."""
    return {LITERAL: value} if _looks_like_template(value) else value


def moved_into(payload: Any, prefix: str, run_payload: Any) -> Any:
    """The payload of a sub-workflow's node as a node of the run that it becomes part of: nodes are called
    ``prefix:key``, and the payload that the sub-workflow was started with stands where it was referred to."""
    if isinstance(payload, list | tuple):
        return [moved_into(part, prefix, run_payload) for part in payload]
    if not isinstance(payload, Mapping):
        return payload
    if not _is_template(payload):
        return {name: moved_into(part, prefix, run_payload) for name, part in payload.items()}
    if LITERAL in payload:
        return dict(payload)
    reference = parse(payload[FROM])
    if reference.source == RUN:
        return as_literal(value(payload, run_payload, {}))
    return payload if reference.source == EACH else {**payload, FROM: f"{prefix}:{reference}"}


def _no_value(reference: Reference) -> Any:
    raise TemplateError(f"{str(reference)!r} has no value before the run")


def _filled(value: Any, value_of: Callable[[Reference], Any]) -> Any:
    if isinstance(value, Mapping):
        if not _is_template(value):
            return {name: _filled(part, value_of) for name, part in value.items()}
        if LITERAL in value:
            return value[LITERAL]
        try:
            return value_of(parse(value[FROM]))
        except ValueTooLarge:
            raise
        except TemplateError:
            if DEFAULT in value:
                return value[DEFAULT]
            raise
    if isinstance(value, list | tuple):
        return [_filled(part, value_of) for part in value]
    return value


def _is_template(value: Mapping[str, Any]) -> bool:
    """Whether the object stands for another value. TemplateError where it is not said which."""
    signs = [name for name in value if name.startswith("$")]
    if not signs:
        return False
    if set(value) in ({FROM}, {FROM, DEFAULT}, {LITERAL}):
        return True
    raise TemplateError(
        f"{shown(dict(value))} is no template",
        f'Write {{"{FROM}": …}}, with "{DEFAULT}" beside it if you like; data with {signs[0]!r} goes into '
        f'{{"{LITERAL}": …}}.',
    )


def _looks_like_template(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(name.startswith("$") or _looks_like_template(part) for name, part in value.items())
    return isinstance(value, list | tuple) and any(map(_looks_like_template, value))


def _walked(reference: Reference, value: Any) -> Any:
    """Follows the path. TemplateError says how far it got."""
    seen: tuple[str, ...] = (reference.source, reference.field)
    for step in reference.path:
        found = _step(value, step)
        if found is UNSET:
            raise TemplateError(f"{str(reference)!r}: {'.'.join(seen)} is {_outline(value)}, without {step!r}")
        value, seen = found, (*seen, step)
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, UNSET)
    is_position = step.isascii() and step.isdigit() and len(step) <= LONGEST_POSITION
    if is_position and isinstance(value, list) and int(step) < len(value):
        return value[int(step)]
    return UNSET


def _outline(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(shown, list(value)[:8])) or 'nothing in it'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "null" if value is None else shown(value)
