"""In what two JSON values differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.differences import differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(min_size=1, max_size=3), JSON, max_size=4)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": None}, [{"path": "a", "before": 1}, {"path": "b", "before": 2, "after": 3},
                                                  {"path": "c", "after": None}]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, [{"path": "a.b.c", "before": 1, "after": 2}]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [{"path": "a", "before": [1, 2], "after": [1, 3]}]),
        ({"a": {}}, {"a": {"b": 1}}, [{"path": "a", "before": {}}, {"path": "a.b", "after": 1}]),
        (None, {"a": 1}, [{"path": "a", "after": 1}]),
    ],
)  # fmt: skip
def test_each_field_is_named_with_both_values(before: Any, after: Any, found: list[dict[str, Any]]) -> None:
    assert [difference.as_dict() for difference in differences(before, after)] == found


@given(OBJECTS, OBJECTS)
def test_equal_values_differ_in_nothing_and_the_other_way_round_in_the_same_fields(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert differences(one, one) == []
    assert {each.path for each in differences(one, other)} == {each.path for each in differences(other, one)}


@given(st.dictionaries(st.sampled_from("abc"), st.integers()), st.dictionaries(st.sampled_from("abc"), st.integers()))
def test_no_difference_means_equal(one: dict[str, int], other: dict[str, int]) -> None:
    assert (differences(one, other) == []) == (one == other)
