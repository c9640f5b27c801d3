"""A host hears at once what people change."""

from __future__ import annotations

from jobs.engine import Engine
from jobs.engine.news import TOPICS
from jobs.worker.listener import Listener


def test_each_topic_is_passed_on_with_what_it_is_about(engine: Engine) -> None:
    heard: list[tuple[str, list[str]]] = []
    listener = Listener(engine.news, lambda topic, abouts: heard.append((topic, abouts)))
    listener.tick()
    assert {topic for topic, _ in heard} == set(TOPICS), "what came before the start was not heard"
    assert "topology" in TOPICS
    heard.clear()

    engine.pools.configure("default", slots=1)
    engine.news.tell("cancel", "job-1")
    engine.news.tell("cancel", "job-2")
    while len(heard) < 2:
        listener.tick()

    assert heard == [("topology", [""]), ("pools", [""]), ("cancel", ["job-1", "job-2"])]
