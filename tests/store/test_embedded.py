"""The embedded server: there when needed, shared, durable, and gone with its last user whatever kills whom."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from jobs.exceptions import StoreUnavailable
from jobs.store import embedded, guardian
from tests.support.processes import living, parent_of
from tests.support.wait import eventually, soon

ROOT = Path(__file__).parents[2]

# A process that uses the server until its standard input ends, or until it is killed.
USER = """
import sys
from pathlib import Path
from jobs.store import embedded

print(embedded.ensure(sys.argv[1], Path(sys.argv[2])), flush=True)
sys.stdin.read()
"""

FORKING_USER = """
import os, sys
from pathlib import Path
from jobs.store import embedded

url = embedded.ensure(sys.argv[1], Path(sys.argv[2]))
if os.fork():
    os._exit(0)
print(url, flush=True)
sys.stdin.read()
"""

SPAWNING_USER = """
import subprocess, sys
from pathlib import Path
from jobs.store import embedded

ask = "from pathlib import Path; from jobs.store import embedded; print(embedded.ensure('memory:', Path('x')))"
print(embedded.ensure("memory:", Path("x")), flush=True)
subprocess.run([sys.executable, "-c", ask], check=True)
sys.stdin.read()
"""


class User(subprocess.Popen[str]):
    """Another process that uses the embedded server."""

    def __init__(self, program: str, url: str, var_dir: Path, **options: object) -> None:
        super().__init__(
            [sys.executable, "-c", program, url, str(var_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            **options,  # type: ignore[arg-type]
        )

    def told(self) -> str:
        """The next line that it prints."""
        assert self.stdout is not None
        return self.stdout.readline().strip()

    def finish(self) -> None:
        """Lets it end by itself."""
        assert self.stdin is not None
        self.stdin.close()
        self.wait(60)


@pytest.fixture
def start_user(var_dir: Path) -> Iterator[Callable[..., User]]:
    users: list[User] = []

    def start(program: str = USER, url: str = "embedded:", **options: object) -> User:
        users.append(User(program, url, var_dir, **options))
        return users[-1]

    yield start
    for user in users:
        user.kill()
        for stream in (user.stdin, user.stdout):
            assert stream is not None
            stream.close()
        user.wait()
    if (pid := guardian_of(var_dir)) is not None:
        os.kill(pid, signal.SIGTERM)  # saves the seconds in which a server waits for a next user
    eventually(lambda: gone(var_dir))


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=5)


def server_of(var_dir: Path) -> int | None:
    """Process id of the server over this var dir."""
    return next(iter(living("valkey-server", cwd=var_dir / "valkey")), None)


def guardian_of(var_dir: Path) -> int | None:
    return next(iter(living("guardian.py", cwd=var_dir / "valkey")), None)


def gone(var_dir: Path) -> bool:
    return server_of(var_dir) is None and guardian_of(var_dir) is None


def pings(url: str) -> bool:
    with client(url) as connection, contextlib.suppress(redis.RedisError):
        return bool(connection.ping())
    return False


def test_processes_of_one_project_share_one_server(start_user, var_dir):
    first, second = start_user(), start_user()

    assert first.told() == second.told() == embedded.address("embedded:", var_dir)


def test_many_processes_that_start_at_once_get_one_server(start_user, var_dir):
    users = [start_user() for _ in range(12)]

    assert len({user.told() for user in users}) == 1
    assert len(living("valkey-server", cwd=var_dir / "valkey")) == 1
    assert eventually(lambda: len(living("guardian.py", cwd=var_dir / "valkey")) == 1)


def test_the_server_ends_when_its_last_user_has_ended(start_user, var_dir):
    first, second = start_user(), start_user()
    first.told(), second.told()

    first.finish()
    assert not gone(var_dir)
    second.finish()

    assert eventually(lambda: gone(var_dir))


def test_what_was_written_is_there_after_a_restart(start_user, var_dir):
    user = start_user()
    with client(user.told()) as connection:
        connection.set("kept", "yes")
    user.finish()
    eventually(lambda: gone(var_dir))

    with client(start_user().told()) as connection:
        assert connection.get("kept") == b"yes"


def test_who_comes_during_a_shutdown_waits_for_its_end(start_user, var_dir):
    """The guardian holds the clients' lock while its server writes out: nobody may start a second one meanwhile."""
    (var_dir / "valkey").mkdir(parents=True)
    shutdown = guardian.take_alone(var_dir / "valkey" / guardian.CLIENTS_LOCK)
    user = start_user()

    assert not select.select([user.stdout], [], [], 0.7)[0]
    assert gone(var_dir)
    os.close(shutdown)

    assert pings(user.told())


