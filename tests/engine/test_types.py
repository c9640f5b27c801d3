"""Live overrides of job types."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jobs.conf import Settings
from jobs.engine import Engine, TypeOverrides
from jobs.engine.types import Types
from jobs.exceptions import StoreUnavailable
from jobs.store.keys import SettingKeys
from tests.support.clock import ManualClock


def test_a_type_is_as_declared_until_somebody_overrides_it(engine: Engine) -> None:
    assert engine.types.get("mail") == TypeOverrides()

    engine.types.set("mail", {"pool": "slow", "timeout": 5.0})
    assert engine.types.get("mail") == TypeOverrides(pool="slow", timeout=5.0)

    engine.types.clear("mail")
    assert engine.types.get("mail") == TypeOverrides()


def test_other_processes_follow_within_a_second(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Types(engine.store, engine.pauses)
    assert elsewhere.disabled() == frozenset()

    engine.types.set("mail", {"enabled": False})
    monkeypatch.setattr("jobs.engine.types.REFRESH_SECONDS", 0.0)

    assert elsewhere.disabled() == {"mail"}
    assert elsewhere.all() == {"mail": TypeOverrides(enabled=False)}


def test_a_set_replaces_all_that_was_set_before(engine: Engine) -> None:
    engine.types.set("mail", {"priority": 5})
    engine.types.set("mail", {"pool": "fast"})

    assert engine.types.get("mail") == TypeOverrides(pool="fast")


@pytest.mark.parametrize("wrong", [{"priority": "high"}, {"enabled": "no"}, {"timeout": []}])
def test_values_of_the_wrong_kind_are_refused(engine: Engine, wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        engine.types.set("mail", wrong)

    assert engine.types.all() == {}


def test_stored_overrides_that_cannot_be_read_count_as_none(engine: Engine) -> None:
    engine.store.client.hset(SettingKeys(engine.store.namespace).types, "mail", b"{")

    assert engine.types.get("mail") == TypeOverrides()


def test_what_is_known_stays_in_force_while_the_server_is_away(
    engine: Engine, settings: object, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.types.set("mail", {"enabled": False})
    assert engine.types.disabled() == {"mail"}

    away = Engine(type(engine.store)("redis://127.0.0.1:1/0", engine.store.namespace, patience=0), Settings(), clock)
    monkeypatch.setattr(engine.types, "_store", away.store)
    monkeypatch.setattr("jobs.engine.types.REFRESH_SECONDS", 0.0)

    assert engine.types.disabled() == {"mail"}
    with pytest.raises(StoreUnavailable):
        Types(away.store, away.pauses).disabled()
