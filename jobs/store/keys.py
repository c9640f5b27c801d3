"""Every key that exists, one line each: type, content, and what bounds it.

All keys of one partition share the hash tag ``{pool.version.partition}`` and so one cluster slot. What spans pools
lives in tags of its own. A key that is not named here is a leak (``is_known``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import crc32

from jobs.core.job import Route

HOLDER_BUCKETS = 256
"""Callers' ids and unique keys are spread over this many hash slots; fixed for ever, since it is part of the key."""


class PartitionKeys:
    """The keys of one partition. Attribute names are the names that the Lua files use in their unpack block."""

    __slots__ = (
        "attempts",
        "blocked",
        "bodies",
        "bundled",
        "bundles",
        "cancelled",
        "clock",
        "control",
        "counters",
        "dead",
        "expiring",
        "grants",
        "halted",
        "leased",
        "live",
        "log_of",
        "logs",
        "minutes",
        "nodes",
        "outbox",
        "parked",
        "parked_of",
        "progress",
        "ready",
        "results",
        "retry_wait",
        "scheduled",
        "seconds",
        "sequence",
        "skipped",
        "states",
        "succeeded",
        "throttled",
        "voided",
        "wake",
    )

    def __init__(self, namespace: str, route: Route) -> None:
        prefix = f"{namespace}:{{{route}}}:"
        # Bodies: hash id → times, header, payload (codec/bodies.py). "" marks a voided id. Bound: retention, discard.
        self.bodies = prefix + "bodies"
        # States: hash id → packed record (include/record_fields.lua). A job that was never touched has none.
        self.states = prefix + "states"
        # Attempts: hash id → count byte + packed attempts that did not succeed. Bound: ATTEMPTS_KEPT each.
        self.attempts = prefix + "attempts"
        # Results: hash id → JSON of the returned value; absent for None. Bound: with the job.
        self.results = prefix + "results"
        # Progress: hash id → packed current, total, message, time. Bound: with the job.
        self.progress = prefix + "progress"
        # Logs: hash id → packed [attempt, lines, bytes, lines gone]…, and one list of packed lines per attempt
        # ("log:<attempt>:<id>"). Bound: LOG_LINES and LOG_BYTES an attempt, ATTEMPTS_KEPT attempts, with the job.
        self.logs = prefix + "logs"
        self.log_of = prefix + "log:"
        # One sorted set per state. Scores: see lua/include/ready_place.lua (ready) and due_score.lua (the waiting
        # ones).
        self.scheduled = prefix + "scheduled"
        self.retry_wait = prefix + "retry_wait"
        self.blocked = prefix + "blocked"
        self.ready = prefix + "ready"
        self.leased = prefix + "leased"  # score: lease deadline, ms; line break and token: a bundle
        self.succeeded = prefix + "succeeded"  # score of this and the next three: end, ms
        self.dead = prefix + "dead"
        self.cancelled = prefix + "cancelled"
        self.skipped = prefix + "skipped"
        # Ready jobs that stand aside: hash type (paused, or unknown to the workers that met it), or line break and
        # paused run → count, and one sorted set for each.
        self.parked = prefix + "parked"
        self.parked_of = prefix + "parked:"
        # Ready jobs that a limit of their type holds back: sorted set id → place. See LimitKeys.
        self.throttled = prefix + "throttled"
        # Jobs with a retention of their own: sorted set id → forget at, ms.
        self.expiring = prefix + "expiring"
        # Ids that must never become jobs (a claim on them was taken over): sorted set id → when. Bound: an hour.
        self.voided = prefix + "voided"
        # Nodes of workflows. Nodes: hash id → run and key of each job that is live, or that has ended and whose run has
        # not heard. Outbox: hash id → the record that is news for the run. Bound: the live nodes; gone once told.
        self.nodes = prefix + "nodes"
        self.outbox = prefix + "outbox"
        # Halted: hash run → version of what was told of it, above 0 where it is paused. Bound: until the run is over.
        self.halted = prefix + "halted"
        # Grants: hash worker → its last lease call's token, ids and places, so that a repeated call finds them.
        self.grants = prefix + "grants"
        # Bundles: hash token → the same of a lease call that took many (lua/include/bundle_of.lua). Bundled: hash
        # token → how many of them share its lease still. Bound: as long as the lease.
        self.bundles = prefix + "bundles"
        self.bundled = prefix + "bundled"
        # Control: hash pause_version, paused_until, paused_types (told by jobs.store.pauses), cap_version, max_running
        # (this partition's share of the pool's), halted (paused runs with jobs here), recovered_at, hold_until,
        # clock_alarm, folded_until, run_ms.
        self.control = prefix + "control"
        # Figures (jobs.core.figures). Live: one hash "<figure>:<type>" → number per 10 s, named by its number since
        # the epoch; every script adds to the present one. Bound: figures_fold.lua carries those that are over into
        # counters (the same fields, totals since ever; at most 20,000) and into two streams whose entries hold a packed
        # map for all types and one for each: seconds (10 s each, kept a day) and minutes (5 min each, kept 30 days).
        self.live = prefix + "live:"
        self.counters = prefix + "counters"
        self.seconds = prefix + "seconds"
        self.minutes = prefix + "minutes"
        # Sequence: the last place given in the ready line. Clock: high-water mark of server time, ms.
        self.sequence = prefix + "sequence"
        self.clock = prefix + "clock"
        # Wake: list of at most one token; a waiting fetcher pops it.
        self.wake = prefix + "wake"

    @property
    def lines(self) -> str:
        """What the names of all keys begin with, for scripts that look at a line only now and then."""
        return self.wake.removesuffix("wake")

    def index(self, state: str) -> str:
        """The sorted set of a state."""
        return str(getattr(self, state))


