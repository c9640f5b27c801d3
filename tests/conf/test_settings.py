"""The SCHEDULER dict: defaults, types, and help with misspelt keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobs import conf
from jobs.store import embedded


def test_an_empty_dict_gives_the_defaults(settings):
    settings.SCHEDULER = {}

    assert conf.get_settings() == conf.Settings(var_dir=Path("var").absolute())


def test_the_folder_of_the_embedded_server_stays_where_it_was_when_the_process_goes_elsewhere(
    settings, tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    settings.SCHEDULER = {"VAR_DIR": "data"}
    before = embedded.address("embedded:", conf.get_settings().var_dir)

    monkeypatch.chdir(tmp_path / "elsewhere")

    assert embedded.address("embedded:", conf.get_settings().var_dir) == before
    assert str(tmp_path / "data") in before


def test_a_changed_setting_is_seen_at_once(settings):
    settings.SCHEDULER = {"LEASE_SECONDS": 3, "VAR_DIR": "/tmp/somewhere"}

    assert conf.get_settings().lease_seconds == 3
    assert conf.get_settings().var_dir == Path("/tmp/somewhere")


@pytest.mark.parametrize(
    ("key", "meant"),
    [("REDIS_ULR", "REDIS_URL"), ("redis_url", "REDIS_URL"), ("LEASE_SECOND", "LEASE_SECONDS"), ("POOL", "POOLS")],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key, meant):
    (problem,) = conf.problems({key: "x"})

    assert key in problem.message
    assert problem.fix == f"Did you mean {meant}?"


def test_a_key_that_resembles_none_is_answered_with_all_of_them():
    (problem,) = conf.problems({"XYZZY": 1})

    assert all(key in problem.fix for key in conf.KEYS)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("LEASE_SECONDS", "10", "a number"),
        ("LEASE_SECONDS", True, "a number"),
        ("SLOTS", 2.5, "a whole number"),
        ("SLOTS", 0, "from 1 to 1,000"),
        ("LEASE_SECONDS", 0.0, "from 0.1"),
        ("LEASE_SECONDS", float("nan"), "not nan"),
        ("GRACE_SECONDS", float("inf"), "not inf"),
        ("ATTEMPTS_KEPT", 255, "from 1 to 250"),
        ("POOLS", {"critical": 5, "huge": 1001}, "SCHEDULER['POOLS']['huge'] must be from 0 to 1,000"),
        ("POOLS", {"critical": "many"}, "pool names"),
        ("POOLS", ["critical"], "pool names"),
        ("MIDDLEWARE", "a.b.c", "a list of texts"),
        ("VAR_DIR", 5, "a path"),
        ("NAMESPACE", None, "a text"),
        ("TRACE_URL", "https://traces.example.com/", "{trace_id} in it"),
        ("TRACE_URL", "javascript:alert({trace_id})", "an http(s) address"),
        ("TRACE_URL", "https://traces.example.com/{trace_id}/{span_id}", "{trace_id} in it"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_what_it_must_be(key, value, words):
    (problem,) = conf.problems({key: value})

    assert problem.key == key
    assert words in problem.message


def test_something_that_is_no_dict_is_refused():
    (problem,) = conf.problems(["REDIS_URL"])

    assert "must be a dict" in problem.message


def test_using_wrong_settings_names_all_problems(settings):
    settings.SCHEDULER = {"REDIS_ULR": "", "SLOTS": "x"}

    with pytest.raises(ImproperlyConfigured, match=r"(?s)REDIS_ULR.*SLOTS"):
        conf.get_settings()


def test_the_defaults_themselves_are_without_problems():
    assert conf.problems(conf.DEFAULTS) == []
