"""Signals of jobs reach their receivers, and what those do reaches nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.dispatch import Signal

from jobs.runtime.announcing import announce


@pytest.mark.parametrize("error", [ConnectionError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_a_receiver_raises_is_logged_and_ends_there(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def receiver(**_: Any) -> None:
        raise error("pager is down")

    happened = Signal()
    happened.connect(receiver)

    announce(happened, None, job_id="01")

    assert "pager is down" in caplog.text
