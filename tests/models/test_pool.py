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


def test_what_the_engine_is_told_is_none_where_nothing_was_set() -> None:
    assert Pool(name="letters").settings == {"slots": None, "max_running": None, "max_pending": None, "autoscale": None}


def test_an_autoscaled_pool_tells_its_rule() -> None:
    pool = Pool(name="letters", autoscale=Pool.Autoscale.DRY_RUN, min_slots=2, max_slots=8, target_wait_seconds=3)

    assert pool.settings["autoscale"] == {
        "min_slots": 2,
        "max_slots": 8,
        "target_wait_seconds": 3,
        "tolerance_seconds": 1.0,
        "cooldown_seconds": 30.0,
        "dry_run": True,
    }


def test_bounds_of_an_autoscaled_pool_are_in_order_in_form_and_database() -> None:
    with pytest.raises(ValidationError, match="least number of slots"):
        Pool(name="letters", min_slots=5, max_slots=4).full_clean()
    with pytest.raises(IntegrityError), transaction.atomic():
        Pool.objects.create(name="letters", min_slots=5, max_slots=4)
