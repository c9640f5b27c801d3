"""``workflows VERB``: runs of workflows, stored definitions, and files of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs import api
from jobs.core.workflow import Graph, Problem, draw
from jobs.exceptions import WorkflowInvalid
from jobs.management.arguments import Verbs, read_input
from jobs.management.base import VerbCommand
from jobs.management.definition_verbs import add_definition_verbs
from jobs.management.output import Column, Output
from jobs.management.run_diff import add_diff_verb
from jobs.management.run_verbs import add_run_verbs

PROBLEMS: tuple[Column[Problem], ...] = (
    Column("NODES", lambda problem: ", ".join(problem.nodes), elastic=True),
    Column("PROBLEM", lambda problem: problem.message),
    Column("FIX", lambda problem: problem.fix),
)


class Command(VerbCommand):
    help = "Start workflows, see how their runs stand, steer them, and keep definitions."
    examples = """
        manage.py workflows start nightly --payload '{"day": "2026-03-01"}'
        manage.py workflows list --state failed
        manage.py workflows show RUN
        manage.py workflows retry RUN --from load
        manage.py workflows validate --file nightly.json
        manage.py workflows validate --file - --json < nightly.json | jq '.problems[].message'
    """

    def verbs(self, verbs: Verbs) -> None:
        add_run_verbs(verbs)
        add_diff_verb(verbs)
        add_definition_verbs(verbs)
        validate = verbs.add(
            "validate",
            self.validate,
            help="Say whether a workflow can run, and draw it. Needs no server.",
            examples="""
                manage.py workflows validate --file nightly.json
                manage.py workflows validate --file nightly.json --allow-unknown
            """,
        )
        validate.add_argument("--file", required=True, metavar="FILE", help="JSON of the workflow; - = standard input")
        validate.add_argument(
            "--allow-unknown", action="store_true", help="accept job types that this process has not registered"
        )

    def validate(self, output: Output, file: str, allow_unknown: bool, **_options: Any) -> None:
        try:
            definition = api.workflows.validate(read_input(file, "workflow"), allow_unknown=allow_unknown)
        except WorkflowInvalid as error:
            self._tell(output, error.problems)
            raise
        graph = Graph(definition.nodes)
        edges = sum(map(len, graph.parents.values()))
        if output.as_json:
            output.document(
                {"valid": True, "name": definition.name, "nodes": len(graph), "edges": edges, "problems": []}
            )
            return
        output.facts([("workflow", definition.name), ("nodes", len(graph)), ("edges", edges)])
        output.line("")
        for line in draw(graph):
            output.line(line)

    @staticmethod
    def _tell(output: Output, problems: Sequence[Problem]) -> None:
        """All of them as data; the error that follows on standard error is a summary."""
        if output.as_json:
            output.document({"valid": False, "problems": [problem.as_dict() for problem in problems]})
        elif len(problems) > 1:
            output.table(PROBLEMS, problems)
