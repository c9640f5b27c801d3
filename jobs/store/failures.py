"""What the errors of redis-py and the refusals of scripts mean: the one place where they become ours."""

from __future__ import annotations

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MaxConnectionsError,
    MovedError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.sentinel import MasterNotFoundError

from jobs.exceptions import (
    JobNotFound,
    LeaseLost,
    PoolFull,
    RunNotFound,
    SchedulerError,
    StoreRefused,
    StoreUnavailable,
    WorkflowInvalid,
    WrongState,
)

_TRANSIENT = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    TryAgainError,
    MovedError,
    AskError,
    ClusterDownError,
    RedisClusterException,
)
ERRORS_OF_REDIS = (RedisError, RedisClusterException)  # the second is not one of the first
_NEVER_SENT = (
    "connecting to",
    "refused",
    "No such file",
    "resolve",
    "max number of clients",
    "Invalid Database",
    "previous master is now a slave",  # it answered READONLY
)
"""Words in the errors of a connection that show that no server carried anything out."""

_NOBODY = ("refused", "No such file")

_TRANSIENT_CODES = ("BUSY", "LOADING", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED")
_REFUSING_CODES = {
    "OOM": "The server is out of memory (maxmemory).",
    "MISCONF": "The server cannot write to its disk and refuses changes.",
    "NOPERM": "The server's user lacks a permission.",
    "NOAUTH": "The server wants a password.",
    "WRONGPASS": "The server refused user name or password.",
}
_ERRORS: dict[str, type[SchedulerError]] = {
    "JOB_NOT_FOUND": JobNotFound,
    "WRONG_STATE": WrongState,
    "LEASE_LOST": LeaseLost,
    "POOL_FULL": PoolFull,
    "RUN_NOT_FOUND": RunNotFound,
    "RUN_CANCELLED": WorkflowInvalid,
    "TOO_MANY_NODES": WorkflowInvalid,
    "UNKNOWN_PARENT": WorkflowInvalid,
}


def is_transient(error: Exception) -> bool:
    """Whether the same request may fare better in a moment."""
    if isinstance(error, AuthenticationError) or "Invalid Database" in str(error):
        return False
    return isinstance(error, _TRANSIENT) or str(error).startswith(_TRANSIENT_CODES)


def may_have_happened(error: Exception) -> bool:
    """Whether the request may have reached a server that carried it out."""
    if isinstance(error, (BusyLoadingError, MasterNotFoundError, MaxConnectionsError)):
        return False
    if isinstance(error, (RedisTimeoutError, RedisConnectionError)):
        return not any(words in str(error) for words in _NEVER_SENT)
    return False


def nobody_listens(error: Exception) -> bool:
    """Whether there was no server at all, as opposed to one that is slow or frozen."""
    return isinstance(error, RedisConnectionError) and any(words in str(error) for words in _NOBODY)


def translated(error: Exception) -> Exception:
    """What a script or the server refused with, as one of our errors."""
    code, _, facts = str(error).partition(" ")
    code = getattr(error, "status_code", None) or code  # redis-py takes some codes off the text
    if isinstance(error, AuthenticationError):
        return StoreUnavailable(
            _REFUSING_CODES.get(code, _REFUSING_CODES["WRONGPASS"]), fix="Correct them in SCHEDULER_REDIS_URL."
        )
    if code == "WRONG_STATE":
        return WrongState(f"The job is {facts}; that does not allow this.", state=facts)
    if code in _ERRORS:
        return _ERRORS[code](facts[:1].upper() + facts[1:] + ("" if facts.endswith(".") else "."))
    if code in _REFUSING_CODES:
        return StoreUnavailable(f"{_REFUSING_CODES[code]} ({error})", fix="`manage.py doctor` checks the server.")
    if isinstance(error, ResponseError) and "DB index" not in str(error):
        return StoreRefused(f"The server refused: {error}", fix="`manage.py doctor` checks the server.")
    return StoreUnavailable(f"The server refused: {error}", fix="Correct SCHEDULER_REDIS_URL.")


def reason(error: Exception) -> str:
    """Why the server cannot be reached, as the end of a sentence."""
    if isinstance(error, RedisTimeoutError):
        return "it does not answer."
    text = str(error).rstrip(".")
    return f"{text}."
