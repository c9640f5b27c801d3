"""Live overrides of job types, as the engine has them. They are set in the admin, whose rows own them."""

from __future__ import annotations

from jobs.api.asynchronous import twin
from jobs.engine import TypeOverrides, get_engine


def get(name: str) -> TypeOverrides:
    """What is set for a type; None in each field that is as the code declares it."""
    return get_engine().types.get(name)


def disabled() -> frozenset[str]:
    """Types that may be enqueued and do not start."""
    return get_engine().types.disabled()


aget = twin(get)
adisabled = twin(disabled)
