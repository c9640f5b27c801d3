"""A job's payload: keyword arguments as JSON, checked against the handler's signature on both ways.

The signature is compiled once into a decoder. An enqueue serialises the arguments and lets that same decoder read them
back: what was accepted is exactly what the handler will be given. The bytes then travel as they are.
"""

from __future__ import annotations

import copy
import inspect
import re
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, get_type_hints
from uuid import UUID

import msgspec
from msgspec import inspect as shapes

from jobs.core.context import Context
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import PayloadInvalid

DEEPEST = 200
"""Levels of nesting. JSON readers give up somewhere near 1,000 (Python's own among them): stay where all can read."""

CONTEXT_ARGUMENT = "ctx"


def dumps(value: Any) -> bytes:
    """``value`` as JSON. Raises ValueError saying what JSON, or a reader of it, could not take.

    Beyond JSON's own types it takes dataclasses, structs, datetimes, UUIDs, Decimals, enums, bytes (as base64), sets.
    """
    try:
        data = _encode(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except UnicodeEncodeError:
        raise ValueError("text holds a lone surrogate, which no UTF-8 can carry") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(str(error)) from None
    # JSON has no NaN and no infinity; the encoder writes null for them, which the handler would take for a None.
    if b"null" in data and _holds_a_non_number(value):
        raise ValueError("NaN and infinity are not JSON numbers")
    # The bytes are short or have few brackets: they cannot be deep. Else count properly.
    if len(data) > 2 * DEEPEST and data.count(b"[") + data.count(b"{") > DEEPEST and _depth(data) > DEEPEST:
        raise ValueError(_TOO_DEEP)
    return data


def dumps_in_order(value: Any) -> str:
    """``value`` as JSON that is the same in every process: a dict has its caller's order, a set that of chance."""
    return _encode_in_order(value).decode()


def encode_any(type_name: str, payload: Mapping[str, Any]) -> bytes:
    """The payload of a type whose signature is not known here: any JSON object. Raises PayloadInvalid."""
    try:
        if isinstance(payload, dict) and all(type(name) is str for name in payload):
            return dumps(payload)
    except ValueError as error:
        raise _unserialisable(type_name, payload, error) from None
    raise PayloadInvalid(
        f"{type_name}: the payload must be an object of named arguments, got {type(payload).__name__}",
        fix='Write {"name": value, …} with text as names.',
    )


class PayloadCodec:
    """Turns the keyword arguments of one function into bytes and back. Made once for each job type.

    Raises TypeError when the signature cannot be a payload, and NameError when an annotation is not defined (yet).
    """

    def __init__(self, type_name: str, function: Callable[..., Any]) -> None:
        self.type_name = type_name
        self.takes_any_argument = False
        self._rest: Any = Any  # the annotation of **kwargs
        fields: list[Any] = []
        for parameter, hint in _parameters(type_name, function):
            if parameter.kind is parameter.VAR_KEYWORD:
                self.takes_any_argument, self._rest = True, hint
            elif parameter.name == CONTEXT_ARGUMENT:
                continue
            elif parameter.default is parameter.empty:
                fields.append((parameter.name, hint))
            else:
                fields.append((parameter.name, hint, msgspec.field(default_factory=_always(parameter.default))))
        self.arguments: tuple[str, ...] = tuple(field[0] for field in fields)
        self.required = tuple(field[0] for field in fields if len(field) == 2)
        self._fields, self._module = fields, function.__module__
        self._decode_named = self._compiled(fields)

    def _compiled(self, fields: list[Any]) -> Callable[[bytes], Any]:
        shape = msgspec.defstruct(
            "Payload",
            fields,
            kw_only=True,
            forbid_unknown_fields=not self.takes_any_argument,
            module=self._module,
        )
        return _compile(self.type_name, shape, fields)

    def check(self, payload: Mapping[str, Any], unknown: frozenset[str] = frozenset()) -> None:
        """Raises PayloadInvalid as ``encode`` does. The values of ``unknown`` arguments come later: any will do."""
        if not unknown:
            self.encode(payload)
            return
        lenient = copy.copy(self)
        lenient._decode_named = lenient._compiled(
            [(name, Any if name in unknown else hint, *rest) for name, hint, *rest in self._fields]
        )
        further = unknown - set(self.arguments) if self.takes_any_argument else frozenset()
        lenient.encode({name: value for name, value in payload.items() if name not in further})

    def encode(self, payload: Mapping[str, Any]) -> bytes:
        """The bytes to store. Raises PayloadInvalid naming the argument that does not fit and why."""
        try:
            data = dumps(payload)
            self._decode_named(data)
        except msgspec.ValidationError as error:
            raise self._misfit(payload, error) from None
        except ValueError as error:
            raise _unserialisable(self.type_name, payload, error) from None
        if self.takes_any_argument:
            self._decode_rest(data)
        return data

    def decode(self, data: bytes) -> dict[str, Any]:
        """The handler's keyword arguments. Raises PayloadInvalid if the bytes do not fit the signature of today."""
        try:
            arguments = self._decode_arguments(data)
        except (ValueError, RecursionError) as error:
            raise PayloadInvalid(f"{self.type_name}: the stored payload is not JSON: {error}") from None
        if self.takes_any_argument:
            arguments.update(self._decode_rest(data))
        return arguments

    def _decode_arguments(self, data: bytes) -> dict[str, Any]:
        try:
            return msgspec.structs.asdict(self._decode_named(data))
        except msgspec.ValidationError as error:
            raise self._misfit(_loads(data), error) from None

    def _decode_rest(self, data: bytes) -> dict[str, Any]:
        """What ``**kwargs`` is given."""
        rest: dict[str, Any] = {}
        for name, value in _loads(data).items():
            if name in self.arguments:
                continue
            if name == CONTEXT_ARGUMENT:
                raise self._misfit({name: value}, "the name belongs to the context")
            try:
                rest[name] = msgspec.convert(value, self._rest, str_keys=True)
            except msgspec.ValidationError as error:
                where, what = _reworded(error)
                place = f"{name}.{where}" if where else name
                raise PayloadInvalid(f"{self.type_name}: argument {shown(place)}: {what}") from None
        return rest

    def _misfit(self, payload: Any, problem: Exception | str) -> PayloadInvalid:
        """The error for a payload that is JSON, but not what the signature asks for."""
        takes = f"It takes: {', '.join(self.arguments) or 'no arguments'}."
        if not isinstance(payload, Mapping):
            return PayloadInvalid(
                f"{self.type_name}: the payload must be an object of named arguments, got {type(payload).__name__}",
                fix=takes,
            )
        for name in payload:
            if CONTEXT_ARGUMENT == name not in self.arguments:
                return PayloadInvalid(
                    f"{self.type_name}: {CONTEXT_ARGUMENT!r} is not part of the payload",
                    fix="Leave it out: the worker brings the context.",
                )
            if not self.takes_any_argument and name not in self.arguments:
                return PayloadInvalid(
                    f"{self.type_name} takes no argument {shown(name)}",
                    fix=did_you_mean(str(name), self.arguments, none=takes),
                )
        for name in self.required:
            if name not in payload:
                return PayloadInvalid(f"{self.type_name}: argument {name!r} is missing", fix=takes)
        where, what = _reworded(problem)
        return PayloadInvalid(f"{self.type_name}: argument {where!r}: {what}" if where else f"{self.type_name}: {what}")


# --- Reading a signature ---------------------------------------------------------------------------------------------


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of a type, for forms. ``kind``: text, whole, number, flag, or data (whatever else JSON holds)."""

    name: str
    kind: Literal["text", "whole", "number", "flag", "data"]
    annotation: str
    required: bool
    default: Any = None


_KINDS: dict[Any, Literal["text", "whole", "number", "flag"]] = {
    str: "text",
    int: "whole",
    float: "number",
    bool: "flag",
    datetime: "text",
    date: "text",
    UUID: "text",
    Decimal: "text",
}
"""Annotations that one box of a form fits; dates, ids and decimals are text in JSON."""


def arguments_of(type_name: str, function: Callable[..., Any]) -> list[Argument]:
    """The named arguments of a type, as its signature has them; without the context, and without ``**kwargs``."""
    found = []
    for parameter, hint in _parameters(type_name, function):
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name == CONTEXT_ARGUMENT:
            continue
        found.append(
            Argument(
                name=parameter.name,
                kind=_KINDS.get(hint, "data"),
                annotation=inspect.formatannotation(hint) if hint is not Any else "any",
                required=parameter.default is parameter.empty,
                default=None if parameter.default is parameter.empty else _default(parameter.default),
            )
        )
    return found


def _default(value: Any) -> Any:
    """A default as JSON has it; as text where it has no such form."""
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):
        return repr(value)


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the function has a parameter for the context."""
    parameter = inspect.signature(function).parameters.get(CONTEXT_ARGUMENT)
    return parameter is not None and parameter.kind is not parameter.VAR_KEYWORD


def _parameters(type_name: str, function: Callable[..., Any]) -> list[tuple[inspect.Parameter, Any]]:
    """The function's parameters with their resolved annotations; ``Any`` where there is none."""
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise TypeError(f"{type_name}: *{parameter.name} cannot be in a payload: arguments have names. Use a list.")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"{type_name}: {parameter.name!r} is positional-only: payloads are named. Remove the '/'.")
    # The annotation of ctx is not resolved: it is often imported for type checkers only.
    annotated = {p.name: p.annotation for p in parameters if p.annotation is not p.empty and p.name != CONTEXT_ARGUMENT}
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        hints = get_type_hints(types.SimpleNamespace(__annotations__=annotated), scope, include_extras=True)
    except SyntaxError as error:
        raise TypeError(f"{type_name}: an annotation is not valid Python: {error}") from None
    for name, hint in hints.items():
        if hint is Context:
            raise TypeError(f"{type_name}: call the context parameter 'ctx', not {name!r}.")
    return [(parameter, hints.get(parameter.name, Any)) for parameter in parameters]


