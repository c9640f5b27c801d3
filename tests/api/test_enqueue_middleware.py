"""Middleware around enqueues."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import transaction

from jobs import JobHandle, get_job, list_jobs
from jobs.api.producer import EnqueueRequest, Send
from jobs.conf import get_settings
from tests.api.types import job_type


def add_origin(call: Send) -> Send:
    """An enqueue middleware of a project: says where a job comes from."""

    def send(request: EnqueueRequest) -> list[JobHandle]:
        request.spec = msgspec.structs.replace(request.spec, meta={**request.spec.meta, "origin": "web"})
        return call(request)

    return send


def move(call: Send) -> Send:
    """Another payload, into another pool."""

    def send(request: EnqueueRequest) -> list[JobHandle]:
        request.spec = msgspec.structs.replace(request.spec, pool="moved")
        request.payloads = [b'{"to":"Bob"}' for _ in request.payloads]
        return call(request)

    return send


def look_up(call: Any) -> Any:
    """An async one, as a project writes it that asks another service."""

    async def send(request: EnqueueRequest) -> list[JobHandle]:
        await asyncio.sleep(0)
        request.spec = msgspec.structs.replace(request.spec, tags=("looked-up",))
        handles: list[JobHandle] = await call(request)
        return handles

    return send


def refuse(call: Send) -> Send:
    def send(request: EnqueueRequest) -> list[JobHandle]:
        raise PermissionError(request.spec.meta["origin"])

    return send


class TestMiddleware:
    def test_it_can_change_what_is_enqueued(self, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": [f"{__name__}.add_origin"]}

        assert get_job(job_type().enqueue(to="Ann").id).meta == {"origin": "web"}

    def test_the_first_is_the_outermost_and_each_can_refuse(self, settings: Any) -> None:
        settings.SCHEDULER = {
            **settings.SCHEDULER,
            "ENQUEUE_MIDDLEWARE": [f"{__name__}.add_origin", f"{__name__}.refuse"],
        }

        with pytest.raises(PermissionError, match="web"):
            job_type().enqueue(to="Ann")

    def test_there_is_none_by_default(self) -> None:
        assert get_settings().enqueue_middleware == []

    @pytest.mark.django_db(transaction=True)
    def test_with_on_commit_it_acts_at_the_call_and_what_it_changed_is_what_comes(self, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": [f"{__name__}.move"]}

        with transaction.atomic():
            handle = job_type().using(on_commit=True).enqueue(to="Ann")
            assert (handle.state, handle.pool) == ("uncommitted", "moved")

        made = get_job(handle.id)
        assert (made.pool, made.payload, handle.state) == ("moved", {"to": "Bob"}, "ready")

    @pytest.mark.django_db(transaction=True)
    def test_with_on_commit_a_refusal_reaches_the_caller_inside_the_transaction(self, settings: Any) -> None:
        settings.SCHEDULER = {
            **settings.SCHEDULER,
            "ENQUEUE_MIDDLEWARE": [f"{__name__}.add_origin", f"{__name__}.refuse"],
        }

        with transaction.atomic(), pytest.raises(PermissionError):
            job_type().using(on_commit=True).enqueue(to="Ann")

        assert list_jobs().items == []

    def test_an_async_one_serves_blocking_callers(self, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": [f"{__name__}.look_up"]}

        assert get_job(job_type().enqueue(to="Ann").id).tags == ["looked-up"]

    async def test_an_async_one_serves_async_callers(self, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": [f"{__name__}.look_up"]}

        assert (await (await job_type().aenqueue(to="Ann")).arefresh()).tags == ["looked-up"]

    async def test_a_blocking_call_inside_the_event_loop_is_told_what_to_write(self, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": [f"{__name__}.look_up"]}

        with pytest.raises(SynchronousOnlyOperation, match="aenqueue"):
            job_type().enqueue(to="Ann")
