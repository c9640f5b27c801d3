"""Handlers leave a line in a journal file when they begin and end: what really ran, whatever the store says."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from jobs import Context, Dead, Fixed, Retry, Snooze, current_context, job
from jobs.exceptions import JobTimeout


def journal(path: str, word: str, job_id: str) -> None:
    """One line in one write, so that processes cannot mix theirs."""
    with open(path, "a") as file:
        file.write(f"{word} {job_id} {os.getpid()}\n")


@job("test.nothing")
def nothing() -> None:
    """The cheapest job there is."""


@job("test.echo")
def echo(value: Any = None) -> Any:
    return value


@job("test.note")
def note(path: str, *, ctx: Context) -> None:
    journal(path, "ran", ctx.id)


@job("test.stamp")
def stamp(path: str) -> None:
    """Notes the moment of its start, for whoever measures latencies."""
    moment = time.time()
    with open(path, "a") as file:
        file.write(f"{moment}\n")


@job("test.sleep")
def sleep(seconds: float, path: str, *, ctx: Context) -> str:
    journal(path, "began", ctx.id)
    time.sleep(seconds)
    journal(path, "ended", ctx.id)
    return "slept"


@job("test.asleep")
async def asleep(seconds: float, path: str, *, ctx: Context) -> str:
    journal(path, "began", ctx.id)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        journal(path, "interrupted", ctx.id)
        raise
    journal(path, "ended", ctx.id)
    return current_context().id


@job("test.heed", timeout=None)
def heed(path: str, seconds: float = 20.0, *, ctx: Context) -> None:
    """Works in small steps and stops when it is asked to."""
    journal(path, "began", ctx.id)
    for _ in range(int(seconds / 0.02)):
        if ctx.is_cancelled():
            journal(path, "heeded", ctx.id)
            ctx.raise_if_cancelled()
        time.sleep(0.02)
    journal(path, "ended", ctx.id)


@job("test.spin", max_retries=0)
def spin(path: str, *, ctx: Context) -> None:
    """Computes for ever and asks nobody."""
    journal(path, "began", ctx.id)
    try:
        while True:
            pass
    except Exception:
        journal(path, "interrupted", ctx.id)
        raise


@job("test.swallow", max_retries=0)
def swallow(path: str, *, ctx: Context) -> None:
    """Computes for ever and takes no for no answer."""
    journal(path, "began", ctx.id)
    while True:
        try:
            while True:
                pass
        except Exception:
            journal(path, "interrupted", ctx.id)


@job("test.tidy_up")
def tidy_up(path: str, *, ctx: Context) -> str:
    """Makes the best of the time that it has."""
    try:
        spin.function(path, ctx=ctx)
    except JobTimeout as error:
        return str(error)
    return ""


@job("test.aswallow", max_retries=0)
async def aswallow(path: str, *, ctx: Context) -> None:
    journal(path, "began", ctx.id)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            journal(path, "interrupted", ctx.id)


@job("test.hold_the_lock", timeout=None)
def hold_the_lock(seconds: float, path: str, *, ctx: Context) -> None:
    """A C call that keeps the interpreter to itself: no other Python thread of the process moves."""
    journal(path, "began", ctx.id)
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1_000_000)))
    journal(path, "ended", ctx.id)


@job("test.die", backoff=Fixed(0))
def die(path: str, by: int = signal.SIGKILL, *, ctx: Context) -> None:
    """Takes its worker with it."""
    journal(path, "began", ctx.id)
    os.kill(os.getpid(), by)
    time.sleep(5)


@job("test.quit", max_crashes=1)
def quit_process(code: int) -> None:
    """Ends the process as a C library might."""
    os._exit(code)


@job("test.fail", backoff=Fixed(0.05), max_retries=2)
def fail(message: str = "no luck") -> None:
    raise ValueError(message)


@job("test.raise", max_retries=0)
def raise_something(what: str) -> None:
    raise STRANGE[what]()


@job("test.decide", backoff=Fixed(0.05))
def decide(how: str, *, ctx: Context) -> int:
    if how == "retry" and ctx.attempt == 1:
        raise Retry(after=0.1)
    if how == "dead":
        raise Dead("told so")
    if how == "snooze" and ctx.fencing_token == 1:
        raise Snooze(0.1)
    return ctx.attempt


@job("test.result")
def result(kind: str) -> Any:
    return {"large": "x" * 300_000, "strange": threading.Lock(), "nan": float("nan")}[kind]


@job("test.progress", timeout=None)
def progress(path: str, *, ctx: Context) -> None:
    ctx.progress(3, 12, "a quarter")
    time.sleep(0.5)
    ctx.progress(12, 12, "all")


@job("test.tell")
def tell(*, ctx: Context) -> None:
    """Logs through its context, and as any library does."""
    ctx.log.info("of the job", page=3)
    logging.getLogger("library").info("of a library")


@job("test.swell")
def swell(megabytes: int) -> None:
    """Makes its process larger for good."""
    _KEPT.append(bytearray(os.urandom(1 << 20) * megabytes))


@job("test.connection")
def connection() -> int:
    """Uses the database and answers the id of the connection object's socket-like handle."""
    from django.db import connection as django_connection

    with django_connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return id(django_connection.connection)


_KEPT: list[bytearray] = []


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even my message")


class SurrogateError(Exception):
    def __str__(self) -> str:
        return "half a character: \ud800"


def _exit() -> BaseException:
    return SystemExit(3)


STRANGE: dict[str, Any] = {
    "exit": _exit,
    "interrupt": KeyboardInterrupt,
    "generator": GeneratorExit,
    "base": BaseException,
    "unprintable": UnprintableError,
    "surrogate": SurrogateError,
    "recursion": RecursionError,
    "long": lambda: ValueError("x" * 1_000_000),
}

if "MAINSPRING_TEST_UNKNOWN" not in os.environ:

    @job("test.sometimes")
    def sometimes(path: str, *, ctx: Context) -> None:
        """Registered by some workers only."""
        journal(path, "ran", ctx.id)


if "MAINSPRING_TEST_COMPARISON_SECONDS" in os.environ:
    from jobs.services.reconciler import Reconciler

    Reconciler.every = float(os.environ["MAINSPRING_TEST_COMPARISON_SECONDS"])


@job("test.parents")
def parents_of(*, ctx: Context) -> dict[str, Any]:
    """What it was given by its parents."""
    return dict(ctx.parents)


@job("test.parents_async")
async def parents_of_async(*, ctx: Context) -> dict[str, Any]:
    return dict(ctx.parents)


@job("test.terminate")
def terminate() -> int:
    """Starts a process of its own, as ``multiprocessing`` does, and ends it; its exit code."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    process.terminate()
    process.join(5)
    process.kill()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _fork(how: str) -> int:
    """The process id of the other one, which does not end by itself; 0 in it."""
    if (other := os.fork()) == 0:
        if how == "exits":
            sys.exit(3)
        if how == "fails":
            raise ValueError("of the fork")
    return other


@job("test.fork", timeout=None)
def fork(how: str) -> int:
    """Its exit code."""
    if other := _fork(how):
        return os.waitstatus_to_exitcode(os.waitpid(other, 0)[1])
    return 0


@job("test.afork", timeout=None)
async def afork(how: str) -> int:
    if other := _fork(how):
        return os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, other, 0))[1])
    return 0


@job("test.print_and_sleep", max_retries=0)
def print_and_sleep(seconds: float, path: str, *, ctx: Context) -> None:
    """Leaves a line in the buffer of standard output."""
    journal(path, "began", ctx.id)
    time.sleep(seconds)
    with suppress(OSError):
        print("done")
