"""What supervisor and child say to each other."""

from __future__ import annotations

import msgspec

from jobs.core.job import LeasedJob


class Message(msgspec.Struct, tag=True, array_like=True):
    """One frame on the link. The class name travels as its tag."""


class RunAlone(Message):
    """A leased job that is under suspicion: run it in a process of its own.

    Said by the child that leased it, and then by the supervisor to the process it made for it.
    """

    lease: LeasedJob
    leased_at: float  # monotonic, see Batch
    clock_offset: float  # server ms minus monotonic ms


# child → supervisor, in the ledger


class Opened(Message):
    """These jobs were leased under one token, and none of them has been started yet: renew them from now on."""

    batch: int  # grows by one with every batch of this child
    token: str
    route: tuple[str, int, int]
    ids: list[str]
    leased_at: float = 0.0  # monotonic, see Batch


class Closed(Message):
    """Every job of the batch has ended and the store knows."""

    batch: int


# child → supervisor, on the link


class Ready(Message):
    """Connected and about to lease for the first time."""


class LedgerFull(Message):
    """Read the ledger: an entry waits for room in it."""


class Report(Message):
    """How the child is doing. Sent when something changed, at most a few times a second."""

    slots: dict[str, int]  # pool → slots served
    running: int
    ended: int  # since the child started
    trouble: str | None  # why it cannot consume, when it cannot
    idle: bool  # every served partition was found empty and nothing is in hand


class Buried(Message):
    """A job has died here: there is something to tell people."""


class Retiring(Message):
    """It will take nothing new, finish what it holds and exit with 0: time to start its replacement."""

    reason: str


class Bye(Message):
    """The last word before exit. ``abandoned``: attempts that still run and are to be handed back after it."""

    abandoned: int


# supervisor → child


class Serve(Message):
    """The first word to an ordinary child: lease jobs and run them. ``is_held``: none before ``Hold`` says so."""

    is_held: bool = False


class Hold(Message):
    """The host was paused, or resumed: take nothing new, and hand back what has not started; or go on."""

    is_held: bool


class Look(Message):
    """Jobs have become ready: look for them now. The store wakes one waiting worker; that may be a frozen one."""


class Attend(Message):
    """A job has begun here: hold it against the clock from now on."""


class Reconsider(Message):
    """Settings of pools or pauses have changed: read them anew, and hand back what has not started."""


class AloneEnded(Message):
    """The process that ran the job of this lease (job id, token) alone has ended, one way or another."""

    lease: tuple[str, str]


class Lost(Message):
    """These leases (job id, token) are no longer this child's: abandon the attempts, report nothing.

    Among them are those that it has just handed back itself.
    """

    leases: list[tuple[str, str]]


class CancelRequested(Message):
    """Somebody asked to cancel the jobs of these leases (job id, token)."""

    leases: list[tuple[str, str]]


class Drain(Message):
    """Take nothing new, hand back what has not started, finish what runs however long it takes, exit."""


class Stop(Message):
    """As ``Drain``, but hand back after ``grace_seconds`` what still runs."""

    grace_seconds: float


class HandBack(Message):
    """Hand back everything now and exit. ``charged``: attempts that had begun count."""

    charged: bool = True


FromChild = Ready | LedgerFull | RunAlone | Report | Buried | Retiring | Bye
FromSupervisor = (
    Serve | Hold | RunAlone | Look | Attend | Reconsider | AloneEnded | Lost | CancelRequested | Drain | Stop | HandBack
)
