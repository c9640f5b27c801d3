"""Rows of pools."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs.models import Pool
from jobs.store.topology import checked_pool

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("name", ["main", "a", "9", "eu-west.mail_2", "x" * 64])
def test_names_that_the_engine_takes_are_taken(name: str) -> None:
    Pool(name=name).full_clean()

    assert checked_pool(name) == name


@pytest.mark.parametrize("name", ["", " ", "-x", ".x", "a b", "a{b}", "é", "x" * 65, "a\n", "a/b"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Pool(name=name).full_clean()


@pytest.mark.parametrize("slots", [-1, 1001])
def test_slots_have_bounds_in_form_and_database(slots: int) -> None:
    with pytest.raises(ValidationError):
        Pool(name="letters", slots=slots).full_clean()
    with pytest.raises(IntegrityError), transaction.atomic():
        Pool.objects.create(name="letters", slots=slots)


def test_a_pool_is_called_by_its_name() -> None:
    assert str(Pool(name="letters")) == "letters"