def test_who_comes_soon_after_the_last_user_finds_the_same_server(start_user, var_dir):
    first = start_user()
    first.told()
    server = server_of(var_dir)
    first.finish()

    start_user().told()

    assert server_of(var_dir) == server


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_user_that_is_killed_leaves_no_server_behind(start_user, var_dir, number):
    user = start_user()
    user.told()

    user.send_signal(number)

    assert eventually(lambda: gone(var_dir))


def test_a_fork_of_a_user_keeps_the_server_alive(start_user, var_dir):
    user = start_user(FORKING_USER)
    url = user.told()
    user.wait(60)  # the parent has ended, its fork reads on

    with pytest.raises(AssertionError):
        eventually(lambda: gone(var_dir), within=guardian.IDLE_SECONDS + 1.5)
    assert pings(url)
    user.stdin.close()
    assert eventually(lambda: gone(var_dir))


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_server(start_user, var_dir):
    """A terminal signals its whole foreground process group; a user that goes on must not lose its server."""
    user = start_user(start_new_session=True)
    url = user.told()

    assert os.getsid(server_of(var_dir)) != os.getsid(user.pid)
    assert os.getpgid(server_of(var_dir)) != os.getpgid(user.pid)
    assert os.getsid(guardian_of(var_dir)) != os.getsid(user.pid)
    assert pings(url)


def test_a_killed_server_is_started_again_with_its_data(start_user, var_dir):
    url = start_user().told()
    with client(url) as connection:
        connection.set("kept", "yes")
    killed = server_of(var_dir)

    os.kill(killed, signal.SIGKILL)

    assert eventually(lambda: server_of(var_dir) not in (None, killed) and pings(url))
    with client(url) as connection:
        assert connection.get("kept") == b"yes"


def test_a_killed_guardian_takes_its_server_along_and_both_are_replaced(start_user, var_dir):
    url = start_user().told()
    with client(url) as connection:
        connection.set("kept", "yes")
    killed = server_of(var_dir)

    os.kill(guardian_of(var_dir), signal.SIGKILL)
    assert eventually(lambda: gone(var_dir))

    assert start_user().told() == url
    assert server_of(var_dir) != killed
    with client(url) as connection:
        assert connection.get("kept") == b"yes"


def test_the_process_that_noticed_the_loss_can_ask_again(var_dir):
    url = embedded.ensure("embedded:", var_dir)
    os.kill(guardian_of(var_dir), signal.SIGKILL)
    eventually(lambda: gone(var_dir))

    assert embedded.ensure("embedded:", var_dir) == url
    assert pings(url)

    assert embedded.leave("embedded:", var_dir)
    assert gone(var_dir)


def test_leaving_does_not_wait_while_somebody_else_uses_the_server(start_user, var_dir):
    start_user().told()
    embedded.ensure("embedded:", var_dir)

    assert not embedded.leave("embedded:", var_dir, within=0.5)


def test_a_stale_socket_of_a_crashed_machine_is_no_obstacle(start_user, var_dir):
    folder = var_dir / "valkey"
    folder.mkdir(parents=True)
    (folder / "valkey.sock").write_text("left behind")

    assert pings(start_user().told())


def test_who_makes_the_folder_anew_keeps_the_server_that_is_started_in_it(start_user, var_dir):
    """``rm -r var`` just after a command: its server was about to end, and would have taken the new socket along."""
    user = start_user()
    user.told()
    user.finish()
    old = server_of(var_dir)
    shutil.rmtree(var_dir / "valkey")

    url = start_user().told()

    eventually(lambda: old not in living("valkey-server"))
    assert pings(url)