@lru_cache(maxsize=4096)
def partition_keys(namespace: str, route: Route) -> PartitionKeys:
    return PartitionKeys(namespace, route)


class HolderKeys:
    """One bucket of claims on names that are unique over all pools: ``ids`` (callers' job ids) or ``unique`` (unique
    keys)."""

    __slots__ = ("holders",)

    def __init__(self, namespace: str, kind: str, name: str) -> None:
        self.holders = holder_bucket(namespace, kind, crc32(name.encode()) % HOLDER_BUCKETS)


def holder_bucket(namespace: str, kind: str, bucket: int) -> str:
    """Hash: name → who holds it. Bound: dropped with the job, swept by the pruner."""
    return f"{namespace}:{{{kind}.{bucket}}}:holders"


class LimitKeys:
    """The limits of one job type, over all pools: who runs and who waits under which key."""

    __slots__ = ("called", "clock", "counts", "due", "holders", "line_of", "waiters", "windows")

    def __init__(self, namespace: str, type_name: str) -> None:
        prefix = f"{namespace}:{{limits.{type_name}}}:"
        # Holders: hash "<job id>\\n<token>" → "<route>\\n<key>", one for each place taken; without a token: for a job
        # that was called. Counts: hash key → places taken. Bound: running jobs; what dead workers leave is swept.
        self.holders = prefix + "holders"
        self.counts = prefix + "counts"
        # Called: zset job id → until when its call is good. Bound: CALL_MS of include/call_next.lua.
        self.called = prefix + "called"
        # Windows: hash rate key → packed starts of the last period. Bound: swept; gone an hour after the period.
        self.windows = prefix + "windows"
        # Waiters: hash job id → packed facts, and one zset per key ("line:c<key>", "line:r<rate key>"), id → order.
        # Due: zset rate key with waiting jobs → its next start. Bound: the throttled jobs.
        self.waiters = prefix + "waiters"
        self.line_of = prefix + "line:"
        self.due = prefix + "due"
        self.clock = prefix + "clock"


class HostKeys:
    """The registry of workers."""

    __slots__ = ("alive", "commands", "ended", "pauses", "releases", "workers")

    def __init__(self, namespace: str) -> None:
        self.workers = f"{namespace}:{{workers}}:workers"  # hash: worker id → packed facts
        self.alive = f"{namespace}:{{workers}}:alive"  # zset: worker id → counted as gone from then on, ms
        self.commands = f"{namespace}:{{workers}}:commands"  # hash: worker id → drain | stop
        self.pauses = f"{namespace}:{{workers}}:pauses"  # hash: host id → JSON of its pause. Bound: those in workers
        self.ended = f"{namespace}:{{workers}}:ended"  # zset: packed facts → end, ms. Bound: the newest 100, an hour
        self.releases = f"{namespace}:{{workers}}:releases"  # zset: version → first told of, ms. Bound: the newest 50


