"""Lines of partitions, looked at together."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.core.job import Route
from jobs.store.connection import Store
from jobs.store.keys import partition_keys


def are_empty(store: Store, routes: Iterable[Route], *lines: str) -> bool:
    """Whether no job stands in any of these lines of any of these partitions: one question, however many they are."""
    keys = [getattr(partition_keys(store.namespace, route), line) for route in routes for line in lines]
    return not keys or not store.read(lambda client: client.exists(*keys))  # a line without a job is no key
