"""The stream: steady, varied, polite, and unimpressed by outages."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from jobs.core.job import JobSpec
from jobs.core.states import JobState
from jobs.engine import Engine, JobFilter
from jobs.testing import capture, drain
from samples import outputs, stream
from samples.jobs import build_report
from samples.receiver import Behaviour
from samples.stream import MIX, Recipe, Stream
from tests.support.wait import eventually

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings as DjangoSettings
    from pytest_django.live_server_helper import LiveServer

    from tests.support.valkey import ValkeyServer


def states(engine: Engine) -> Counter[str]:
    return Counter({name: count for name, count in engine.stats.snapshot().states.items() if count})


@pytest.mark.parametrize("recipe", MIX, ids=lambda recipe: recipe.story)
@pytest.mark.usefixtures("samples_dir")
def test_each_recipe_ends_as_its_story_says(recipe: Recipe, live_server: LiveServer, settings: DjangoSettings) -> None:
    settings.SAMPLES_BASE_URL = live_server.url

    recipe.enqueue(Random(1))
    (job,) = drain(skip_waits=True)

    assert job.state == (JobState.DEAD if "dead" in recipe.story else JobState.SUCCEEDED), job.error
    assert job.tags == [stream.TAG]
    if "dead at once" in recipe.story:
        assert job.attempt == 1
    if "after its retries" in recipe.story:
        assert job.attempt == 1 + job.max_retries
    if "busy at first" in recipe.story:
        assert job.attempt == 3


def test_it_is_made_of_all_recipes_and_mostly_of_jobs_that_succeed() -> None:
    doomed = sum(recipe.weight for recipe in MIX if "dead" in recipe.story)
    whole = sum(recipe.weight for recipe in MIX)

    assert 0.03 < doomed / whole < 0.1
    assert {recipe.weight for recipe in MIX} >= {1, 28}


def test_it_enqueues_as_many_as_it_was_asked_to(engine: Engine) -> None:
    assert Stream(rate=1000, count=30, seed=7).run() == 30

    found = states(engine)
    assert found.total() >= 28  # of two requests for the same report, one is kept
    assert found["scheduled"] >= 1
    assert {pool.name for pool in engine.pools.all()} >= {"critical", "background", "default"}


def test_the_same_seed_makes_the_same_jobs() -> None:
    def made(seed: int) -> list[tuple[str, object]]:
        with capture() as captured:
            Stream(rate=1000, count=8, seed=seed).run()
        return [(job.spec.type, job.payload) for job in captured]

    assert made(7) == made(7)
    assert made(7) != made(8)


def test_it_stops_when_asked_even_in_a_long_pause() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=Stream(rate=0.01, stop=stop).run)
    thread.start()

    stop.set()
    thread.join(5)

    assert not thread.is_alive()


def test_it_waits_while_nobody_works(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.jobs.enqueue(JobSpec(type="somebody.elses"), [b"{}"] * (stream.MOST_WAITING + 1))
    monkeypatch.setattr(stream, "LOOK_AFTER_SECONDS", 0.01)
    stop = threading.Event()
    patient = Stream(rate=1000, stop=stop)
    thread = threading.Thread(target=patient.run)
    thread.start()

    stop.wait(0.3)
    assert patient.enqueued == 0

    for job in engine.jobs.page(limit=10).items:
        engine.jobs.cancel(job.id)
    eventually(lambda: patient.enqueued > 0)
    stop.set()
    thread.join(5)


def test_it_survives_an_outage_and_says_so_once(
    settings: DjangoSettings,
    private_valkey: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    monkeypatch.setattr(stream, "PATIENCE_SECONDS", 0.3)
    caplog.set_level("WARNING", "samples.stream")
    stop = threading.Event()
    steady = Stream(rate=200, stop=stop)
    thread = threading.Thread(target=steady.run)
    thread.start()
    eventually(lambda: steady.enqueued > 3)

    private_valkey.kill()
    eventually(lambda: "The sample stream waits" in caplog.text, within=30)
    before = steady.enqueued
    private_valkey.start()
    eventually(lambda: steady.enqueued > before + 3, within=30)
    stop.set()
    thread.join(5)

    assert caplog.text.count("The sample stream waits") == 1
    assert caplog.text.count("The sample stream goes on") == 1


def test_old_outputs_are_removed_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "KEPT", 3)
    monkeypatch.setattr(outputs.tidy, "__defaults__", (3,))
    for number in range(9):
        outputs.write("reports", f"{number}.csv", b"")

    Stream(rate=1000, count=1, seed=1).run()

    assert len(outputs.latest("reports")) == 3


def test_its_own_dead_letters_are_removed_after_a_day_and_nobody_elses(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_report.using(tags=[stream.TAG]).enqueue(year=1066)
    mine = build_report.enqueue(year=1066)
    drain()

    Stream(rate=1000, count=1, seed=1).run()
    assert states(engine)["dead"] == 2

    monkeypatch.setattr(stream, "DEAD_LETTERS_KEPT", timedelta(0))
    Stream(rate=1000, count=1, seed=1).run()
    assert [job.id for job in engine.jobs.page(JobFilter(states=(JobState.DEAD,))).items] == [mine.id]


def test_webhooks_go_to_the_development_server(settings: DjangoSettings) -> None:
    settings.SAMPLES_BASE_URL = "http://127.0.0.1:9000"

    assert stream.receiver_url(Behaviour.FLAKY) == "http://127.0.0.1:9000/samples/webhooks/flaky/"


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_ends_by_itself_after_a_count(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        call_command("samples_stream", "--rate", "1000", "--count", "3", "--seed", "5")
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)

    assert states(engine).total() == 3
    assert capsys.readouterr().err == "3 sample jobs enqueued\n"


@pytest.mark.parametrize("rate", ["0", "-1", "much", "nan", "1e9"])
def test_a_senseless_rate_is_refused(rate: str) -> None:
    with pytest.raises(CommandError, match="jobs a second"):
        call_command("samples_stream", "--rate", rate)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_at_once_and_in_peace(
    number: signal.Signals, private_valkey: ValkeyServer, var_dir: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "samples_stream", "--rate", "5"],
        env={"PATH": "", "SCHEDULER_REDIS_URL": private_valkey.url, "SCHEDULER_VAR_DIR": str(var_dir)},
        stderr=subprocess.PIPE,
        text=True,
    )
    with private_valkey.client() as client:
        eventually(lambda: client.dbsize() > 0, within=30)

    process.send_signal(number)
    _, said = process.communicate(timeout=10)

    assert process.returncode == 0
    assert re.search(r"\d+ sample jobs enqueued", said)
