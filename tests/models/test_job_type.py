"""Rows of job types: what is declared, what is overridden, what the database refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs.models import JobType

pytestmark = pytest.mark.django_db

DECLARED = {"pool": "critical", "priority": 5, "max_retries": 3, "timeout": 30.0}
AS_DECLARED = {"pool": None, "priority": None, "max_retries": None, "timeout": None, "enabled": True}


def job_type(**values: Any) -> JobType:
    return JobType.objects.create(name="letter.print", declared=DECLARED, **values)


def test_a_new_row_overrides_nothing() -> None:
    row = job_type()

    assert row.overrides == AS_DECLARED
    assert not row.is_overridden
    assert {option: row.effective(option) for option in DECLARED} == DECLARED


@pytest.mark.parametrize(
    "values",
    [{"enabled": False}, {"pool": "background"}, {"priority": 0}, {"max_retries": 0}, {"timeout": 0.5}],
)
def test_each_override_counts_even_if_it_is_zero(values: dict[str, Any]) -> None:
    row = job_type(**values)

    assert row.is_overridden
    assert row.overrides == AS_DECLARED | values
    assert all(row.effective(option) == value for option, value in values.items() if option != "enabled")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pool", "no spaces"),
        ("pool", "-x"),
        ("priority", 101),
        ("priority", -101),
        ("max_retries", -1),
        ("max_retries", 1001),
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", 604_801),
    ],
)
def test_a_form_refuses_impossible_overrides(field: str, value: Any) -> None:
    row = job_type()
    setattr(row, field, value)

    with pytest.raises(ValidationError) as refusal:
        row.full_clean()

    assert next(iter(refusal.value.message_dict)) in {field, "__all__"}


@pytest.mark.parametrize(("field", "value"), [("priority", 101), ("timeout", 0), ("timeout", 604_801)])
def test_a_bulk_update_cannot_store_them_either(field: str, value: Any) -> None:
    job_type()

    with pytest.raises(IntegrityError), transaction.atomic():
        JobType.objects.update(**{field: value})


def test_a_row_is_called_by_its_name() -> None:
    assert str(job_type()) == "letter.print"
