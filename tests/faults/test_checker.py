"""The checker must bite: hand-made bad histories are caught, and a good one passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.faults.checker import check
from tests.faults.checker.checks import CHECKS
from tests.faults.checker.report import Expectations, FinalJob
from tests.faults.history import Event, History, Phase, read
from tests.faults.linear import Operation, explains

SECOND = 1_000_000_000


class Story:
    """Writes a history by hand, second by second."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ops = 0

    def add(self, at: float, event: str, phase: Phase, op: str, proc: str = "host-1", **fields: Any) -> None:
        self.events.append(
            Event(
                proc=proc,
                boot="b",
                seq=len(self.events),
                mono_ns=int(at * SECOND),
                event=event,
                phase=phase,
                op=op,
                **fields,
            )
        )

    def action(
        self,
        at: float,
        event: str,
        phase: Phase = "ok",
        *,
        took: float = 0.01,
        answer: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        self.ops += 1
        op = f"op{self.ops}"
        self.add(at, event, "invoke", op, **fields)
        if phase != "unknown":
            self.add(at + took, event, phase, op, **(answer or {}))

    def enqueue(self, at: float, job: str = "a", **fields: Any) -> None:
        self.action(at, "enqueue", answer={"job": job}, key=f"key-{job}", **fields)

    def claim(self, at: float, token: str, fence: int, job: str = "a", lease: float = 10) -> None:
        self.action(
            at,
            "claim",
            pool="default",
            token=token,
            lease_ms=int(lease * 1000),
            answer={"server_ms": int(at * 1000), "facts": {"fences": {job: fence}}},
        )

    def run(self, at: float, fence: int, job: str = "a", attempt: int = 1, took: float = 0.1, **fields: Any) -> None:
        self.action(
            at,
            "run",
            took=took,
            job=job,
            key=fields.pop("key", f"key-{job}"),
            fence=fence,
            attempt=attempt,
            pool="default",
            answer={"outcome": "returned"},
            **fields,
        )

    def end(self, at: float, verb: str, token: str, answer: str, job: str = "a", **facts: Any) -> None:
        self.action(at, verb, facts={"tokens": {job: token}, **facts}, answer={"facts": {"answers": {job: answer}}})


def a_good_life() -> Story:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.run(2.1, 1)
    story.end(2.5, "complete", "t1", "ok")
    return story


def done(job: str = "a", state: str = "succeeded", attempt: int = 1, **fields: Any) -> dict[str, FinalJob]:
    return {job: FinalJob(id=job, state=state, attempt=attempt, **fields)}


def broken(story: Story, final: dict[str, FinalJob], expected: Expectations | None = None) -> set[str]:
    return {violation.check for violation in check(story.events, final, expected or Expectations()).violations}


def test_a_good_history_passes() -> None:
    assert broken(a_good_life(), done()) == set()


def test_a_killed_worker_and_a_second_lease_pass() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.claim(12.5, "t2", 2)
    story.run(12.6, 2)
    story.end(12.8, "complete", "t2", "ok")
    story.end(13, "complete", "t1", "lost")
    assert broken(story, done()) == set()


def test_an_answer_that_was_lost_and_asked_for_again_passes() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.run(2.1, 1)
    story.action(2.5, "complete", "unknown", facts={"tokens": {"a": "t1"}})
    story.end(3, "complete", "t1", "ok")
    assert broken(story, done()) == set()


def test_a_lost_job_is_caught() -> None:
    assert "K1" in broken(a_good_life(), {})


def test_a_job_that_never_ends_is_caught() -> None:
    assert "K1" in broken(a_good_life(), done(state="ready"))


def test_a_job_nobody_asked_for_is_caught() -> None:
    story = a_good_life()
    story.run(3, 1, job="ghost")
    assert "K2" in broken(story, done())


def test_two_jobs_for_one_wish_are_caught() -> None:
    story = a_good_life()
    story.run(3, 1, job="b", key="key-a")
    assert "K2" in broken(story, done())


def test_a_lease_of_a_finished_job_is_caught() -> None:
    story = a_good_life()
    story.claim(20, "t2", 2)
    assert "K3" in broken(story, done(attempt=2))


def test_a_completion_that_a_stale_lease_got_accepted_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.claim(13, "t2", 2)
    story.run(13.1, 2)
    story.end(14, "complete", "t1", "ok")
    assert {"K3", "K4"} <= broken(story, done(attempt=2))


def test_two_accepted_completions_are_caught() -> None:
    story = a_good_life()
    story.claim(13, "t2", 2)
    story.end(14, "complete", "t2", "ok")
    assert "K4" in broken(story, done(attempt=2))


def test_a_fence_given_twice_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.claim(13, "t2", 1)
    story.run(13.1, 1)
    story.end(14, "complete", "t2", "ok")
    assert "K4" in broken(story, done(attempt=2))


def test_a_second_lease_while_the_first_holds_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.claim(4, "t2", 2)
    story.run(4.1, 2)
    story.end(5, "complete", "t2", "ok")
    assert "K5" in broken(story, done(attempt=2))


def test_a_renewed_lease_still_holds() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.action(
        9,
        "renew",
        lease_ms=10_000,
        facts={"leases": [["a", "t1"]]},
        answer={"server_ms": 9000, "facts": {"lost": [], "ended": []}},
    )
    story.claim(13, "t2", 2)
    assert "K5" in broken(story, done(state="ready"))


def test_two_runs_under_one_lease_are_caught() -> None:
    story = a_good_life()
    story.run(2.2, 1)
    assert "K6" in broken(story, done())


@pytest.mark.parametrize(
    "final",
    [
        done(attempt=2),
        done(attempt=0),
        done(crashes=4),
        done(failures=5),
        done(state="dead"),
    ],
    ids=["attempts without leases", "runs without attempts", "crashes over budget", "errors over budget", "dead early"],
)
def test_a_broken_budget_is_caught(final: dict[str, FinalJob]) -> None:
    assert "K7" in broken(a_good_life(), final)


def test_an_attempt_charged_for_a_release_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.end(2.5, "release", "t1", "ready")
    story.claim(3, "t2", 2)
    story.run(3.1, 2, attempt=1)
    story.end(4, "complete", "t2", "ok")
    assert broken(story, done(attempt=1)) == set()
    assert "K7" in broken(story, done(attempt=2))


def test_an_early_start_is_caught() -> None:
    story = Story()
    story.enqueue(1, due_ns=5 * SECOND)
    story.claim(2, "t1", 1)
    story.run(2.1, 1)
    story.end(2.5, "complete", "t1", "ok")
    assert "K8" in broken(story, done())


def test_a_retry_before_its_backoff_is_over_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.run(2.1, 1)
    story.end(2.5, "fail", "t1", "retry_wait", delays={"a": 5000})
    story.claim(3, "t2", 2)
    story.run(3.1, 2, attempt=2)
    story.end(3.5, "complete", "t2", "ok")
    assert "K8" in broken(story, done(attempt=2, failures=1))


def test_more_handlers_than_slots_are_caught() -> None:
    story = Story()
    for job in "ab":
        story.enqueue(1, job=job)
        story.claim(2, f"t-{job}", 1, job=job)
        story.run(2.1, 1, job=job, took=1)
        story.end(4, "complete", f"t-{job}", "ok", job=job)
    final = done() | done("b")
    assert broken(story, final, Expectations(slots={"default": 2})) == set()
    assert "K11" in broken(story, final, Expectations(slots={"default": 1}))


def test_more_handlers_than_a_limit_allows_are_caught() -> None:
    story = Story()
    for number, (job, moments) in enumerate({"a": (1.0, 2.0), "b": (1.5, 1.6), "c": (2.1, 3.0)}.items()):
        for at in moments:
            facts = {"at_ns": int(at * SECOND), "run": f"{job} 1", "limits": ["key k"]}
            story.add(at, "step", "invoke", f"step-{number}-{at}", facts=facts)
    assert broken(story, {}, Expectations(at_once={"key k": 2})) == set()
    assert "K19" in broken(story, {}, Expectations(at_once={"key k": 1}))
    assert "K19" in broken(story, {}, Expectations(at_once={"key that nobody used": 1}))


def test_a_lease_during_a_pause_is_caught() -> None:
    story = Story()
    story.enqueue(0.5)
    story.action(1, "pause", pool="default")
    story.claim(2, "t1", 1)
    story.run(2.1, 1)
    story.end(2.5, "complete", "t1", "ok")
    story.action(3, "resume", pool="default")
    assert "K12" in broken(story, done())


def test_a_start_after_a_cancellation_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.action(1.5, "cancel", job="a", answer={"outcome": "cancelled"})
    story.run(2, 1)
    assert "K14" in broken(story, done(state="cancelled", attempt=0))


def test_a_success_that_never_ran_is_caught() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.end(2.5, "complete", "t1", "ok")
    assert "K18" in broken(story, done())


def test_workers_that_stand_still_after_a_fault_are_caught() -> None:
    story = a_good_life()
    story.action(5, "fault", fault="kill server")
    story.enqueue(6, job="b")
    story.claim(60, "t2", 1, job="b")
    story.run(61, 1, job="b")
    story.end(62, "complete", "t2", "ok", job="b")
    assert "K17" in broken(story, done() | done("b"))


@pytest.mark.parametrize(
    "expected",
    [Expectations(faults=["kill host"]), Expectations(recoveries=1), Expectations(zombies=1)],
    ids=["no fault", "no recovery", "no zombie"],
)
def test_a_run_that_was_not_hard_enough_fails(expected: Expectations) -> None:
    assert "run" in broken(a_good_life(), done(), expected)


def test_a_zombie_that_holds_its_tongue_counts() -> None:
    story = Story()
    story.enqueue(1)
    story.claim(2, "t1", 1)
    story.run(2.1, 1, took=11)
    story.claim(12.5, "t2", 2)
    story.run(12.6, 2, attempt=2)
    story.end(12.8, "complete", "t2", "ok")
    assert broken(story, done(attempt=2), Expectations(zombies=1)) == set()
    assert broken(story, done(attempt=2), Expectations(zombies=2)) == {"run"}


def test_a_fault_without_proof_does_not_count() -> None:
    story = a_good_life()
    story.action(5, "fault", "refused", fault="kill host")
    assert "run" in broken(story, done(), Expectations(faults=["kill host"]))


def op(name: str, at: float, token: str = "", answer: str = "ok") -> Operation:
    return Operation(name, at, at + 0.5, token, answer)


@pytest.mark.parametrize(
    ("operations", "final", "possible"),
    [
        ([op("enqueue", 1), op("claim", 2, "t"), op("complete", 3, "t")], "succeeded", True),
        ([op("enqueue", 1), op("claim", 2, "t"), op("complete", 3, "u")], "succeeded", False),
        ([op("enqueue", 1), op("claim", 2, "t"), op("fail", 3, "t", "dead"), op("claim", 4, "u")], None, False),
        ([op("claim", 1, "t"), op("enqueue", 2)], None, False),
        ([op("claim", 1, "t"), op("enqueue", 1.2)], None, True),
        ([op("enqueue", 1), op("cancel", 2, answer="cancelled"), op("claim", 3, "t")], None, False),
        ([op("enqueue", 1), op("claim", 2, "t"), op("claim", 3, "u"), op("complete", 4, "t", "lost")], "leased", True),
        ([op("enqueue", 1), op("claim", 2, "t"), op("cancel", 3, answer="leased")], "leased", True),
        ([op("enqueue", 1), op("claim", 2, "t"), op("cancel", 3, answer="leased")], "cancelled", True),
        ([op("enqueue", 1), op("claim", 2, "t")], "cancelled", False),
    ],
    ids=[
        "a life",
        "wrong token",
        "after death",
        "before birth",
        "overlapping birth",
        "after cancel",
        "lease ran out",
        "asked to stop",
        "asked to stop, and its lease ran out",
        "cancelled by nobody",
    ],
)
def test_the_order_search_knows_what_is_possible(
    operations: list[Operation], final: str | None, possible: bool
) -> None:
    assert explains(operations, final) is possible


def test_every_check_has_a_history_that_it_catches() -> None:
    """A new check without a bad history in this file fails here."""
    stories = Path(__file__).read_text()
    for one in CHECKS:
        name = (one.__doc__ or "").split(":", 1)[0]
        if name.startswith("K"):
            assert f'"{name}"' in stories, f"no bad history for {name}"


def test_a_line_that_a_kill_cut_off_is_left_out_and_no_other(tmp_path: Path) -> None:
    history = History(tmp_path, "host-1")
    history.write("run", "invoke")
    history.close()
    (file,) = tmp_path.glob("*.jsonl")
    whole = file.read_bytes()

    file.write_bytes(whole + whole[:40])
    assert [event.event for event in read(tmp_path)] == ["run"]

    file.write_bytes(whole[:40] + b"\n" + whole)
    with pytest.raises(msgspec.DecodeError):
        read(tmp_path)
