"""Outputs go to a folder of the test's own; the receiver of this process begins each test on its first day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from samples.receiver import receiver

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings as DjangoSettings


@pytest.fixture(autouse=True)
def samples_dir(settings: DjangoSettings, tmp_path: Path) -> Path:
    settings.SAMPLES_DIR = tmp_path / "samples"
    return tmp_path / "samples"


@pytest.fixture(autouse=True)
def _fresh_receiver() -> Iterator[None]:
    receiver.forget()
    yield
    receiver.forget()
