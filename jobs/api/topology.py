"""Which pools there are, in which versions and partitions, and what each partition holds."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.api.asynchronous import twin
from jobs.engine import Partition, get_engine


def list(pool: str | None = None) -> Sequence[Partition]:
    """Every partition of every live version, by pool, oldest version first; those of one pool, if it is named (none
    where it was never used). Costs the same whatever they hold."""
    return get_engine().partitions.all(pool)


alist = twin(list)
