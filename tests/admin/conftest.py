"""The test's transaction is never committed: ``with commit():`` does what would be done after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_django import DjangoCaptureOnCommitCallbacks

Commit = Callable[[], AbstractContextManager[Any]]


@pytest.fixture
def commit(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> Commit:
    return partial(django_capture_on_commit_callbacks, execute=True)
