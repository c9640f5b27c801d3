"""``bulk VERB``: what was done to many jobs at once, by whom, how far it is."""

from __future__ import annotations

from typing import Any

from jobs import api
from jobs.management.arguments import Verbs
from jobs.management.base import VerbCommand
from jobs.management.columns import OPERATIONS, operation_dict
from jobs.management.output import Output
from jobs.management.selection import show_operation

REFUSALS_SHOWN = 100


class Command(VerbCommand):
    help = "Look at bulk operations, confirm them, cancel them, and undo them."
    examples = """
        manage.py dlq resubmit --all --type email.send --background --yes
        manage.py bulk list
        manage.py bulk show ID
        manage.py bulk cancel ID
    """

    def verbs(self, verbs: Verbs) -> None:
        verbs.add(
            "list", self.show_list, help="List the newest hundred, newest first.", examples="manage.py bulk list --json"
        )
        showing = verbs.add(
            "show",
            self.show,
            help="Show one, with the first jobs that it was not done to.",
            examples="manage.py bulk show ID",
        )
        showing.add_argument("id", metavar="ID", help="id of the operation")
        confirm = verbs.add(
            "confirm",
            self.confirm,
            help="Let one act that waits for its number, or for a word after its trial.",
            examples="manage.py bulk confirm ID 4812",
        )
        confirm.add_argument("id", metavar="ID", help="id of the operation")
        confirm.add_argument("number", metavar="N", type=int, help="how many jobs it is on")
        cancel = verbs.add(
            "cancel",
            self.cancel,
            help="Stop one. What was done stays done; the rest is as it was.",
            examples="manage.py bulk cancel ID",
        )
        cancel.add_argument("id", metavar="ID", help="id of the operation")
        undo = verbs.add(
            "undo",
            self.undo,
            help="Take a resubmit back, as far as its jobs have not begun.",
            examples="manage.py bulk undo ID",
        )
        undo.add_argument("id", metavar="ID", help="id of the operation")

    def show_list(self, output: Output, **_options: Any) -> None:
        operations = api.bulk.newest()
        if output.as_json:
            output.document({"items": [operation_dict(operation) for operation in operations], "next_cursor": None})
        elif operations:
            output.table(OPERATIONS, operations)
        else:
            output.hint("Nothing has been done to many jobs at once yet.")

    def show(self, output: Output, *, id: str, **_options: Any) -> None:
        operation = api.bulk.get(id)
        refused = api.bulk.refusals(id, REFUSALS_SHOWN) if operation.refused else {}
        told = {job: api.shown_text(why) for job, why in refused.items()}
        if output.as_json:
            output.document(operation_dict(operation) | {"refusals": told})
            return
        show_operation(output, operation)
        for job, why in told.items():
            output.note(f"{job}: {why}")

    def confirm(self, output: Output, *, id: str, number: int, **_options: Any) -> None:
        show_operation(output, api.bulk.confirm(id, number))

    def cancel(self, output: Output, *, id: str, **_options: Any) -> None:
        show_operation(output, api.bulk.stop(id))

    def undo(self, output: Output, *, id: str, **_options: Any) -> None:
        show_operation(output, api.bulk.undo(id))
