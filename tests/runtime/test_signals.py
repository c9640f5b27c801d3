from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobs.runtime.mailbox import Mailbox
from jobs.runtime.signals import SignalInbox


@pytest.fixture
def inbox() -> Iterator[SignalInbox]:
    inbox = SignalInbox()
    yield inbox
    inbox.close()


def test_signals_wait_in_the_inbox_in_the_order_they_came(inbox: SignalInbox) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)

    assert select.select([inbox], [], [], 1.0)[0] == [inbox]
    assert inbox.read() == [signal.SIGTERM, signal.SIGINT]
    assert inbox.read() == []


def test_a_signal_that_other_code_handles_is_no_wish_to_end(inbox: SignalInbox) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert inbox.read() == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_whoever_was_started_by_nohup_outlives_the_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        inbox = SignalInbox()
        os.kill(os.getpid(), signal.SIGHUP)
        assert inbox.read() == []
        inbox.close()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_closing_puts_back_the_handlers_that_were_there() -> None:
    before = signal.getsignal(signal.SIGINT)
    SignalInbox().close()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handled_signal_is_not_ignored_by_programs_that_are_started(inbox: SignalInbox) -> None:
    probe = "import signal; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    assert subprocess.check_output([sys.executable, "-c", probe], text=True).strip() == "True"


def test_posted_work_wakes_a_selector_and_runs_in_order() -> None:
    mailbox = Mailbox()
    done: list[int] = []
    for number in range(100):
        mailbox.post(lambda number=number: done.append(number))

    assert select.select([mailbox], [], [], 1.0)[0] == [mailbox]
    mailbox.run_posted()

    assert done == list(range(100))
    assert select.select([mailbox], [], [], 0)[0] == []
    mailbox.close()
    mailbox.post(lambda: None)  # nobody listens any more, and nobody minds
