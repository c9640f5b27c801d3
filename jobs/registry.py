"""The job types of this process: functions with the defaults of their jobs, by name.

A worker runs what is registered here and nothing else: a name from the store is looked up, never imported. How a type
puts jobs into the store is said in ``jobs.api.job_type``; this module lies below the engine and knows no store.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from jobs.core import options
from jobs.core.context import Context
from jobs.core.duration import seconds
from jobs.core.job import JobSpec, LeasedJob, Route
from jobs.core.limits import TypeLimits, parse_rate
from jobs.core.payload import CONTEXT_ARGUMENT, PayloadCodec, dumps_in_order, takes_context
from jobs.core.retry import DEFAULT_BACKOFF, Backoff
from jobs.core.schedule import Rule
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import OptionInvalid, UnknownJobType

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class JobOptions(TypedDict, total=False):
    """What ``@job`` takes besides the name; defaults in ``JobType``."""

    pool: str
    priority: int  # −100…100, higher first
    max_retries: int  # failures after which it is tried again
    max_crashes: int  # deaths of its worker after which it is not
    backoff: Backoff
    timeout: float | timedelta | None  # seconds of one attempt
    unique: UniqueBy | bool | str | Sequence[str] | Callable[..., str] | None
    retry_on: type[BaseException] | Sequence[type[BaseException]]
    dead_on: type[BaseException] | Sequence[type[BaseException]]
    concurrency: int | None  # running at once, per concurrency_key
    rate: str | None  # starts, per rate_key: "100/m"
    durability: str
    result_ttl: float | timedelta | None  # seconds; None = as long as the job is kept
    redact: Sequence[str]  # arguments that people are not shown
    schedule: Rule | None  # Cron("30 2 * * *", timezone="Europe/Paris") or Interval(300): a schedule of its name


class UniqueBy:
    """What makes two jobs of one type the same: the named arguments, or what a function makes of all of them.

    ``UniqueBy("account", until="started")`` · ``UniqueBy(lambda account, **_: account.lower())`` · ``UniqueBy()`` for
    one live job of the type at all. ``until`` and ``on_duplicate`` as in ``using()``.
    """

    def __init__(
        self, *by: str | Callable[..., str], until: str | float | timedelta = "finished", on_duplicate: str = "return"
    ) -> None:
        self.arguments = tuple(part for part in by if isinstance(part, str))
        functions = [part for part in by if callable(part)]
        self.function = functions[0] if functions else None
        if len(by) != len(self.arguments) + len(functions) or (functions and len(by) > 1):
            raise OptionInvalid(
                f"unique: expected names of arguments or one function, got {shown(by)}",
                fix='Write unique="account" or unique=("account", "month").',
            )
        self.until = options.check_until("unique until", until)
        self.on_duplicate = options.check_on_duplicate("unique on_duplicate", on_duplicate)

    def key(self, payload: Mapping[str, Any]) -> str:
        """The unique key of a job with these arguments (converted, with defaults filled in)."""
        if self.function is not None:
            return options.check_text("the unique key that the type's function made", self.function(**payload))
        if not self.arguments:
            return "*"
        values = [payload.get(name) for name in self.arguments]
        text = str(values[0]) if len(values) == 1 and isinstance(values[0], str | int) else dumps_in_order(values)
        if text and text.isprintable() and len(text.encode()) <= options.LONGEST_TEXT:
            return text
        return hashlib.sha256(text.encode()).hexdigest()


class JobType(Generic[P, R]):
    """A registered function with the defaults of its jobs. Calling it calls the function, here and now.

    ``pool`` … ``redact`` are the options of ``@job``, checked. Raises OptionInvalid for a wrong one, and TypeError for
    a function whose signature cannot be a payload.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        pool: str = "default",
        priority: int = 0,
        max_retries: int = 3,
        max_crashes: int = 3,
        backoff: Backoff = DEFAULT_BACKOFF,
        timeout: float | timedelta | None = 30,
        unique: UniqueBy | bool | str | Sequence[str] | Callable[..., str] | None = None,
        retry_on: type[BaseException] | Sequence[type[BaseException]] = (Exception,),
        dead_on: type[BaseException] | Sequence[type[BaseException]] = (),
        concurrency: int | None = None,
        rate: str | None = None,
        durability: str = "memory",
        result_ttl: float | timedelta | None = None,
        redact: Sequence[str] = (),
        schedule: Rule | None = None,
    ) -> None:
        _check_function(function)
        # First, since it copies the function's own attributes over: those below win.
        functools.update_wrapper(self, function)
        self.name = check_name(default_name(function) if name is None else name)
        self.function = function
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        self.takes_context = takes_context(function)
        self.pool = options.check_pool("pool", pool)
        self.priority = options.check_priority("priority", priority)
        self.max_retries = options.check_retries("max_retries", max_retries)
        self.max_crashes = options.check_whole("max_crashes", max_crashes, 1, 1_000)
        options.check_backoff("backoff", backoff)
        self.backoff = backoff
        self.timeout = options.check_timeout("timeout", timeout)
        self.retry_on = _check_errors("retry_on", retry_on)
        self.dead_on = _check_errors("dead_on", dead_on)
        self.concurrency = (
            None if concurrency is None else options.check_whole("concurrency", concurrency, 1, 1_000_000)
        )
        self.rate = None if rate is None else str(parse_rate(rate))
        self.durability = options.check_durability("durability", durability)
        self.result_ttl = None if result_ttl is None else seconds(result_ttl, name="result_ttl")
        self.redact = tuple(options.check_text("an argument in redact", argument) for argument in _listed(redact))
        self.unique = _check_unique(unique)
        self.schedule = _check_schedule(schedule)
        # An annotation may name what the module defines further down: then the signature is read at first use.
        with suppress(NameError):
            self._check_arguments(self.codec)

    @functools.cached_property
    def codec(self) -> PayloadCodec:
        """The payload's form, compiled from the signature. Raises TypeError where an annotation cannot be resolved."""
        return PayloadCodec(self.name, self.function)

    @functools.cached_property
    def defaults(self) -> JobSpec:
        """The request that an enqueue without options makes."""
        return JobSpec(
            type=self.name,
            pool=self.pool,
            priority=self.priority,
            max_retries=self.max_retries,
            max_crashes=self.max_crashes,
            timeout=self.timeout,
            backoff=options.check_backoff("backoff", self.backoff),
            result_ttl=self.result_ttl,
            durability=self.durability,
            redact=self.redact,
        )

    @functools.cached_property
    def limits(self) -> TypeLimits | None:
        """What may run at once and how often it may start; None where the type has no limits."""
        if self.concurrency is None and self.rate is None:
            return None
        return TypeLimits(self.name, self.concurrency, None if self.rate is None else parse_rate(self.rate))

    @functools.cached_property
    def encode(self) -> Callable[[Mapping[str, Any]], bytes]:
        """Arguments → the bytes to store. Raises PayloadInvalid naming the argument and what is wrong with it."""
        return self._resolved_codec().encode

    @functools.cached_property
    def check(self) -> Callable[[Mapping[str, Any], frozenset[str]], None]:
        """(payload, arguments whose values come later) → PayloadInvalid where it cannot fit the signature."""
        return self._resolved_codec().check

    @functools.cached_property
    def decode(self) -> Callable[[bytes], dict[str, Any]]:
        """Stored bytes → the handler's keyword arguments, without the context. Raises PayloadInvalid."""
        return self._resolved_codec().decode

    def _resolved_codec(self) -> PayloadCodec:
        try:
            self._check_arguments(self.codec)
        except NameError as error:
            raise TypeError(
                f"{self.name}: an annotation cannot be resolved: {error}. "
                "Import or define what it names at the top level of the module, outside TYPE_CHECKING."
            ) from None
        return self.codec

    def _check_arguments(self, codec: PayloadCodec) -> None:
        """Options that name arguments must name real ones."""
        for option, named in (("unique", self.unique.arguments if self.unique else ()), ("redact", self.redact)):
            for argument in named:
                if argument not in codec.arguments and not codec.takes_any_argument:
                    raise OptionInvalid(
                        f"{option}: {self.name} has no argument {shown(argument)}",
                        fix=did_you_mean(argument, codec.arguments, none="It takes no arguments."),
                    )

        if self.schedule is not None and codec.required:
            raise OptionInvalid(
                f"schedule: {self.name} needs arguments ({', '.join(codec.required)}), which nobody gives",
                fix="Give them defaults, or make a schedule with a payload in the admin.",
            )

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if (
            self.takes_context
            and CONTEXT_ARGUMENT not in inspect.signature(self).bind_partial(*args, **kwargs).arguments
        ):
            kwargs[CONTEXT_ARGUMENT] = self.context_of_call(kwargs)
        return self.function(*args, **kwargs)

    def context_of_call(self, payload: Mapping[str, Any]) -> Context:
        """A context for a plain call, outside any worker: first attempt, no time-out, progress goes nowhere."""
        return Context(
            LeasedJob(
                id="",
                route=Route(self.pool, 0, 0),
                token="",
                type=self.name,
                payload=b"{}",
                attempt=1,
                errors=0,
                crashes=0,
                fencing_token=0,
                priority=self.priority,
                max_retries=self.max_retries,
                max_crashes=self.max_crashes,
                timeout=None,
                backoff=self.defaults.backoff,
                extras={},
                leased_at=0,
            ),
            dict(payload),
        )

    def __repr__(self) -> str:
        return f"<JobType {self.name}>"


