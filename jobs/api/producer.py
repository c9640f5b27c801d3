"""How a request becomes jobs: defaults, overrides and options merged, middleware, then the engine or the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, Protocol, Unpack

import msgspec
from django.core.signals import setting_changed
from django.db import transaction

from jobs.api.asynchronous import twin
from jobs.api.handle import JobHandle, handle_of
from jobs.conf import get_settings
from jobs.core.job import Enqueued, EnqueueRequest, JobSpec, Unique
from jobs.core.options import EnqueueOptions, check_options
from jobs.core.payload import encode_any
from jobs.engine import NO_OVERRIDES, TypeOverrides, get_engine
from jobs.exceptions import OptionInvalid, PayloadInvalid, PayloadTooLarge, SchedulerError
from jobs.middleware import AsgirefBridge, chain
from jobs.registry import JobType, UniqueBy, check_name, registry

OVERRIDABLE = ("pool", "priority", "max_retries", "timeout")
"""What an operator may set for a type; stands between the type's own defaults and the options of a call."""

SPEC_OPTIONS = frozenset(JobSpec.__struct_fields__) & frozenset(EnqueueOptions.__annotations__)
"""Options that are fields of the request by the same name."""

UNCOMMITTED = "uncommitted"


Send = Callable[[EnqueueRequest], list[JobHandle]]
"""An enqueue middleware takes the next of these and returns one."""


def enqueue(type_name: str, payload: Mapping[str, Any], /, **options: Unpack[EnqueueOptions]) -> JobHandle:
    """Enqueues a job by the name of its type. ``options`` are those of ``using()``.

    UnknownJobType (unless ``allow_unknown``), PayloadInvalid, PayloadTooLarge, OptionInvalid, DuplicateJob,
    StoreUnavailable, OutcomeUnknown.
    """
    return enqueue_many(type_name, [payload], **options)[0]


def enqueue_many(
    type_name: str, payloads: Iterable[Mapping[str, Any]], /, **options: Unpack[EnqueueOptions]
) -> list[JobHandle]:
    """Enqueues one job per payload, all with the same options, in batches. Errors as ``enqueue``."""
    chosen = check_options(options)
    if chosen.get("allow_unknown") and type_name not in registry:
        return _enqueue_unknown(type_name, payloads, chosen)
    return enqueue_type(registry.get(type_name), payloads, chosen)