def _always(value: Any) -> Callable[[], Any]:
    """A factory of the one object: the handler is given the very default that a plain call would give it."""
    return lambda: value


def _compile(type_name: str, shape: type[msgspec.Struct], fields: list[Any]) -> Callable[[bytes], Any]:
    try:
        decode = msgspec.json.Decoder(shape).decode
    except TypeError:
        for name, hint, *_ in fields:
            try:
                msgspec.json.Decoder(hint)
            except TypeError as error:
                raise TypeError(f"{type_name}: argument {name!r}: {error}") from None
        raise
    for name, hint, *_ in fields:
        stranger = _without_json_form(shapes.type_info(hint), set())
        if stranger is not None:
            raise TypeError(
                f"{type_name}: argument {name!r}: {getattr(stranger, '__name__', stranger)} has no JSON form. "
                "Take its id, a dataclass or a msgspec.Struct instead."
            )
    return decode


def _without_json_form(shape: Any, seen: set[int]) -> Any:
    """The first class inside ``shape`` that the decoder would not know how to make, or None."""
    if id(shape) in seen:
        return None
    seen.add(id(shape))
    if isinstance(shape, shapes.CustomType):
        return shape.cls
    if isinstance(shape, shapes.Field):
        return _without_json_form(shape.type, seen)
    if isinstance(shape, tuple):
        parts = list(shape)
    elif isinstance(shape, shapes.Type):
        parts = [getattr(shape, name) for name in shape.__struct_fields__]
    else:
        return None
    return next((found for part in parts if (found := _without_json_form(part, seen)) is not None), None)