def test_only_its_owner_can_reach_the_server(start_user, var_dir):
    start_user().told()

    assert (var_dir / "valkey").stat().st_mode & 0o777 == 0o700
    assert (var_dir / "valkey" / "valkey.sock").stat().st_mode & 0o777 == 0o600
    for path in (var_dir / "valkey").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_server_listens_on_no_port_and_refuses_to_forget(start_user):
    with client(start_user().told()) as connection:
        assert connection.config_get("port") == {"port": "0"}
        assert connection.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert connection.config_get("append*")["appendfsync"] == "everysec"
        assert connection.info("persistence")["aof_enabled"] == 1


def test_a_var_dir_too_deep_for_a_socket_gets_a_short_path_elsewhere():
    with tempfile.TemporaryDirectory() as top:
        deep = Path(top) / ("d" * 60) / ("e" * 60) / "var"
        url = embedded.ensure("embedded:", deep)
        try:
            assert len(url) < len(str(deep))
            assert pings(url)
        finally:
            assert embedded.leave("embedded:", deep)


def test_blanks_and_signs_in_the_path_survive_the_url(tmp_path):
    odd = tmp_path / "my files? #1 100%"
    url = embedded.ensure("embedded:", odd)
    try:
        assert pings(url)
    finally:
        assert embedded.leave("embedded:", odd)


def test_a_folder_that_cannot_be_used_is_named_with_a_way_out(tmp_path):
    (tmp_path / "var").write_text("a file where the folder should be")

    with pytest.raises(StoreUnavailable, match="cannot use") as refusal:
        embedded.ensure("embedded:", tmp_path / "var")

    assert "SCHEDULER_VAR_DIR" in refusal.value.fix


def test_a_server_that_cannot_start_is_reported_with_its_last_words(var_dir):
    manifest = var_dir / "valkey" / "appendonlydir" / "appendonly.aof.manifest"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("nonsense\n")

    with pytest.raises(StoreUnavailable, match=r"Its last words: .*manifest") as refusal:
        embedded.ensure("embedded:", var_dir)

    assert str(var_dir / "valkey" / guardian.LOG) in refusal.value.fix
    embedded.leave("embedded:", var_dir)


def test_a_server_that_hangs_is_given_up_before_a_command_may_take_too_long(start_user, var_dir):
    start_user().told()
    os.kill(server_of(var_dir), signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="does not answer"):
            embedded.ensure("embedded:", var_dir)
        assert time.monotonic() - began < soon(10)
    finally:
        os.kill(server_of(var_dir), signal.SIGCONT)
        embedded.leave("embedded:", var_dir, within=0)


def test_without_the_program_the_message_says_where_to_get_it(var_dir, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(StoreUnavailable, match="no Valkey program") as refusal:
        embedded.ensure("embedded:", var_dir)

    assert "bin/setup" in refusal.value.fix
    embedded.leave("embedded:", var_dir)


def test_other_urls_are_left_alone(var_dir):
    assert embedded.ensure("redis://example.invalid:1/0", var_dir) == "redis://example.invalid:1/0"
    assert embedded.leave("redis://example.invalid:1/0", var_dir)


def test_a_memory_server_is_handed_to_children_and_to_nobody_else(start_user):
    family, stranger = start_user(SPAWNING_USER, "memory:"), start_user(url="memory:")
    parents, childs = family.told(), family.told()

    assert parents == childs
    assert stranger.told() != parents
    assert pings(parents)


def test_a_memory_server_keeps_nothing(start_user):
    user = start_user(url="memory:")
    url = user.told()
    with client(url) as connection:
        assert connection.info("persistence")["aof_enabled"] == 0
    folder = Path(url.removeprefix("unix://")).parent

    user.kill()

    assert eventually(lambda: not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_guardian_is_nobodys_child_and_weighs_little(start_user, var_dir):
    user = start_user()
    user.told()
    pid = guardian_of(var_dir)

    assert parent_of(pid) != user.pid
    status = Path(f"/proc/{pid}/status").read_text()
    resident_kb = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
    assert resident_kb < 25_000