def enqueue_type(
    job_type: JobType[..., Any], payloads: Iterable[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> list[JobHandle]:
    """The same for a type at hand and options that are checked."""
    _refuse_idle_keys(job_type, chosen)
    encoded = _encode_all(job_type.encode, payloads)
    spec = merged(job_type.defaults, _destination.overrides(job_type.name), chosen)
    by = job_type.unique
    if by is None or "unique_key" in chosen:
        return submit(EnqueueRequest(_unique(spec, chosen, None), encoded, _on_commit(chosen)))
    # Each payload has a key of its own, and each key is a claim of its own.
    return [
        handle
        for payload in encoded
        for handle in submit(
            EnqueueRequest(_unique(spec, chosen, by, by.key(job_type.decode(payload))), [payload], _on_commit(chosen))
        )
    ]


def _refuse_idle_keys(job_type: JobType[..., Any], chosen: Mapping[str, Any]) -> None:
    """A key of a limit that there is not would hold nobody back, and whoever gave it relies on it."""
    for kind in ("concurrency", "rate"):
        if chosen.get(f"{kind}_key") is not None and getattr(job_type, kind) is None:
            raise OptionInvalid(
                f"{kind}_key: {job_type.name} has no limit that could count by it.",
                fix=f"Give the type one, @job({job_type.name!r}, {kind}=…), or leave {kind}_key out.",
            )


async def aenqueue(type_name: str, payload: Mapping[str, Any], /, **options: Unpack[EnqueueOptions]) -> JobHandle:
    """The async twin of ``enqueue``."""
    return (await aenqueue_many(type_name, [payload], **options))[0]


async def aenqueue_many(
    type_name: str, payloads: Iterable[Mapping[str, Any]], /, **options: Unpack[EnqueueOptions]
) -> list[JobHandle]:
    """The async twin of ``enqueue_many``."""
    return await twin(enqueue_many, uses_database=bool(options.get("on_commit")))(type_name, payloads, **options)


def pool_of(type_name: str, pool: str | None = None) -> str:
    """The pool that a job of this type goes to, if it is enqueued now with this ``pool``; None: with none."""
    if pool is not None:
        return pool
    declared = registry.get(type_name).defaults if type_name in registry else JobSpec(type=type_name)
    return _destination.overrides(type_name).pool or declared.pool


def merged(defaults: JobSpec, overrides: TypeOverrides, chosen: Mapping[str, Any]) -> JobSpec:
    """The type's defaults, over them what an operator set for the type, over that the options of this call."""
    if overrides is NO_OVERRIDES and not chosen:
        return defaults
    changes = {name: value for name in OVERRIDABLE if (value := getattr(overrides, name)) is not None}
    for name, value in chosen.items():
        if name in SPEC_OPTIONS:
            changes[name] = value
    if "delay" in chosen:
        changes["delay_ms"] = chosen["delay"]
    if "run_at" in chosen:
        changes["run_at_ms"] = chosen["run_at"]
    return msgspec.structs.replace(defaults, **changes) if changes else defaults


def _enqueue_unknown(
    type_name: str, payloads: Iterable[Mapping[str, Any]], chosen: Mapping[str, Any]
) -> list[JobHandle]:
    """For a producer without the handler's code: the payload is any JSON object, the defaults are those of ``@job``."""
    encoded = _encode_all(partial(encode_any, type_name), payloads)
    spec = merged(JobSpec(type=check_name(type_name)), _destination.overrides(type_name), chosen)
    return submit(EnqueueRequest(_unique(spec, chosen, None), encoded, _on_commit(chosen)))


def _on_commit(chosen: Mapping[str, Any]) -> bool | str:
    asked: bool | str = chosen.get("on_commit") or False
    return asked


def _encode_all(encode: Callable[[Mapping[str, Any]], bytes], payloads: Iterable[Mapping[str, Any]]) -> list[bytes]:
    encoded: list[bytes] = []
    try:
        for payload in payloads:
            encoded.append(encode(payload))
    except PayloadInvalid as error:
        if encoded:
            raise PayloadInvalid(f"Payload {len(encoded)} (counted from 0): {error}", fix=error.fix) from None
        raise
    return encoded


def _unique(spec: JobSpec, chosen: Mapping[str, Any], by: UniqueBy | None, key: str | None = None) -> JobSpec:
    key = chosen.get("unique_key", key)
    if key is None:
        for name in ("unique_until", "on_duplicate"):
            if name in chosen and "unique_key" not in chosen:
                raise OptionInvalid(
                    f"{name} says nothing without a unique key", fix='Add unique_key="…", or unique= to the job type.'
                )
        return spec
    until = chosen.get("unique_until", by.until if by else "finished")
    on_duplicate = chosen.get("on_duplicate", by.on_duplicate if by else "return")
    return msgspec.structs.replace(spec, unique=Unique(key=key, until=until, on_duplicate=on_duplicate))


# --- On the way out --------------------------------------------------------------------------------------------------


def submit(request: EnqueueRequest) -> list[JobHandle]:
    """Sends a request through the enqueue middleware and to the engine."""
    return _send()(request) if request.payloads else []


def led_through(spec: JobSpec, payload: bytes, job_id: str) -> tuple[JobSpec, bytes]:
    """Leads the job of a firing through the enqueue middleware: options and payload as that has left them.

    It is made afterwards, by whoever asks, under an id that was fixed before; its schedule, fire time and pool stay.
    OptionInvalid where a middleware sends nothing on or fails: the firing is then skipped, and says why.
    """
    if not get_settings().enqueue_middleware:
        return spec, payload
    aside = _Aside(spec, job_id)
    token = _set_aside.set(aside)
    try:
        _send()(EnqueueRequest(spec=spec, payloads=[payload]))
    except SchedulerError:
        raise
    except Exception as error:
        raise OptionInvalid(f"An enqueue middleware failed: {type(error).__name__}: {error}") from error
    finally:
        _set_aside.reset(token)
    if aside.kept is None:
        raise OptionInvalid("An enqueue middleware did not send it on.")
    kept = msgspec.structs.replace(
        aside.kept.spec, id=None, schedule=spec.schedule, fire_time_ms=spec.fire_time_ms, pool=spec.pool
    )
    return kept, aside.kept.payloads[0]


class _Aside:
    """Where the request of one firing stops on its way to the engine. What middleware enqueues besides does not."""

    def __init__(self, spec: JobSpec, job_id: str) -> None:
        self._firing = (spec.type, spec.fire_time_ms)
        self._job_id = job_id
        self.kept: EnqueueRequest | None = None

    def takes(self, request: EnqueueRequest) -> bool:
        return self.kept is None and (request.spec.type, request.spec.fire_time_ms) == self._firing

    def keep(self, request: EnqueueRequest) -> list[JobHandle]:
        self.kept = request
        spec = request.spec
        return [JobHandle(id=self._job_id, type=spec.type, pool=spec.pool, state=UNCOMMITTED)]


_set_aside: ContextVar[_Aside | None] = ContextVar("jobs.producer.aside", default=None)


@cache
def _send() -> Send:
    """The way through what ``SCHEDULER["ENQUEUE_MIDDLEWARE"]`` names, outermost first."""
    return chain(get_settings().enqueue_middleware, _hand_over, AsgirefBridge())


def _forget_middleware(*, setting: str, **_: object) -> None:
    if setting == "SCHEDULER":
        _send.cache_clear()


setting_changed.connect(_forget_middleware, dispatch_uid="jobs.api.producer")


def _hand_over(request: EnqueueRequest) -> list[JobHandle]:
    """The innermost call: the request as middleware has left it goes to the engine, now or with the commit."""
    spec = request.spec
    if len(request.payloads) > 1 and (spec.id is not None or spec.unique is not None):
        raise OptionInvalid(
            f"{'id' if spec.id is not None else 'unique_key'} names one job, and here are {len(request.payloads)}",
            fix="Enqueue them one by one, each with its own.",
        )
    if spec.durability != "memory":
        raise OptionInvalid(
            f'durability "{spec.durability}" is not available in this version', fix='Write durability="memory".'
        )
    _refuse_large(request)
    aside = _set_aside.get()
    if aside is not None and aside.takes(request):
        return aside.keep(request)
    if request.on_commit:
        return _hand_over_on_commit(request)
    return [handle_of(made) for made in _destination.enqueue(spec, request.payloads, None)]


def _hand_over_on_commit(request: EnqueueRequest) -> list[JobHandle]:
    spec, payloads = request.spec, request.payloads
    ids = [spec.id] if spec.id is not None else _destination.new_ids(spec.pool, len(payloads))
    handles = [JobHandle(id=id, type=spec.type, pool=spec.pool, state=UNCOMMITTED) for id in ids]

    def committed() -> None:
        for handle, made in zip(handles, _destination.enqueue(spec, payloads, ids), strict=True):
            handle.settle(made)

    transaction.on_commit(committed, using=request.on_commit if isinstance(request.on_commit, str) else None)
    return handles


def _refuse_large(request: EnqueueRequest) -> None:
    """The engine refuses them too; a job that waits for a commit is refused while its caller can still be told."""
    limit = get_settings().payload_limit
    largest = max(map(len, request.payloads))
    if largest > limit:
        raise PayloadTooLarge(
            f"{request.spec.type}: a payload has {largest} bytes; the limit is {limit}",
            fix="Store the data elsewhere and pass a reference, or raise SCHEDULER['PAYLOAD_LIMIT'].",
        )


class Destination(Protocol):
    """Where requests go: the engine, or in tests something that stands in for it."""

    def overrides(self, type_name: str) -> TypeOverrides: ...
    def new_ids(self, pool: str, count: int) -> list[str]: ...
    def enqueue(self, spec: JobSpec, payloads: Sequence[bytes], ids: Sequence[str] | None) -> list[Enqueued]: ...


class EngineDestination:
    """The engine of this process."""

    def overrides(self, type_name: str) -> TypeOverrides:
        return get_engine().types.get(type_name)

    def new_ids(self, pool: str, count: int) -> list[str]:
        return get_engine().jobs.new_ids(pool, count)

    def enqueue(self, spec: JobSpec, payloads: Sequence[bytes], ids: Sequence[str] | None) -> list[Enqueued]:
        return get_engine().jobs.enqueue(spec, payloads, ids=ids if spec.id is None else None)


_destination: Destination = EngineDestination()


@contextmanager
def delivered_to(destination: Destination) -> Iterator[None]:
    """For tests: requests of this process go to ``destination`` inside the block."""
    global _destination
    before, _destination = _destination, destination
    try:
        yield
    finally:
        _destination = before
