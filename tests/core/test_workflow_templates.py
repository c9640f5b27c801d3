"""Payloads with holes: what fills them, what is left alone, and how a value that is not there is missed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.payload import PayloadCodec
from jobs.core.workflow import Ended, TemplateError, known_and_unknown, references, render
from jobs.exceptions import PayloadInvalid

PARENTS = {
    "extract": Ended("succeeded", result={"rows": [{"id": 7}, {"id": 8}], "empty": None}),
    "check": Ended("dead", error={"type": "ValueError", "message": "no"}),
}
RUN_PAYLOAD = {"day": "2026-01-01", "0": "zero"}


def filled(template: Any) -> Any:
    return render({"x": template}, RUN_PAYLOAD, PARENTS)["x"]


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ({"$from": "extract.result"}, PARENTS["extract"].result),
        ({"$from": "extract.result.rows.1.id"}, 8),
        ({"$from": "extract.result.empty"}, None),
        ({"$from": "extract.state"}, "succeeded"),
        ({"$from": "check.error.message"}, "no"),
        ({"$from": "run.payload"}, RUN_PAYLOAD),
        ({"$from": "run.payload.0"}, "zero"),
        ([{"deep": [{"$from": "run.payload.day"}]}], [{"deep": ["2026-01-01"]}]),
        ({"$from": "extract.result.rows.9", "default": {"none": True}}, {"none": True}),
        ({"$from": "extract.result.rows.0.id", "default": 0}, 7),
        ({"$literal": {"$from": "run.payload"}}, {"$from": "run.payload"}),
        ({"from": "run.payload", "price": "$5"}, {"from": "run.payload", "price": "$5"}),
    ],
)
def test_a_hole_is_filled(template: Any, value: Any) -> None:
    assert filled(template) == value


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("extract.result.rows.2", "'extract.result.rows.2': extract.result.rows is a list of 2, without '2'"),
        ("extract.result.rows.-1", "'extract.result.rows.-1': extract.result.rows is a list of 2, without '-1'"),
        (
            "extract.result.raws",
            "'extract.result.raws': extract.result is an object with 'rows', 'empty', without 'raws'",
        ),
        ("extract.result.empty.x", "'extract.result.empty.x': extract.result.empty is null, without 'x'"),
        ("extract.state.x", "'extract.state.x': extract.state is 'succeeded', without 'x'"),
        ("later.result", "'later.result': 'later' is no parent that has ended"),
    ],
)
def test_a_value_that_is_not_there_is_missed_with_what_is(reference: str, message: str) -> None:
    with pytest.raises(TemplateError) as missed:
        filled({"$from": reference})

    assert str(missed.value) == message


def test_references_are_found_wherever_they_stand_and_not_in_literals() -> None:
    payload = {
        "a": {"$from": "extract.result"},
        "b": [1, {"c": {"$from": "run.payload.day", "default": {"$from": "never.looked.at"}}}],
        "d": {"$literal": {"$from": "not.this"}},
    }

    assert list(map(str, references(payload))) == ["extract.result", "run.payload.day"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text().filter(lambda name: not name.startswith("$")), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text(min_size=1).filter(lambda name: not name.startswith("$")), json_values, max_size=4),
    json_values,
)
def test_a_payload_without_holes_stays_what_it_is_and_any_value_fits_a_hole(
    payload: dict[str, Any], value: Any
) -> None:
    assert render(payload, {}, {}) == payload
    assert render({"x": {"$from": "p.result"}}, {}, {"p": Ended("succeeded", result=value)}) == {"x": value}


class TestAgainstASignature:
    """What is known of a payload before the run must fit; what is not may be anything."""

    @staticmethod
    def check(payload: dict[str, Any]) -> None:
        def load(rows: list[int], *, table: str = "t", limit: int | None = None) -> None: ...

        PayloadCodec("report.load", load).check(*known_and_unknown(payload))

    @pytest.mark.parametrize(
        "payload",
        [
            {"rows": [1]},
            {"rows": {"$from": "extract.result"}},
            {"rows": [1, {"$from": "extract.result.0"}], "table": "x"},
            {"rows": [], "table": {"$from": "run.payload.table"}, "limit": 5},
        ],
    )
    def test_it_fits(self, payload: dict[str, Any]) -> None:
        self.check(payload)

    @pytest.mark.parametrize(
        ("payload", "message"),
        [
            ({}, "argument 'rows' is missing"),
            ({"table": {"$from": "run.payload.table"}}, "argument 'rows' is missing"),
            ({"rows": {"$from": "extract.result"}, "tabel": "x"}, "takes no argument 'tabel'"),
            ({"rows": [], "tabel": {"$from": "extract.result"}}, "takes no argument 'tabel'"),
            ({"rows": {"$from": "extract.result"}, "limit": "many"}, "argument 'limit': expected int | null, got str"),
        ],
    )
    def test_it_does_not(self, payload: dict[str, Any], message: str) -> None:
        with pytest.raises(PayloadInvalid, match=message.replace("|", r"\|")):
            self.check(payload)

    def test_any_further_argument_may_be_unknown(self) -> None:
        def notify(**values: int) -> None: ...

        codec = PayloadCodec("notify", notify)

        codec.check(*known_and_unknown({"a": 1, "b": {"$from": "extract.result"}}))
        with pytest.raises(PayloadInvalid, match="argument 'a'"):
            codec.check(*known_and_unknown({"a": "x", "b": {"$from": "extract.result"}}))


def test_a_payload_as_a_whole_may_be_a_template() -> None:
    assert render({"$from": "run.payload"}, RUN_PAYLOAD, {}) == RUN_PAYLOAD
    assert render({"$literal": {"$from": "x"}}, None, {}) == {"$from": "x"}
    assert known_and_unknown({"$from": "run.payload"}) is None
    assert known_and_unknown({"$literal": {"x": 1}}) == ({"x": 1}, frozenset())
    with pytest.raises(TemplateError, match="The payload is a list of 2"):
        render({"$from": "extract.result.rows"}, RUN_PAYLOAD, PARENTS)