class SettingKeys:
    """What operators set for a whole pool or type, which pools exist, and who does what only one may do."""

    __slots__ = ("caps", "format", "limited", "news", "pauses", "pools", "scalings", "services", "topology", "types")

    def __init__(self, namespace: str) -> None:
        self.topology = f"{namespace}:{{settings}}:topology"  # hash: pool → JSON {version: partitions}
        self.format = f"{namespace}:{{settings}}:format"  # string: newest format that was written (store/topology.py)
        self.pools = f"{namespace}:{{settings}}:pools"  # hash: pool:setting → JSON
        self.types = f"{namespace}:{{settings}}:types"  # hash: job type → JSON of its overrides
        self.caps = f"{namespace}:{{settings}}:caps"  # hash: pool → version of its partitions' shares of max_running
        self.limited = f"{namespace}:{{settings}}:limited"  # hash: job type whose limits hold somebody back → 1
        # Hash: version, "everything", "pool:<name>", "type:<name>" → JSON of the pause; "disabled:<type>" → 1.
        self.pauses = f"{namespace}:{{settings}}:pauses"
        self.news = f"{namespace}:{{settings}}:news"  # stream: topics of what was changed. Bound: about 1,000 entries
        self.services = f"{namespace}:{{settings}}:services"  # hash: service → who does it, token, until when
        self.scalings = f"{namespace}:{{settings}}:scalings"  # hash: pool → packed decisions. Bound: 100 each


class MuteKeys:
    """What is muted, in a slot of its own. Bound: gone when it is over and the next one is set."""

    __slots__ = ("clock", "mutes")

    def __init__(self, namespace: str) -> None:
        self.mutes = f"{namespace}:{{mutes}}:mutes"  # hash: kind and subject → until when, who, why
        self.clock = f"{namespace}:{{mutes}}:clock"  # high-water mark of server time, ms


class BacklogKeys:
    """How many jobs were ready in each pool, and when."""

    __slots__ = ("halves", "minutes")

    def __init__(self, namespace: str) -> None:
        self.minutes = f"{namespace}:{{backlog}}:minutes"  # stream: a minute each. Bound: a day
        self.halves = f"{namespace}:{{backlog}}:halves"  # stream: half an hour each. Bound: 30 days


class ScheduleKeys:
    """All schedules, in one slot of their own. Bound: gone with the schedule."""

    __slots__ = ("claims", "clock", "control", "definitions", "digests", "due", "firings", "states")

    def __init__(self, namespace: str) -> None:
        prefix = f"{namespace}:{{schedules}}:"
        self.due = prefix + "due"  # zset: name → when to look at it next, ms
        self.definitions = prefix + "definitions"  # hash: name → packed definition (jobs.engine.schedules)
        self.digests = prefix + "digests"  # hash: name → digest of the definition
        self.states = prefix + "states"  # hash: name → packed state (jobs.core.schedule.plan)
        self.claims = prefix + "claims"  # hash: name → number, time of the first and token of the claim
        # Control: hash sequence, fired_until, jump_from, jump_until, pulse.
        self.control = prefix + "control"
        self.clock = prefix + "clock"  # high-water mark of server time, ms
        self.firings = prefix + "firings:"  # zset per schedule: record → its time. Bound: FIRINGS_KEPT, and by age


class RunKeys:
    """One run of a workflow, in a slot of its own; nodes go by their rank (jobs.store.codec.runs). Bound: retention."""

    __slots__ = (
        "agenda",
        "broken_of",
        "clock",
        "counts",
        "edges",
        "errors",
        "failures_of",
        "held_of",
        "nodes",
        "outbox",
        "prefix",
        "ranks",
        "results",
        "run",
        "signals",
        "states",
        "waiting",
    )

    def __init__(self, namespace: str, run_id: str) -> None:
        prefix = self.prefix = f"{namespace}:{{wf.{run_id}}}:"
        self.run = prefix + "run"  # hash of facts, and of what a half-done step has to remember
        self.counts = prefix + "counts"  # hash: state → how many nodes
        self.ranks = prefix + "ranks"  # hash: key of a node → its rank
        self.nodes = prefix + "nodes"  # hash: rank → what the node is
        self.states = prefix + "states"  # hash: rank → how it stands
        self.edges = prefix + "edges"  # hash: kind (s, f, c) and rank of the parent → ranks of children
        self.held_of = prefix + "held:"  # set per node: parents that ended as it wants
        self.broken_of = prefix + "broken:"  # set per node: parents that ended otherwise
        self.results = prefix + "results"  # hash: rank → JSON
        self.errors = prefix + "errors"  # hash: rank → JSON
        self.failures_of = prefix + "failures:"  # zset per group: nodes that ended dead or cancelled
        self.agenda = prefix + "agenda"  # zset: what is to be looked at → in which order
        self.signals = prefix + "signals"  # hash: name of a signal that came → payload JSON
        self.waiting = prefix + "waiting"  # hash: node that waits → name of the signal, "" = for a person
        self.outbox = prefix + "outbox"  # zset: released node without a job → until when somebody makes it, ms
        self.clock = prefix + "clock"

    def all(self, ranks: range) -> list[str]:
        """Every key of a run of these nodes and without groups, whether it is there or not: the facts come last."""
        sets = [prefix + str(rank) for rank in ranks for prefix in (self.held_of, self.broken_of)]
        hashes = [self.ranks, self.nodes, self.states, self.edges, self.results, self.errors, self.counts]
        more = [self.agenda, self.outbox, self.signals, self.waiting, self.clock]
        return [*sets, self.failures_of, *more, *hashes, self.run]


