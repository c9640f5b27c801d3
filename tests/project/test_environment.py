"""How the settings module reads the environment."""

from __future__ import annotations

import threading

import pytest
from django.core.exceptions import ImproperlyConfigured

from scheduler_project import environment


@pytest.mark.parametrize(
    ("text", "meant"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("off", False), ("", False)]
)
def test_yes_and_no_have_several_spellings(monkeypatch, text, meant):
    monkeypatch.setenv("DJANGO_DEBUG", text)

    assert environment.boolean("DJANGO_DEBUG", not meant) is meant


def test_a_word_that_is_neither_yes_nor_no_is_refused_rather_than_guessed(monkeypatch):
    monkeypatch.setenv("DJANGO_DEBUG", "flase")

    with pytest.raises(ImproperlyConfigured, match="DJANGO_DEBUG='flase'"):
        environment.boolean("DJANGO_DEBUG", True)


def test_a_lease_that_is_no_number_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("SCHEDULER_LEASE_SECONDS", "ten")

    with pytest.raises(ImproperlyConfigured, match="SCHEDULER_LEASE_SECONDS"):
        environment.seconds("SCHEDULER_LEASE_SECONDS", 10)


def test_lists_ignore_blanks_and_empty_items(monkeypatch):
    monkeypatch.setenv("SCHEDULER_APPS", " shop, ,billing ,")

    assert environment.words("SCHEDULER_APPS") == ["shop", "billing"]


def test_production_refuses_to_start_without_a_key(monkeypatch, tmp_path):
    monkeypatch.delenv("DJANGO_SECRET_KEY")

    with pytest.raises(ImproperlyConfigured, match="DJANGO_SECRET_KEY is required"):
        environment.secret_key("DJANGO_SECRET_KEY", development=False, var_dir=tmp_path)


def test_development_makes_a_key_once_and_for_its_owner_only(monkeypatch, tmp_path):
    monkeypatch.delenv("DJANGO_SECRET_KEY")

    def key() -> str:
        return environment.secret_key("DJANGO_SECRET_KEY", development=True, var_dir=tmp_path / "var")

    assert len(key()) >= 50
    assert key() == key()
    assert (tmp_path / "var" / "secret-key").stat().st_mode & 0o077 == 0
    assert [path.name for path in (tmp_path / "var").iterdir()] == ["secret-key"]


def test_processes_that_start_together_agree_on_the_key(monkeypatch, tmp_path):
    monkeypatch.delenv("DJANGO_SECRET_KEY")
    keys: list[str] = []
    start = threading.Barrier(8)

    def read() -> None:
        start.wait()
        keys.append(environment.secret_key("DJANGO_SECRET_KEY", development=True, var_dir=tmp_path))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("redis://example.com:6379/2", "redis://example.com:6379/2"),
        ("unix:///tmp/valkey.sock", "unix:///tmp/valkey.sock"),
        ("redis+cluster://:secret@a:1,b:2", "redis://:secret@a:1/0"),
        (
            "redis+sentinel://user:s%40crt@a:1,b/jobs/3",
            {
                "sentinels": [("a", 1), ("b", 26379)],
                "master_name": "jobs",
                "db": 3,
                "username": "user",
                "password": "s@crt",
            },
        ),
    ],
)
def test_the_channel_layer_is_told_about_every_kind_of_server(url, host):
    assert environment.channel_host(url) == host
