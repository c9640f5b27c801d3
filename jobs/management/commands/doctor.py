"""``doctor``: looks for what makes jobs late, lost or doubled, and says how to put it right."""

from __future__ import annotations

from typing import Any

from jobs.management.arguments import Parser
from jobs.management.base import SchedulerCommand
from jobs.management.diagnosis import Finding, diagnose
from jobs.management.errors import CommandFailed, Exit
from jobs.management.output import Column, Output

FINDINGS: tuple[Column[Finding], ...] = (
    Column("STATUS", lambda finding: finding.status),
    Column("CHECK", lambda finding: finding.check),
    Column("FOUND", lambda finding: finding.detail, elastic=True),
)


class Command(SchedulerCommand):
    help = "Check store, persistence, clocks, database, channel layer and workers. Exit 1 if anything failed."
    examples = """
        manage.py doctor
        manage.py doctor --json | jq '.checks[] | select(.status == "failed")'
    """

    def options(self, parser: Parser) -> None:
        pass

    def run(self, output: Output, **_options: Any) -> None:
        findings = diagnose()
        failed = sum(finding.status == "failed" for finding in findings)
        if output.as_json:
            output.document({"ok": not failed, "checks": [finding.as_dict() for finding in findings]})
        else:
            output.table(FINDINGS, findings)
            show_fixes(output, findings)
        if failed:
            raise CommandFailed(
                f"{failed} of {len(findings)} checks failed",
                exit=Exit.FAILED,
                code="checks_failed",
                silent=output.as_json,
            )


def show_fixes(output: Output, findings: list[Finding]) -> None:
    """What to do, in whole sentences, under the table that has no room for them."""
    wrong = [finding for finding in findings if finding.status in {"failed", "warning"}]
    if not wrong:
        output.hint("\nAll is well.")
        return
    output.heading("What to do")
    for finding in wrong:
        setting = f" [{finding.setting}]" if finding.setting else ""
        output.line(f"{finding.check}{setting}: {finding.detail} {finding.fix}".rstrip())