class Registry:
    """Job types by name."""

    def __init__(self) -> None:
        self._types: dict[str, JobType[..., Any]] = {}

    def add(self, job_type: JobType[..., Any]) -> None:
        """Raises OptionInvalid if another function has the name. A module loaded again replaces its own types."""
        known = self._types.get(job_type.name)
        if known is not None and not _same_function(known.function, job_type.function):
            raise OptionInvalid(
                f"The job type {job_type.name!r} is already registered by {_place(known.function)}; "
                f"{_place(job_type.function)} cannot take its name",
                fix=f'Give one of them another name: @job("{job_type.name}_2").',
            )
        self._types[job_type.name] = job_type

    def get(self, name: str) -> JobType[..., Any]:
        """Raises UnknownJobType with the nearest name."""
        try:
            return self._types[name]
        except (KeyError, TypeError):  # whatever came in a request may not even be text
            raise UnknownJobType(
                f"No job type {shown(name)} is registered in this process",
                fix=did_you_mean(name, self._types, none="No job type is registered: is your app in INSTALLED_APPS?"),
            ) from None

    def all(self) -> dict[str, JobType[..., Any]]:
        """All of them, by name, in order of name."""
        return dict(sorted(self._types.items()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._types

    @contextmanager
    def restored(self) -> Iterator[None]:
        """For tests: what is registered inside the block is forgotten after it."""
        before = dict(self._types)
        try:
            yield
        finally:
            self._types = before


registry = Registry()


def autodiscover(modules: Sequence[str]) -> None:
    """Imports these modules of every installed app, so that they register their types."""
    autodiscover_modules(*modules)


def default_name(function: Callable[..., Any]) -> str:
    """``<app or module>.<function>``: the label of the installed app, else the module's last word that is no role.

    The same before and after the apps are ready, unless an app has another label than its package: the same function
    must not have two names in two processes.
    """
    module = function.__module__
    app = apps.get_containing_app_config(module) if apps.apps_ready else None
    if app is not None:
        return f"{app.label}.{function.__name__}"
    words = module.split(".")
    if len(words) > 1 and words[-1] in {"jobs", "tasks"}:
        words.pop()
    return f"{words[-1]}.{function.__name__}"


# --- Checks ----------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,119}")


def check_name(name: object) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise OptionInvalid(
        f"{shown(name)} is not a name for a job type",
        fix="Use up to 120 letters, digits, '_', '.', ':' and '-', beginning with a letter: @job(\"email.send\").",
    )


def _check_function(function: object) -> None:
    if inspect.isfunction(function):
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"@job: {_place(function)} yields; a job returns its result. Put the loop inside.")
        return
    hint = ""
    if isinstance(function, staticmethod | classmethod):
        hint = " Methods cannot be job types: move it to the module."
    elif isinstance(function, JobType):
        hint = " It is a job type already."
    raise TypeError(f"@job goes on a function, not on {shown(function)}.{hint}")


def _check_errors(name: str, value: Any) -> tuple[type[BaseException], ...]:
    classes = _listed(value)
    for found in classes:
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise OptionInvalid(
                f"{name}: {shown(found)} is not an exception class",
                fix=f"Write {name}=(ConnectionError, TimeoutError).",
            )
    return classes


def _check_unique(value: Any) -> UniqueBy | None:
    if value is None or value is False:
        return None
    if isinstance(value, UniqueBy):
        return value
    if value is True:
        return UniqueBy()
    return UniqueBy(*_listed(value))


def _check_schedule(value: Any) -> Rule | None:
    if value is None or isinstance(value, Rule):
        return value
    raise OptionInvalid(
        f"schedule: expected Cron or Interval, got {shown(value)}",
        fix='Write schedule=Cron("30 2 * * *", timezone="Europe/Paris") or schedule=Interval(300).',
    )


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)


def _same_function(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether ``other`` is ``one``, or what the same lines of the same file made when they were run again."""
    if one is other:
        return True
    # What a factory makes stands on the same lines each time, and yet each is a function of its own.
    return "<locals>" not in one.__qualname__ and _lines(one) == _lines(other)


def _lines(function: Callable[..., Any]) -> tuple[str, int]:
    code = inspect.unwrap(function).__code__
    return code.co_filename, code.co_firstlineno


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


__all__ = ["JobOptions", "JobType", "Registry", "UniqueBy", "autodiscover", "default_name", "registry"]
