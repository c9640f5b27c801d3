"""``@job``: a registered function that can put jobs of itself into the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Never, ParamSpec, TypeVar, Unpack, overload

from jobs import registry as registered
from jobs.api.asynchronous import twin
from jobs.api.handle import JobHandle
from jobs.api.producer import enqueue_type
from jobs.core.options import EnqueueOptions, check_options
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import OptionInvalid, PayloadInvalid
from jobs.registry import JobOptions, registry

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Configured(Generic[P, R]):
    """A job type with the options of its next jobs: what ``using()`` answers."""

    def __init__(self, job_type: registered.JobType[P, R], options: Mapping[str, Any]) -> None:
        self._job_type = job_type
        self._options = options

    def using(self, **options: Unpack[EnqueueOptions]) -> Configured[P, R]:
        """These options over those that are set already. Raises OptionInvalid, now and not at the enqueue."""
        checked = check_options(options)
        kept = {name: value for name, value in self._options.items() if _EXCLUDES.get(name) not in checked}
        return Configured(self._job_type, {**kept, **checked})

    def enqueue(self, /, *unnamed: Never, **payload: Any) -> JobHandle:
        """One job with these arguments. See ``JobType.enqueue``."""
        _check_named(self._job_type, unnamed)
        return enqueue_type(self._job_type, [payload], self._options)[0]

    def enqueue_many(self, payloads: Iterable[Mapping[str, Any]], /) -> list[JobHandle]:
        """One job per payload, in batches. See ``JobType.enqueue_many``."""
        return enqueue_type(self._job_type, payloads, self._options)

    async def aenqueue(self, /, *unnamed: Never, **payload: Any) -> JobHandle:
        _check_named(self._job_type, unnamed)
        return (await self.aenqueue_many([payload]))[0]

    async def aenqueue_many(self, payloads: Iterable[Mapping[str, Any]], /) -> list[JobHandle]:
        return await twin(self.enqueue_many, uses_database=bool(self._options.get("on_commit")))(payloads)

    def __repr__(self) -> str:
        return f"<{self._job_type!r} using {', '.join(self._options) or 'its defaults'}>"


class JobType(registered.JobType[P, R]):
    """A job type as its users hold it: it can be called, and it can be enqueued."""

    def using(self, **options: Unpack[EnqueueOptions]) -> Configured[P, R]:
        """The type with options for its next jobs. Raises OptionInvalid naming the option and what to write."""
        return Configured(self, check_options(options))

    def enqueue(self, /, *unnamed: Never, **payload: Any) -> JobHandle:
        """Puts one job into the store: it will run with these arguments, in a worker.

        Raises PayloadInvalid, PayloadTooLarge, StoreUnavailable (nothing was changed) and OutcomeUnknown (it may have
        been).
        """
        _check_named(self, unnamed)
        return enqueue_type(self, [payload], {})[0]

    def enqueue_many(self, payloads: Iterable[Mapping[str, Any]], /) -> list[JobHandle]:
        """One job per payload, in batches of 1,000. All payloads are checked before the first job is made."""
        return enqueue_type(self, payloads, {})

    async def aenqueue(self, /, *unnamed: Never, **payload: Any) -> JobHandle:
        """The async twin of ``enqueue``."""
        return await Configured(self, {}).aenqueue(*unnamed, **payload)

    async def aenqueue_many(self, payloads: Iterable[Mapping[str, Any]], /) -> list[JobHandle]:
        """The async twin of ``enqueue_many``."""
        return await Configured(self, {}).aenqueue_many(payloads)


def _check_named(job_type: registered.JobType[Any, Any], unnamed: tuple[Any, ...]) -> None:
    if unnamed:
        takes = ", ".join(f"{name}=…" for name in job_type.codec.arguments) or "no arguments"
        raise PayloadInvalid(
            f"{job_type.name}: the arguments of a job have names, and {len(unnamed)} came without one",
            fix=f"Write enqueue({takes}).",
        )


@overload
def job(function: Callable[P, R], /) -> JobType[P, R]: ...
@overload
def job(name: str | None = None, **options: Unpack[JobOptions]) -> Callable[[Callable[P, R]], JobType[P, R]]: ...
def job(name: Any = None, **options: Any) -> Any:
    """Registers a function as a job type: ``@job``, ``@job("email.send")``, ``@job("email.send", pool="critical")``.

    The function stays callable. Its parameters are the payload; one called ``ctx`` receives the ``Context``. Options
    and their defaults are those of ``jobs.registry.JobType``. Raises OptionInvalid and TypeError.
    """
    for option in options:
        if option not in JobOptions.__annotations__:
            raise OptionInvalid(
                f"@job has no option {shown(option)}", fix=did_you_mean(option, JobOptions.__annotations__)
            )

    def register(function: Callable[P, R]) -> JobType[P, R]:
        job_type = JobType(function, name=None if name is function else name, **options)
        registry.add(job_type)
        return job_type

    return register(name) if callable(name) else register


_EXCLUDES = {"delay": "run_at", "run_at": "delay"}
