"""Workflows: graphs of jobs, as they are written down and as they unfold. All of it is pure.

``definition`` is what a workflow is, ``builder`` writes one in Python, ``checks`` says whether it can run,
``templates`` are payloads with holes, ``groups`` nodes that open into others, ``schema`` and ``drawing`` are for
programs and for people. ``graph`` and ``run`` decide, end by end, what follows in a run. ``records`` are what is read
of runs. ``folding`` and ``layout`` make a picture of it, ``course`` tells its times, ``comparing`` lays two side by
side.
"""

from jobs.core.parents import Ended
from jobs.core.workflow.builder import Part, Workflow
from jobs.core.workflow.checks import MOST_NODES, check, read, read_node, spec_options, too_many
from jobs.core.workflow.comparing import Beside, beside
from jobs.core.workflow.course import Axis, Fold, Span, axis, critical_path
from jobs.core.workflow.definition import Definition, Edge, Kind, Node
from jobs.core.workflow.drawing import draw, twigs, waits
from jobs.core.workflow.folding import Box, depths
from jobs.core.workflow.graph import Graph
from jobs.core.workflow.groups import in_full, members, stored_names
from jobs.core.workflow.layout import Layout, Line, Placed, layout
from jobs.core.workflow.picture import Drawn, Face, Picture, Share, definition_picture, picture
from jobs.core.workflow.problems import Problem, invalid, refuse
from jobs.core.workflow.reasons import why_skipped, why_waiting
from jobs.core.workflow.records import OVER, PREPARING, SKIPPED, NodeView, RunFacts
from jobs.core.workflow.run import FAILURES, ROOT, Decision, Redo, Run, RunState, Stood
from jobs.core.workflow.schema import schema
from jobs.core.workflow.templates import Item, Reference, TemplateError, known_and_unknown, references, render

__all__ = [
    "FAILURES",
    "MOST_NODES",
    "OVER",
    "PREPARING",
    "ROOT",
    "SKIPPED",
    "Axis",
    "Beside",
    "Box",
    "Decision",
    "Definition",
    "Drawn",
    "Edge",
    "Ended",
    "Face",
    "Fold",
    "Graph",
    "Item",
    "Kind",
    "Layout",
    "Line",
    "Node",
    "NodeView",
    "Part",
    "Picture",
    "Placed",
    "Problem",
    "Redo",
    "Reference",
    "Run",
    "RunFacts",
    "RunState",
    "Share",
    "Span",
    "Stood",
    "TemplateError",
    "Workflow",
    "axis",
    "beside",
    "check",
    "critical_path",
    "definition_picture",
    "depths",
    "draw",
    "in_full",
    "invalid",
    "known_and_unknown",
    "layout",
    "members",
    "picture",
    "read",
    "read_node",
    "references",
    "refuse",
    "render",
    "schema",
    "spec_options",
    "stored_names",
    "too_many",
    "twigs",
    "waits",
    "why_skipped",
    "why_waiting",
]
