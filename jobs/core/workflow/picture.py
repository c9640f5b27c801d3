"""A layout with faces: what each box says, so that a template can draw it without asking anything more.

The same picture shows a definition, where boxes say what runs in them, and a run, where they say how it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from jobs.core.workflow.definition import Edge
from jobs.core.workflow.folding import Box
from jobs.core.workflow.graph import Graph
from jobs.core.workflow.layout import HEIGHT, WIDTH, Layout, Line

NAME_MAX, WORD_MAX = 19, 24
"""Characters that fit into a box; SVG cuts no text by itself."""


@dataclass(frozen=True)
class Share:
    """A part of the bar at the foot of a stack: so many of its nodes are in this state."""

    state: str
    count: int


@dataclass(frozen=True)
class Face:
    """What a box says. ``state``: one of the nine words, or empty; ``marks``: more classes for the style sheet."""

    name: str
    word: str
    label: str  # the whole in words, for those who do not see the picture
    state: str = ""
    url: str = ""
    shares: tuple[Share, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawn:
    """A box as the template draws it: numbers are pixels, texts are cut to what fits."""

    face: Face
    key: str
    x: int
    y: int
    size: int

    @property
    def is_stack(self) -> bool:
        return self.size > 1

    @property
    def name(self) -> str:
        return _cut_in_the_middle(self.face.name, NAME_MAX)

    @property
    def word(self) -> str:
        return self.face.word if len(self.face.word) <= WORD_MAX else f"{self.face.word[: WORD_MAX - 1].rstrip()}…"

    @property
    def classes(self) -> str:
        state = (f"is-{self.face.state}",) if self.face.state else ()
        return " ".join(("box", *(("stack",) if self.is_stack else ()), *state, *self.face.marks))

    @cached_property
    def bars(self) -> list[tuple[str, float, float]]:
        """(state, x, width) of each part of the bar at the foot of a stack."""
        total, room = sum(share.count for share in self.face.shares), WIDTH - 24
        bars, x = [], float(self.x + 12)
        for share in self.face.shares:
            width = room * share.count / total
            bars.append((share.state, round(x, 1), round(width, 1)))
            x += width
        return bars

    # Where its parts stand.
    @property
    def middle(self) -> int:
        return self.y + HEIGHT // 2

    @property
    def icon_y(self) -> int:
        return self.middle - 8

    @property
    def name_y(self) -> int:
        return self.y + 19

    @property
    def word_y(self) -> int:
        return self.y + 34

    @property
    def bar_y(self) -> int:
        return self.y + HEIGHT - 6


@dataclass(frozen=True)
class Picture:
    """``critical``: pairs (source, target) of boxes whose lines the run's length was made of."""

    boxes: tuple[Drawn, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    label: str
    critical: frozenset[tuple[str, str]] = frozenset()

    @property
    def drawn_lines(self) -> list[tuple[Line, str]]:
        """Each line with its classes; the critical ones last, over the others."""
        found = [(line, _line_classes(line, (line.source, line.target) in self.critical)) for line in self.lines]
        return sorted(found, key=lambda each: "is-critical" in each[1])


def picture(
    layout: Layout, face_of: Callable[[Box], Face], label: str, critical: frozenset[tuple[str, str]] = frozenset()
) -> Picture:
    """The layout with a face for each box."""
    boxes = tuple(
        Drawn(face_of(placed.box), placed.box.key, placed.x, placed.y, len(placed.box.nodes)) for placed in layout.boxes
    )
    return Picture(boxes, layout.lines, layout.width, layout.height, label, critical)


def definition_picture(graph: Graph, layout: Layout, url: Callable[[str], str] = lambda key: "") -> Picture:
    """A workflow that does not run: each box says the type of its job. ``url``: of a node."""

    def face(box: Box) -> Face:
        node = graph.nodes[box.key]
        many = f" ×{len(box.nodes):,}" if box.is_stack else ""
        return Face(f"{box.name}{many}", node.label, f"{box.name}{many}: {node.label}", url=url(box.key))

    nodes = "1 node" if len(graph) == 1 else f"{len(graph):,} nodes"
    return picture(layout, face, f"Graph of {nodes}, from left to right")


def _line_classes(line: Line, critical: bool) -> str:
    return f"line is-{_KINDS[line.kind]}{' is-critical' if critical else ''}"


def _cut_in_the_middle(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 9]}…{text[-8:]}"


_KINDS = {Edge.SUCCESS: "success", Edge.FAILURE: "failure", Edge.COMPLETE: "complete"}
