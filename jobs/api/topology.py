"""Which pools there are, in which versions and partitions, and what each partition holds."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.api.asynchronous import twin
from jobs.engine import Partition, get_engine


def list() -> Sequence[Partition]:
    """Every partition of every live version, by pool, oldest version first. Costs the same whatever they hold."""
    return get_engine().partitions.all()


alist = twin(list)
