"""The process that forks workers, a real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import errno, os, socket
from jobs.worker.nursery import Nursery

fork, forks = os.fork, iter((True, True, False, True))  # the nursery itself, and three workers

def fork_or_fail():
    if next(forks):
        return fork()
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

def wait_for_word(number, link, ledger, cells_fd):
    return len(link.recv(1))

os.fork = fork_or_fail
nursery = Nursery(wait_for_word)
links = []
for number in (1, 2, 3):
    conception = nursery.request(number)
    links.append(conception.link)
    (event,) = nursery.read()
    print(type(event).__name__, number)
links[0].send(b"!")
print(nursery.read())
nursery.close()
"""


def test_a_worker_that_cannot_be_forked_takes_no_other_with_it() -> None:
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, timeout=60)

    assert told.stdout.splitlines() == ["Born 1", "Ended 2", "Born 3", "[Ended(number=1, exit_code=1)]"]
    assert told.stderr == "A worker process cannot be made: [Errno 11] Resource temporarily unavailable\n"
