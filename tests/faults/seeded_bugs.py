"""Protocol bugs on purpose, to prove that the tests bite.

Each is a small change of the Lua scripts, made in a copy of their folder that the tests switch to by
``SCHEDULER_LUA_DIR``, or of one Python method: in this process, or by ``FAULTS_BUG`` in those of a fault run. All are
mistakes that real queues have made (see the reports that ``docs/reference/faults.md`` names); each must be caught.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from jobs.engine import LeaseReply
from jobs.store.scripts import LUA_DIR


@dataclass(frozen=True)
class LuaBug:
    """``text`` of one script replaced by ``broken``."""

    name: str
    file: str
    text: str
    broken: str

    def plant(self, folder: Path) -> Path:
        """A copy of all scripts with this bug; raises if the text to change is not there any more."""
        copy = folder / "lua"
        shutil.copytree(LUA_DIR, copy)
        file = copy / self.file
        source = file.read_text()
        if source.count(self.text) != 1:
            raise AssertionError(f"{self.name}: {self.file} has {source.count(self.text)} places like {self.text!r}")
        file.write_text(source.replace(self.text, self.broken))
        return copy


LUA_BUGS = (
    LuaBug(
        "complete does not compare the token",
        "job_complete.lua",
        "raw and is_under_token(raw, group.token) and byte_at",
        "raw and byte_at",
    ),
    LuaBug(
        "fail does not compare the token",
        "job_fail.lua",
        "not record or record[TOKEN] ~= token then",
        "not record then",
    ),
    LuaBug(
        "release, crash and park do not compare the token",
        "include/held_record.lua",
        "record[STATE] == 'leased' and record[TOKEN] == token",
        "record[STATE] == 'leased'",
    ),
    LuaBug(
        "renew compares the job's id only",
        "job_renew.lua",
        "not record or record[TOKEN] ~= ARGV[2 * i + 2]",
        "not record",
    ),
    LuaBug(
        "a completion is accepted twice",
        "job_complete.lua",
        "if state == LEASED_CODE and byte_at",
        "if (state == LEASED_CODE or state == SUCCEEDED_CODE) and byte_at",
    ),
    LuaBug(
        "a late failure buries a finished job",
        "job_fail.lua",
        "if record[STATE] ~= 'leased' then",
        "if record[STATE] ~= 'leased' and record[STATE] ~= 'succeeded' then",
    ),
    LuaBug(
        "recovery takes leases that still hold",
        "job_recover.lua",
        "overdue = {}, string.format('%.0f', now - margin)",
        "overdue = {}, '+inf'",
    ),
    LuaBug(
        "recovery writes what an earlier scan saw, without comparing again",
        "job_recover.lua",
        """if record[STATE] ~= 'leased' then
    redis.call('ZREM', leased, id)
  elseif""",
        """local seen = redis.call('HGET', control, 'seen') or id
  redis.call('HSET', control, 'seen', id)
  id = redis.call('HEXISTS', states, seen) == 1 and seen or id
  record = read_record(redis.call('HGET', states, id), 'leased')
  if""",
    ),
    LuaBug(
        "a jump of the server's clock takes everybody's leases",
        "job_recover.lua",
        "if now < hold_until then",
        "if false then",
    ),
    LuaBug(
        "the server's clock may go back",
        "include/server_now.lua",
        "if mark and now < mark then",
        "if false then",
    ),
    LuaBug(
        "due jobs are promoted a second early",
        "include/promote_due.lua",
        "'-inf', string.format('(%d', now + 1)",
        "'-inf', string.format('(%d', now + 1001)",
    ),
    LuaBug(
        "due jobs that share a millisecond are promoted but for the last",
        "include/promote_due.lua",
        "redis.call('ZREMRANGEBYRANK', line_key, 0, count - 1)",
        """redis.call('ZREMRANGEBYRANK', line_key, 0, count - 1)
  if count > 1 then
    places[#places], places[#places - 1] = nil, nil
  end""",
    ),
    LuaBug(
        "a pause is ignored by leases",
        "job_lease.lua",
        "if now < (tonumber(facts[1] or nil) or 0) then",
        "if false then",
    ),
    LuaBug(
        "a lease that is asked for again takes more jobs",
        "job_lease.lua",
        "if repeated then",
        "if false then",
    ),
    LuaBug(
        "an unknown type is dropped",
        "job_park.lua",
        "redis.call('ZADD', parked_of .. type, record[PLACE], id)",
        "redis.call('HDEL', states, id)",
    ),
    LuaBug(
        "a crash is not charged",
        "include/charge_crash.lua",
        "record[CRASHES] + 1, 0",
        "record[CRASHES], 0",
    ),
    LuaBug(
        "a crash uses up the error budget",
        "include/charge_crash.lua",
        "record[CRASHES], record[LOST] = record[CRASHES] + 1, 0",
        "record[CRASHES], record[ERRORS], record[LOST] = record[CRASHES] + 1, record[ERRORS] + 1, 0",
    ),
    LuaBug(
        "a release charges an attempt",
        "job_release.lua",
        "record[ATTEMPT] = record[ATTEMPT] - 1",
        "record[ATTEMPT] = record[ATTEMPT]",
    ),
    LuaBug(
        "what is handed back goes to the end of the line",
        "include/hand_back.lua",
        "redis.call('ZADD', keys.ready, record[PLACE], id)",
        """record[PLACE] = record[PLACE] + 1000
    redis.call('ZADD', keys.ready, record[PLACE], id)""",
    ),
    LuaBug(
        "a cancellation is forgotten when the worker dies",
        "include/hand_back.lua",
        "if record[CANCEL] == 1 then",
        "if false then",
    ),
    LuaBug(
        "a resubmitted job keeps its spent budgets",
        "job_resubmit.lua",
        "record[CRASHES], record[LOST], record[CANCEL] = 0, 0, 0, 0, 0",
        "record[LOST], record[LOST], record[CANCEL] = 0, 0, 0, 0, 0",
    ),
    LuaBug(
        "a caller's id may be used twice",
        "job_enqueue.lua",
        "elseif body then",
        "elseif false then",
    ),
    LuaBug(
        "a retry forgets its priority",
        "job_fail.lua",
        "redis.call('ZADD', line, due_score(due, priority), id)",
        "redis.call('ZADD', line, due_score(due, 0), id)",
    ),
    LuaBug(
        "a bundle does not count the jobs that leave it",
        "include/leave_bundle.lua",
        "keys.bundled, token, -number)",
        "keys.bundled, token, 0)",
    ),
    LuaBug(
        "a bundle is over with the first job that leaves it",
        "include/leave_bundle.lua",
        "if left == 0 then",
        "if left >= 0 then",
    ),
    LuaBug(
        "a job that leaves its bundle forgets its place",
        "include/untie.lua",
        "raw .. (place and string.match(place, '^%d+$') or '0')",
        "raw .. '0'",
    ),
    LuaBug(
        "the end of a bundle's lease takes those that have leases of their own",
        "include/open_bundle.lua",
        "return opened",
        "return ids",
    ),
    LuaBug(
        "a renewal of some keeps the whole bundle",
        "job_renew.lua",
        "if #jobs == tonumber(redis.call('HGET', bundled, token) or nil) then",
        "if true then",
    ),
    LuaBug(
        "a job of a bundle that is to stop is counted on in it",
        "job_cancel.lua",
        "untie({ states = states, leased = leased, bundles = bundles, bundled = bundled }, { id })",
        "",
    ),
    LuaBug(
        "a bundle counts as one under the cap of its pool",
        "include/leased_count.lua",
        "count - 1 + (tonumber(number) or 1)",
        "count",
    ),
)


@dataclass(frozen=True)
class PythonBug:
    """One method of the engine replaced. ``target`` is the class's dotted path."""

    name: str
    target: str
    method: str
    broken: Callable[..., Any]


def _never(*_: Any) -> bool:
    return False


PYTHON_BUGS = (
    PythonBug("a unique key is taken from a live job", "jobs.engine.jobs.unique_keys.UniqueKeys", "holds", _never),
)


@dataclass(frozen=True)
class ProcessBug:
    """A mistake in every process of a fault run, and what the checker must find of it in which scenario."""

    scenario: str
    found_by: frozenset[str]
    plant: Callable[[], None]


def _acknowledge_first() -> None:
    """Jobs are completed when they are leased; whoever dies before it has run them has lost them."""
    from jobs.engine.leases import Completion, Leases

    leased = Leases._leased

    def broken(self: Leases, route: Any, token: str, raw: list[Any]) -> Any:
        reply = leased(self, route, token, raw)
        self.complete(route, [Completion(job.id, job.token, job.type, job.leased_at) for job in reply.jobs])
        return reply

    Leases._leased = broken  # type: ignore[method-assign]


def _forget_that_it_was_sent() -> None:
    """An enqueue whose answer was lost is sent again as if it were the first time."""
    from jobs.store.connection import Store

    run = Store.run

    def broken(self: Store, *arguments: Any, when_resent: Any = None, **options: Any) -> Any:
        return run(self, *arguments, **options)

    Store.run = broken  # type: ignore[method-assign, assignment]


def _drop_strangers() -> None:
    """A job of a type that is not registered here is taken off the list as done."""
    from jobs.engine.leases import Completion, Leases

    def broken(self: Leases, route: Any, leases: Any) -> list[str]:
        return self.complete(route, [Completion(job_id, token, type_name, 0) for job_id, token, type_name in leases])

    Leases.park = broken  # type: ignore[method-assign]


PROCESS_BUGS = {
    "jobs are acknowledged before they run": ProcessBug("kills", frozenset({"K18"}), _acknowledge_first),
    "an enqueue that is sent again creates again": ProcessBug(
        "lost_answers", frozenset({"K3", "K16"}), _forget_that_it_was_sent
    ),
    "unknown types are taken for done": ProcessBug("unknown_type", frozenset({"K18"}), _drop_strangers),
}


def _believe_every_answer(self: Any, now_ms: int) -> float:
    """A lease counts from when its answer is read, however long that has lain there."""
    return monotonic()


_NEVER: Any = property(_never)


def _recall_nothing(*_: Any) -> LeaseReply:
    return LeaseReply([], 0, 0, None, 0, paused=False)


STANDING_BUGS = (
    PythonBug("a late answer begins", "jobs.worker.standing.ServerClock", "earliest", _believe_every_answer),
    PythonBug("a recall is not sent", "jobs.worker.standing.Standing", "recall", _recall_nothing),
    PythonBug("nobody waits for standing calls on the way out", "jobs.worker.standing.Standing", "is_open", _NEVER),
)
"""Mistakes around lease calls that are sent in advance."""

RECALL_BUGS = (
    LuaBug("a recalled call takes jobs", "job_lease.lua", "if limit == 0 then", "if false then"),
    LuaBug(
        "a call that was recalled keeps the wake-up",
        "job_lease.lua",
        "if repeated[2] ~= '' or repeated[3] > 0",
        "if false",
    ),
    LuaBug("all calls of a worker share a grant", "job_lease.lua", "'HGET', grants, seat", "'HGET', grants, worker"),
)
"""The same in the script."""

DUE_BUG = LuaBug(
    "a call that was recalled keeps the news of a due time",
    "job_lease.lua",
    "if repeated[2] ~= '' or repeated[3] > 0",
    "if repeated[3] > 0",
)


def _cross_out_first(self: Any, route: Any, run_id: str, news: Any) -> int:
    """News are crossed out before what follows from them is done."""
    self.engine.outbox.told(route, news)
    self._carry(run_id, news)
    return len(news)


def _trust_the_dead(self: Any, run_id: str, news: Any, *, is_repeated: bool = False) -> bool:
    """News are crossed out although a relay that died may hold what follows from them."""
    self._at_step(1)
    reply = self.engine.workflows.step(run_id, news)
    while reply.handed or reply.agenda:
        self._make_jobs(run_id, reply)
        reply = self.engine.workflows.step(run_id)
    return True


RELAY_BUGS: tuple[LuaBug | PythonBug, ...] = (
    LuaBug(
        "news that came meanwhile are crossed out too",
        "node_told.lua",
        "if stored == ARGV[2 * i] then",
        "if stored then",
    ),
    LuaBug("old news count", "workflow_step.lua", " or version <= state[VERSION] then", " then"),
    LuaBug("a node is handed to everybody", "workflow_step.lua", "outbox, '-inf', now_text", "outbox, '-inf', '+inf'"),
    LuaBug("a relay that slept makes its job", "node_enqueue.lua", "elseif now > not_after then", "elseif false then"),
    LuaBug(
        "a job that is there is made again", "node_enqueue.lua", "if redis.call('HSTRLEN', bodies, id) > 0", "if false"
    ),
    LuaBug("nothing is skipped", "workflow_step.lua", "return SKIPPED\n", "return BLOCKED\n"),
    LuaBug("ends of nodes are told to nobody", "include/tell_runs.lua", "if news[1] then", "if false then"),
    LuaBug("two retries repeat all twice", "workflow_redo.lua", "if state[VERSION] ~= version or", "if false and"),
    PythonBug("news are crossed out first", "jobs.runtime.relaying.Relay", "_tell_run", _cross_out_first),
    PythonBug("news of a dead relay are crossed out", "jobs.runtime.relaying.Relay", "_carry", _trust_the_dead),
)
"""Mistakes on the way from the end of a node to the jobs that follow."""


def _forgetful(heard: str, line: str) -> LuaBug:
    """What a child heard of a parent before stands beside what it hears now."""
    text = f"  write('SREM', {line}_of, words.{heard})\n"
    return LuaBug(f"{heard} does not take back {line}", "workflow_step.lua", text, "")


NEW_LIFE_BUGS: tuple[LuaBug, ...] = (
    _forgetful("broken", "held"),
    _forgetful("held", "broken"),
    _forgetful("open", "held"),
    _forgetful("open", "broken"),
    LuaBug("an error outlives its life", "workflow_step.lua", "if value == '' and version > 1 then", "if false then"),
    LuaBug("a result outlives its life", "workflow_redo.lua", "  redis.call('HDEL', results, rank)\n", ""),
    LuaBug(
        "an error outlives a retry",
        "workflow_redo.lua",
        "  redis.call('HDEL', errors, rank)\n  redis.call('ZREM'",
        "  redis.call('ZREM'",
    ),
    LuaBug(
        "children are told anew from where the last telling stood",
        "include/agenda.lua",
        "'t' .. rank, 'told:' .. rank)",
        "'t' .. rank)",
    ),
    LuaBug(
        "a place among children is kept for ever",
        "workflow_step.lua",
        "    redis.call('HDEL', run, 'told:' .. rank)\n",
        "",
    ),
)
"""Mistakes with nodes that live again: by a resubmission of their job, or a retry of the run."""