class WorkflowKeys:
    """The lists of all runs. Bound: retention."""

    __slots__ = ("active", "clock", "deadlines", "ended", "named", "runs")

    def __init__(self, namespace: str, name: str = "") -> None:
        prefix = f"{namespace}:{{workflows}}:"
        self.active = prefix + "active"  # zset: run → when to look at it, ms
        self.runs = prefix + "runs"  # zset: run → when it was created, ms
        self.ended = prefix + "ended"  # zset: run → when it ended, ms
        # Deadlines: zset run, newline, key of a node that waits ("" = the run) → when it is to be over, ms. Bound: gone
        # when that time has come.
        self.deadlines = prefix + "deadlines"
        self.named = prefix + "named:" + name  # zset per workflow: run → when it was created, ms
        self.clock = prefix + "clock"


class BulkKeys:
    """Bulk operations, in one slot of their own. Bound: OPERATIONS_KEPT of jobs.engine.bulk."""

    __slots__ = ("clock", "due", "facts_of", "items_of", "order", "results_of")

    def __init__(self, namespace: str) -> None:
        prefix = f"{namespace}:{{bulk}}:"
        self.order = prefix + "order"  # zset: operation → opened at, ms
        self.due = prefix + "due"  # zset: operation that is not over and waits for nobody → when to go on with it, ms
        self.facts_of = prefix + "facts:"  # one hash per operation: request, state, counts, claim
        self.items_of = prefix + "items:"  # one hash per operation: number of a part → packed ids of jobs
        self.results_of = prefix + "results:"  # one hash per operation: number of a part → packed id → refusal
        self.clock = prefix + "clock"  # high-water mark of server time, ms


_PARTITION_KEY = re.compile(
    r"^:\{[A-Za-z0-9][A-Za-z0-9_.-]*\.\d+\.\d+\}:("
    r"attempts|blocked|bodies|bundled|bundles|cancelled|clock|control|counters|dead|expiring|grants|halted|leased|live:\d*|log:.*|logs"
    r"|minutes|nodes|outbox|parked|parked:.*|progress|ready"
    r"|results|retry_wait|scheduled|seconds|sequence|skipped|states|succeeded|throttled|voided|wake)$",
    re.DOTALL,
)
_SHARED_KEY = re.compile(
    r"^:(\{backlog\}:(halves|minutes)|\{(ids|unique)\.\d+\}:holders"
    r"|\{workers\}:(alive|commands|ended|pauses|releases|workers)"
    r"|\{settings\}:(caps|format|limited|news|pauses|pools|scalings|services|topology|types)"
    r"|\{mutes\}:(clock|mutes)"
    r"|\{bulk\}:(clock|due|facts:.*|items:.*|order|results:.*)"
    r"|\{workflows\}:(active|clock|deadlines|ended|named:.*|runs)"
    r"|\{wf\.[^{}]+\}:(agenda|broken:\d+|clock|counts|edges|errors|failures:.*|held:\d+|nodes|outbox|ranks|results|run|signals|states|waiting)"
    r"|\{schedules\}:(claims|clock|control|definitions|digests|due|firings:.*|states)"
    r"|\{limits\.[A-Za-z0-9_.:-]+\}:(called|clock|counts|due|holders|line:.*|waiters|windows))$",
    re.DOTALL,
)


def is_known(namespace: str, key: str) -> bool:
    """Whether a key of the namespace is one of those above."""
    rest = key.removeprefix(namespace)
    return rest != key and bool(_PARTITION_KEY.match(rest) or _SHARED_KEY.match(rest))
