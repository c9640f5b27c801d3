"""Payloads: what is accepted, what comes out again, and what is said of the rest."""

from __future__ import annotations

import enum
import math
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

import msgspec
import pytest
from django.utils.safestring import mark_safe
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.context import Context
from jobs.core.payload import DEEPEST, PayloadCodec, dumps, encode_any, takes_context
from jobs.exceptions import PayloadInvalid


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1


@dataclass
class Address:
    street: str
    zip_code: int | None = None
    tags: list[str] = field(default_factory=list)


class Line(msgspec.Struct):
    sku: str
    amount: Decimal


def codec(function: Callable[..., Any]) -> PayloadCodec:
    return PayloadCodec("shop.order", function)


sayable = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | sayable,
    lambda inner: st.lists(inner) | st.dictionaries(sayable, inner),
    max_leaves=20,
)


def round_trip(function: Callable[..., Any], **payload: Any) -> dict[str, Any]:
    compiled = codec(function)
    return compiled.decode(compiled.encode(payload))


def refusal(function: Callable[..., Any], payload: Any) -> PayloadInvalid:
    with pytest.raises(PayloadInvalid) as caught:
        codec(function).encode(payload)
    return caught.value


def everything(
    text: str,
    number: int,
    real: float,
    flag: bool,
    when: datetime,
    day: date,
    at: time,
    length: timedelta,
    key: UUID,
    price: Decimal,
    colour: Colour,
    size: Size,
    address: Address,
    line: Line,
    raw: bytes,
    maybe: int | None,
    either: int | str,
    kind: Literal["a", "b"],
    many: list[UUID],
    pair: tuple[int, str],
    some: set[int],
    map_of: dict[str, list[date]],
    by_number: dict[int, str],
) -> None: ...


def greet(to: str, times: int = 1, *, loud: bool = False) -> None: ...


def plain(value): ...  # type: ignore[no-untyped-def]


class TestRoundTrip:
    def test_every_supported_type_reaches_the_handler_as_itself(self) -> None:
        payload = {
            "text": "ü\x00\U0001f600",
            "number": -(2**70),
            "real": 0.1,
            "flag": True,
            "when": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            "day": date(2026, 2, 28),
            "at": time(23, 59, 59, 999999),
            "length": timedelta(days=-1, microseconds=5),
            "key": uuid4(),
            "price": Decimal("1.10"),
            "colour": Colour.BLUE,
            "size": Size.SMALL,
            "address": Address("High St", 123, ["home"]),
            "line": Line("x", Decimal("0.3")),
            "raw": b"\x00\xff",
            "maybe": None,
            "either": "7",
            "kind": "b",
            "many": [uuid4(), uuid4()],
            "pair": (1, "x"),
            "some": {1, 2},
            "map_of": {"a": [date(2026, 1, 1)]},
            "by_number": {5: "five"},
        }

        assert round_trip(everything, **payload) == payload

    def test_json_forms_are_accepted_too_so_that_other_programs_can_enqueue(self) -> None:
        def order(key: UUID, when: datetime, price: Decimal, address: Address) -> None: ...

        given_as_json = {
            "key": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "when": "2026-01-01T09:00:00Z",
            "price": 1.5,
            "address": {"street": "High St"},
        }

        assert round_trip(order, **given_as_json) == {
            "key": UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
            "when": datetime(2026, 1, 1, 9, tzinfo=UTC),
            "price": Decimal("1.5"),
            "address": Address("High St"),
        }

    @given(sayable, st.integers(), st.booleans())
    def test_what_is_accepted_comes_out_equal(self, to: str, times: int, loud: bool) -> None:
        assert round_trip(greet, to=to, times=times, loud=loud) == {"to": to, "times": times, "loud": loud}

    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(any_json)
    def test_an_unannotated_argument_takes_any_json(self, value: Any) -> None:
        assert round_trip(plain, value=value) == {"value": value}

    @given(st.datetimes(timezones=st.just(UTC)), st.decimals(allow_nan=False), st.uuids(), st.dates())
    def test_typed_values_come_out_equal(self, when: datetime, price: Decimal, key: UUID, day: date) -> None:
        def order(when: datetime, price: Decimal, key: UUID, day: date) -> None: ...

        assert round_trip(order, when=when, price=price, key=key, day=day) == {
            "when": when,
            "price": price,
            "key": key,
            "day": day,
        }

    def test_defaults_are_filled_in_for_the_handler_and_not_stored(self) -> None:
        stored = codec(greet).encode({"to": "Ann"})

        assert stored == b'{"to":"Ann"}'
        assert codec(greet).decode(stored) == {"to": "Ann", "times": 1, "loud": False}

    def test_the_handler_is_given_the_very_default_of_its_signature(self) -> None:
        unlikely = object()

        def handler(value: Any = unlikely) -> None: ...

        assert round_trip(handler)["value"] is unlikely

    def test_keyword_arguments_of_any_name_are_passed_on(self) -> None:
        def handler(to: str, **dates: date) -> None: ...

        assert round_trip(handler, to="x", start="2026-01-01") == {"to": "x", "start": date(2026, 1, 1)}
        assert "'start'" in str(refusal(handler, {"to": "x", "start": "soon"}))
        assert "not part of the payload" in str(refusal(handler, {"to": "x", "ctx": "2026-01-01"}))

    def test_a_misfit_among_them_is_located(self) -> None:
        def handler(**lines: Line) -> None: ...

        assert round_trip(handler, a=Line("x", Decimal(1))) == {"a": Line("x", Decimal(1))}
        assert "'a.amount'" in str(refusal(handler, {"a": {"sku": "x", "amount": "much"}}))

    def test_subclasses_of_plain_types_are_taken_for_what_they_extend(self) -> None:
        class Metres(float): ...

        class Count(int): ...

        subclasses = [mark_safe("<b>"), Metres(1.5), Count(7), OrderedDict(a=1), ChainMap({"b": 2})]

        assert round_trip(plain, value=subclasses) == {"value": ["<b>", 1.5, 7, {"a": 1}, {"b": 2}]}

    def test_constraints_in_annotations_are_checked(self) -> None:
        def handler(share: Annotated[int, msgspec.Meta(ge=0, le=100)]) -> None: ...

        assert round_trip(handler, share=50) == {"share": 50}
        assert "'share'" in str(refusal(handler, {"share": 101}))

    def test_abstract_collections_are_understood(self) -> None:
        def handler(ids: Sequence[int], names: Mapping[str, int]) -> None: ...

        assert round_trip(handler, ids=(1, 2), names={"a": 1}) == {"ids": [1, 2], "names": {"a": 1}}


