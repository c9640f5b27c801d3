"""Job types by name, or by how their names begin: one meaning wherever jobs are narrowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.core.type_pattern import check_type_pattern, means
from jobs.exceptions import OptionInvalid

NAMES = st.text("ab.:-_9", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("pattern", "type", "meant"),
    [
        ("billing.charge", "billing.charge", True),
        ("billing.charge", "billing.charge_card", False),
        ("billing.*", "billing.charge", True),
        ("billing.*", "billing", False),
        ("billing.*", "old.billing.charge", False),
        ("bill*", "billing.charge", True),
        ("*", "anything", True),
        ("billing.", "billing.charge", False),
        ("b?lling.[a-z]*", "billing.charge", False),
    ],
)
def test_a_name_or_a_beginning_and_a_star(pattern: str, type: str, meant: bool) -> None:
    assert means(check_type_pattern("type", pattern), type) is meant


@given(NAMES, NAMES)
def test_a_star_means_every_name_that_begins_so_and_no_star_that_name_alone(beginning: str, rest: str) -> None:
    assert means(f"{beginning}*", beginning + rest)
    assert means(beginning, beginning)
    assert not means(beginning, beginning + rest)


@pytest.mark.parametrize("pattern", ["*.charge", "billing.*.charge", "**", "b*l*"])
def test_a_star_before_the_end_is_refused_with_what_to_write(pattern: str) -> None:
    with pytest.raises(OptionInvalid, match="before its end") as refused:
        check_type_pattern("type", pattern)
    assert "billing.*" in refused.value.fix
