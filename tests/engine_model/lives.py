"""Random lives of a state machine, with the failure told that Hypothesis hides where it does not happen again.

A life that fails once and goes well when it is lived again (a busy machine that let a request run out, say) is
reported as flaky, "the second run drew more data than the first", without a word of what had failed.
"""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def live(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Lives of this machine. AssertionError with all that failed where one went otherwise when it was lived again."""
    failures: list[BaseException] = []

    def teardown(self: Any) -> None:
        if (failure := sys.exc_info()[1]) is not None and not type(failure).__module__.startswith("hypothesis"):
            failures.append(failure)
        try:
            machine.teardown(self)
        except Exception as failure:
            failures.append(failure)
            raise

    watched = type(machine.__name__, (machine,), {"teardown": teardown})
    wanted = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(watched, settings=wanted)
    except Flaky as flaky:
        told = "\n".join(f"- {failure!r}" for failure in failures) or "- no life failed: rules or draws hang on chance"
        raise AssertionError(f"A life went otherwise when it was lived again; what had failed in lives:\n{told}") from (
            failures[0] if failures else flaky
        )