# --- JSON ------------------------------------------------------------------------------------------------------------

_TOO_DEEP = f"nested deeper than {DEEPEST} levels"
_BETWEEN_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\[\]{}"]+')
_PATH = re.compile(r"(?s)(.*?) - at `(?:key in )?\$\.?(.*)`$")


def _plain(value: Any) -> Any:
    """For the encoder: what stands for a value whose class it does not know."""
    # Subclasses of the plain types (Django's SafeString, numpy's float64) are taken for what they extend.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
_encode_in_order = msgspec.json.Encoder(enc_hook=_plain, order="deterministic").encode


def _loads(data: bytes) -> Any:
    return msgspec.json.decode(data)


def _holds_a_non_number(value: Any) -> bool:
    waiting = [msgspec.to_builtins(value, enc_hook=_plain, str_keys=True)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, float) and not -1e309 < value < 1e309:
            return True
    return False


def _depth(data: bytes) -> int:
    """Levels of nesting of a JSON text, without reading it by recursion."""
    depth = deepest = 0
    for bracket in _BETWEEN_BRACKETS.sub(b"", data):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _unserialisable(type_name: str, payload: Any, error: Exception) -> PayloadInvalid:
    """Names the argument that ``dumps`` refused, by trying each alone."""
    if isinstance(payload, Mapping):
        for name, value in payload.items():
            try:
                dumps({name: value})
            except ValueError as problem:
                return PayloadInvalid(
                    f"{type_name}: argument {shown(name)}: {problem}",
                    fix="Pass JSON values, or a type that has a JSON form (dataclass, datetime, UUID, Decimal, enum).",
                )
    return PayloadInvalid(f"{type_name}: {error}")


def _reworded(problem: Exception | str) -> tuple[str, str]:
    """The decoder's message as (path of the argument, what is wrong), without its quoting."""
    message = str(problem)
    match = _PATH.match(message)
    where, what = (match[2], match[1]) if match else ("", message)
    what = what.replace("`", "")
    return where, what[:1].lower() + what[1:]