class TestRefusals:
    @pytest.mark.parametrize(
        ("payload", "said", "fix"),
        [
            ({}, "argument 'to' is missing", "to, times, loud"),
            ({"to": 1}, "argument 'to': expected str, got int", ""),
            ({"to": "x", "times": "2"}, "argument 'times': expected int, got str", ""),
            ({"to": "x", "times": True}, "argument 'times': expected int, got bool", ""),
            ({"to": "x", "tims": 2}, "takes no argument 'tims'", "'times'"),
            ({"to": "x", "ctx": 2}, "'ctx' is not part of the payload", "the worker brings"),
            ({"to": None}, "argument 'to': expected str, got null", ""),
            ([], "must be an object of named arguments, got list", ""),
            (None, "must be an object of named arguments, got NoneType", ""),
            ({1: "x"}, "takes no argument 1", ""),
        ],
    )
    def test_a_misfit_names_the_argument_and_what_is_wrong(self, payload: Any, said: str, fix: str) -> None:
        error = refusal(greet, payload)

        assert said in str(error)
        assert str(error).startswith("shop.order")
        assert fix in error.fix

    def test_a_misfit_inside_a_value_is_located(self) -> None:
        def handler(lines: list[Line], address: Address) -> None: ...

        lines = [{"sku": "x", "amount": "1"}, {"sku": "y", "amount": "much"}]

        assert "'lines[1].amount'" in str(refusal(handler, {"lines": lines, "address": {"street": "x"}}))
        assert "'address.street'" in str(refusal(handler, {"lines": [], "address": {"street": 5}}))

    def test_stored_bytes_that_no_longer_fit_are_refused_and_not_passed_on(self) -> None:
        for stored in (b"{}", b'{"to": 5}', b'{"to": "x", "gone": 1}', b"[]", b"", b"{", b"\xff", b"[" * 100_000):
            with pytest.raises(PayloadInvalid, match=r"shop\.order"):
                codec(greet).decode(stored)


def nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = []
    for _ in range(levels):
        value = wrap(value)
    return value


