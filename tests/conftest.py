"""What every test can ask for: a real server under a name of its own, an engine, a clock, a server to hurt."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import redis

from tests.support import sharing
from tests.support.clock import ManualClock
from tests.support.valkey import ValkeyServer, describe, shared_server

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

    from jobs.engine import Engine
    from jobs.store.connection import Store

# Two busy cores may take longer over one example than the default allows; a slow example is no finding.
hypothesis.settings.register_profile(
    "mainspring", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("mainspring")

# A shell starts what runs in its background with Ctrl-C ignored, and so would be all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with the end of the terminal.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What is collected stays until the end: to look through it for garbage again and again is a tenth of the collection.
gc.disable()

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")

server_url = pytest.StashKey[str]()
server_urls = pytest.StashKey[Iterator[str]]()
server_text = pytest.StashKey[str]()
server_end = pytest.StashKey[ExitStack]()
counter = iter(range(1_000_000_000))


# The processes of the run and their servers --------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """``-n auto``, which holds where the command line says nothing else."""
    return sharing.count_processes(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> sharing.Pieces | None:
    return sharing.Pieces(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        sharing.longest_first(items)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Starts the server before the header, which says which one and which version it is.

    A run that is shared out starts one for each of its processes, and those start none.
    """
    config = session.config
    if config.option.collectonly:
        return
    if hasattr(config, "workerinput"):
        config.stash[server_url] = config.workerinput["server_url"]
        return
    end = config.stash[server_end] = ExitStack()
    count = len(config.option.tx) or 1
    servers = [end.enter_context(shared_server()) for _ in range(count)]
    config.stash[server_urls] = itertools.cycle([url for url, _ in servers])
    url, origin = servers[0]
    config.stash[server_url] = url
    config.stash[server_text] = f"{describe(url)}, {origin}" + (f", for each of {count} processes" if count > 1 else "")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What a process of a shared run has for itself: a server (if not named from outside) and a var dir.

    A server that is named is used by all: no test leaves the name space that it has for itself.
    """
    from django.conf import settings

    node.workerinput["server_url"] = next(node.config.stash[server_urls])
    var_dir = str(settings.VAR_DIR / node.gateway.id)
    node.gateway.remote_exec(f"import os; os.environ['SCHEDULER_VAR_DIR'] = {var_dir!r}").waitclose()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any], dict[str, Any]]:
    """What a test printed travels to the first process as UTF-8; lone surrogates, which some tests log, do not fit."""
    return sharing.encodable((yield))


def pytest_report_header(config: pytest.Config) -> str:
    import django

    return f"scheduler: {config.stash.get(server_text, 'no server')}; Django {django.get_version()}"


def pytest_unconfigure(config: pytest.Config) -> None:
    if server_end in config.stash:
        config.stash[server_end].close()


@pytest.fixture(scope="session")
def valkey_url(pytestconfig: pytest.Config) -> str:
    """URL of the server that all tests of this process share."""
    return pytestconfig.stash[server_url]


@pytest.fixture(scope="session")
def _raw(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url) as client:
        yield client


# One name space a test -----------------------------------------------------------------------------------------------


@pytest.fixture
def namespace() -> str:
    """The key prefix of this test."""
    return f"test-{os.getpid()}-{next(counter)}"


@pytest.fixture(autouse=True)
def _scheduler(settings: SettingsWrapper, valkey_url: str, namespace: str, _raw: redis.Redis) -> Iterator[None]:
    """Points the SCHEDULER settings at the shared server; afterwards sweeps up, and fails on keys that nobody owns."""
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": valkey_url, "NAMESPACE": namespace}
    yield
    found = [key.decode() for key in _raw.scan_iter(match=f"{namespace}:*", count=5_000)]
    for start in range(0, len(found), 1_000):
        _raw.unlink(*found[start : start + 1_000])
    from jobs.store import keys

    strangers = [key for key in found if not keys.is_known(namespace, key)]
    assert not strangers, f"keys that jobs.store.keys does not know: {strangers}"


@pytest.fixture
def store(valkey_url: str, namespace: str) -> Iterator[Store]:
    """A connection of the test's own."""
    from jobs.store.connection import Store

    store = Store(valkey_url, namespace=namespace)
    yield store
    store.close()


@pytest.fixture
def clock() -> ManualClock:
    """The time that ``engine`` believes in."""
    return ManualClock()


@pytest.fixture
def engine(store: Store, clock: ManualClock) -> Engine:
    """All verbs, on the shared server, under a clock that the test moves."""
    from jobs.conf import get_settings
    from jobs.engine import Engine

    return Engine(store, get_settings(), clock)


# Servers to hurt -----------------------------------------------------------------------------------------------------


@pytest.fixture
def make_valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ValkeyServer]]:
    """Makes started servers: ``make_valkey(appendfsync="everysec")``. All are ended after the test."""
    made: list[ValkeyServer] = []

    def make(**options: Any) -> ValkeyServer:
        server = ValkeyServer(tmp_path_factory.mktemp("v"), **options).start()
        made.append(server)
        return server

    yield make
    for server in made:
        if server.process is not None:
            server.kill()


@pytest.fixture
def private_valkey(make_valkey: Callable[..., ValkeyServer]) -> ValkeyServer:
    """A server that this test alone uses and may kill, stop and start."""
    return make_valkey()


@pytest.fixture
def var_dir(tmp_path: Path) -> Path:
    """A var dir for processes that this test starts."""
    return tmp_path / "var"


# Missing parts -------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """In CI everything is there, so a skip means that something was not tested: that is a failure."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: a skip is a failure when CI is set ({reason})"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    if isinstance(collector, pytest.Directory) and hasattr(collector.config, "workerinput"):
        report.result = sharing.beginning_elsewhere(collector.config, report.result)
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid}: a skipped module is a failure when CI is set ({report.longrepr})"
    return report
