"""Hears for a whole host what people change: settings of pools and types, pauses, new pools, cancelled jobs;
and which types other hosts do not know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from jobs.engine import News

WAIT_SECONDS = 20.0
"""One call waits so long for news; while there are none, a host asks no more often."""


class Listener:
    """``tick`` waits for news and passes them on: a topic, and what each entry was about."""

    def __init__(self, news: News, on_news: Callable[[str, list[str]], None]) -> None:
        self._news = news
        self._on_news = on_news

    def tick(self) -> float:
        topics: defaultdict[str, list[str]] = defaultdict(list)
        for item in self._news.wait(WAIT_SECONDS):
            topics[item.topic].append(item.about)
        for topic, abouts in topics.items():
            self._on_news(topic, abouts)
        return 0.0