class TestHostileValues:
    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (nested(10_000, lambda inner: [inner]), "nested deeper"),
            (nested(10_000, lambda inner: {"a": inner}), "nested deeper"),
            (nested(DEEPEST + 1, lambda inner: [inner]), "nested deeper"),
            ("\ud800", "surrogate"),
            ({"\udfff": 1}, "surrogate"),
            (math.nan, "NaN"),
            ([1.0, {"a": -math.inf}], "NaN and infinity"),
            ((math.inf,), "NaN and infinity"),
            (10**5000, "digits"),
            (object(), "object has no JSON form"),
            ({(1, 2): 3}, "no JSON form"),
            ([lambda: 0], "function has no JSON form"),
        ],
        ids=lambda value: repr(value)[:20] if isinstance(value, str) else type(value).__name__,
    )
    def test_what_json_cannot_hold_is_refused_by_name(self, value: Any, said: str) -> None:
        error = refusal(plain, {"value": value})

        assert "'value'" in str(error)
        assert said in str(error)
        str(error).encode()  # the message itself can be shown

    def test_a_surrogate_in_a_name_is_refused_in_words_that_can_be_shown(self) -> None:
        def handler(**anything: Any) -> None: ...

        str(refusal(handler, {"\ud800": 1})).encode()
        str(refusal(greet, {"\ud800": 1})).encode()

    @pytest.mark.parametrize("value", ["\x00", "null", "[" * 5_000, '"]}{[', -0.0, 2**64, "{}", "a" * 100_000])
    def test_odd_but_honest_values_come_out_as_they_went_in(self, value: Any) -> None:
        assert round_trip(plain, value=value) == {"value": value}

    def test_the_deepest_value_allowed_is_allowed(self) -> None:
        value = nested(DEEPEST - 2, lambda inner: [inner])  # the payload itself is a level, the innermost list another

        assert round_trip(plain, value=value) == {"value": value}

    def test_many_brackets_side_by_side_are_not_deep(self) -> None:
        value = [[] for _ in range(5_000)]

        assert round_trip(plain, value=value) == {"value": value}

    def test_a_nan_where_a_number_is_optional_is_not_taken_for_none(self) -> None:
        def handler(ratio: float | None) -> None: ...

        assert "NaN" in str(refusal(handler, {"ratio": math.nan}))


class TestSignatures:
    @pytest.mark.parametrize(
        ("function", "said"),
        [
            (lambda *args: None, r"\*args"),
            (lambda a, /: None, "positional-only"),
        ],
    )
    def test_signatures_without_names_are_refused(self, function: Callable[..., Any], said: str) -> None:
        with pytest.raises(TypeError, match=said):
            codec(function)

    def test_a_type_without_json_form_is_refused_where_it_is_declared(self) -> None:
        class Customer: ...

        def handler(customers: list[Customer | None]) -> None: ...

        handler.__annotations__ = {"customers": list[Customer | None]}
        with pytest.raises(TypeError, match=r"'customers': Customer has no JSON form.*id"):
            codec(handler)

    def test_a_union_that_json_cannot_tell_apart_is_refused_by_name(self) -> None:
        def handler(when: datetime | str) -> None: ...

        with pytest.raises(TypeError, match="'when'"):
            codec(handler)

    def test_an_annotation_that_is_no_python_is_refused(self) -> None:
        def handler(to: Any) -> None: ...

        handler.__annotations__ = {"to": "list["}
        with pytest.raises(TypeError, match="not valid Python"):
            codec(handler)

    def test_a_context_of_another_name_is_pointed_out(self) -> None:
        def handler(to: str, context: Context) -> None: ...

        with pytest.raises(TypeError, match="'ctx', not 'context'"):
            codec(handler)

    def test_the_context_is_no_part_of_the_payload_even_if_its_annotation_is_unknown(self) -> None:
        def handler(to: str, *, ctx: "OnlyForTypeCheckers") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

        assert takes_context(handler)
        assert codec(handler).arguments == ("to",)

    def test_keyword_arguments_called_ctx_are_no_context(self) -> None:
        def handler(**ctx: int) -> None: ...

        assert not takes_context(handler)
        assert round_trip(handler, a=1) == {"a": 1}

    def test_recursive_types_are_followed_once(self) -> None:
        @dataclass
        class Node:
            children: list[Any]

        def handler(node: Node) -> None: ...

        handler.__annotations__ = {"node": Node}
        assert round_trip(handler, node=Node([1])) == {"node": Node([1])}


class TestAnyPayload:
    """What a producer without the handler's code can check."""

    def test_any_object_is_taken(self) -> None:
        assert encode_any("other.type", {"a": [1, None]}) == b'{"a":[1,null]}'

    @pytest.mark.parametrize("payload", [[], "x", None, {1: 2}, {"a": math.nan}, {"a": "\ud800"}, {"a": object()}])
    def test_what_is_no_object_is_refused(self, payload: Any) -> None:
        with pytest.raises(PayloadInvalid, match=r"other\.type"):
            encode_any("other.type", payload)


def test_dumps_says_why_a_value_has_no_json() -> None:
    with pytest.raises(ValueError, match="object has no JSON form"):
        dumps(object())
