"""Where the boxes of a workflow stand: columns from left to right, every edge to the right, as few crossings as can be
had cheaply, and edges as straight as the boxes between them allow. The same definition gives the same picture.

Pixels throughout. Nothing here knows SVG but the paths of the lines, or how a run goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from jobs.core.workflow.definition import Edge
from jobs.core.workflow.folding import Box, Folded, foldings
from jobs.core.workflow.graph import Graph

WIDTH, HEIGHT = 176, 44
"""Of a box."""

MARGIN = 16
MOST_BOXES = 300
MOST_LINKS = 1_500
MOST_BENDS = 4_000
"""A picture with more of any of these is folded further: nobody could follow it, and no browser would like it."""

_GAP, _LANE = 18, 14  # between boxes of a column, and between lines that pass it
_NARROW, _WIDE = 56, 152  # between columns: steep lines need room
_SWEEPS = 12
_STRAIGHT, _LOOSE = 8.0, 0.05  # how much it matters that a long line is straight, and where a spot without lines stands


@dataclass(frozen=True)
class Placed:
    """A box and its upper left corner."""

    box: Box
    x: int
    y: int
    column: int


@dataclass(frozen=True)
class Line:
    """One link as the path of an SVG."""

    source: str
    target: str
    kind: Edge
    edges: int
    path: str


@dataclass(frozen=True)
class Layout:
    """A picture: boxes by column and from the top, and the lines between them."""

    boxes: tuple[Placed, ...]
    lines: tuple[Line, ...]
    width: int
    height: int

    @cached_property
    def box_of(self) -> dict[str, Placed]:
        """Node → where it stands."""
        return {key: placed for placed in self.boxes for key in placed.box.nodes}


def layout(graph: Graph) -> Layout:
    """The picture of a workflow, folded as far as it takes to be one. A second at most, whatever the workflow."""
    if not graph.nodes:
        return Layout((), (), 2 * MARGIN, 2 * MARGIN)
    for folded in foldings(graph):  # the last one is taken as it is
        columns = _columns(folded)
        if _is_small(folded, columns):
            break
    return _Drawing(folded, columns).layout()


@dataclass
class _Spot:
    """A place in a column: a box, or a bend of the lines of one box that pass the column."""

    column: int
    order: float
    box: Box | None = None
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    y: float = 0.0

    @property
    def height(self) -> int:
        return HEIGHT if self.box else 0


class _Drawing:
    """The columns while they are put in order. Spots are known by their number."""

    def __init__(self, folded: Folded, columns: dict[str, int]) -> None:
        self.folded = folded
        self.spots: list[_Spot] = []
        self.ways: list[list[int]] = []  # of each link: its source, its bends, its target
        self._place(columns)

    def layout(self) -> Layout:
        self._order()
        self._align()
        return self._drawn()

    def _place(self, columns: dict[str, int]) -> None:
        """Spots for boxes, and for the lines that pass columns: those of one box and kind share their bends."""
        number: dict[str, int] = {}
        for box in self.folded.boxes:
            number[box.key] = self._spot(columns[box.key], box)
        bends: dict[tuple[str, Edge, int], int] = {}
        for link in self.folded.links:
            way = [number[link.source]]
            for column in range(columns[link.source] + 1, columns[link.target]):
                place = link.source, link.kind, column
                if place not in bends:
                    bends[place] = self._spot(column)
                way.append(bends[place])
            way.append(number[link.target])
            self.ways.append(way)
            for one, next_ in pairwise(way):
                if next_ not in self.spots[one].right:
                    self.spots[one].right.append(next_)
                    self.spots[next_].left.append(one)

    def _spot(self, column: int, box: Box | None = None) -> int:
        self.spots.append(_Spot(column, float(len(self.spots)), box))
        return len(self.spots) - 1

    # --- The order within columns ------------------------------------------------------------------------------------

    def _order(self) -> None:
        """Moves every spot to the middle of its neighbours, column by column, to and fro; the best order stays."""
        self.columns: list[list[int]] = [[] for _ in range(1 + max(spot.column for spot in self.spots))]
        for number in self._walk():
            self.columns[self.spots[number].column].append(number)
        self._number()
        best, fewest = [list(column) for column in self.columns], self._crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            forth = sweep % 2 == 0
            for column in self.columns if forth else reversed(self.columns):
                column.sort(key=lambda number: self._middle(number, left=forth))
                self._number([column])
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(column) for column in self.columns], crossings
        self.columns = best
        self._number()

    def _walk(self) -> list[int]:
        """All spots, each branch after the other: children stand near their parent from the start."""
        seen: dict[int, None] = {}
        waiting = [number for number, spot in enumerate(self.spots) if not spot.left][::-1]
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen[number] = None
                waiting += reversed(self.spots[number].right)
        return list(seen)

    def _number(self, columns: Iterable[list[int]] | None = None) -> None:
        for column in self.columns if columns is None else columns:
            for order, number in enumerate(column):
                self.spots[number].order = order

    def _middle(self, number: int, *, left: bool) -> float:
        spot = self.spots[number]
        beside = spot.left if left else spot.right
        return sum(self.spots[other].order for other in beside) / len(beside) if beside else spot.order

    def _crossings(self) -> int:
        return sum(
            _inversions([self.spots[other].order for number in column for other in self._by_order(number)])
            for column in self.columns
        )

    def _by_order(self, number: int) -> list[int]:
        return sorted(self.spots[number].right, key=lambda other: self.spots[other].order)

    # --- Heights -----------------------------------------------------------------------------------------------------

    def _align(self) -> None:
        """Every spot as near to the height of its neighbours as those above and below it in its column allow."""
        for column in self.columns:
            for number, y in zip(column, self._apart(column, [0.0] * len(column), [1.0] * len(column)), strict=True):
                self.spots[number].y = y
        for sweep in range(_SWEEPS):
            forth = sweep % 2 == 0
            for column in self.columns if forth else reversed(self.columns):
                wanted = [self._wanted(number, sweep) for number in column]
                found = self._apart(column, [y for y, _ in wanted], [weight for _, weight in wanted])
                for number, y in zip(column, found, strict=True):
                    self.spots[number].y = y

    def _wanted(self, number: int, sweep: int) -> tuple[float, float]:
        """The height that would straighten the lines of a spot, and how much that matters."""
        spot = self.spots[number]
        sides = (spot.left, spot.right) if sweep >= _SWEEPS - 2 else ((spot.left, spot.right)[sweep % 2],)
        others = [self.spots[other] for side in sides for other in side]
        if not others:
            return spot.y, _LOOSE
        weights = [_STRAIGHT if spot.box is None and other.box is None else 1.0 for other in others]
        return sum(other.y * weight for other, weight in zip(others, weights, strict=True)) / sum(weights), sum(weights)

    def _apart(self, column: Sequence[int], wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
        """The heights nearest to the wanted ones (least squares) that keep order and distance: neighbours that want the
        same room are moved as one block.
        """
        offsets = [0.0]
        for one, next_ in pairwise(column):
            both = self.spots[one], self.spots[next_]
            gap = _GAP if all(spot.box for spot in both) else _LANE
            offsets.append(offsets[-1] + (both[0].height + both[1].height) / 2 + gap)
        blocks: list[tuple[float, float, int]] = []  # mean, weight, size
        for y, weight, offset in zip(wanted, weights, offsets, strict=True):
            mean, size = y - offset, 1
            while blocks and blocks[-1][0] > mean:
                other, heavy, many = blocks.pop()
                mean = (mean * weight + other * heavy) / (weight + heavy)
                weight, size = weight + heavy, size + many
            blocks.append((mean, weight, size))
        means = [mean for mean, _, size in blocks for _ in range(size)]
        return [mean + offset for mean, offset in zip(means, offsets, strict=True)]

    # --- The picture -------------------------------------------------------------------------------------------------

    def _drawn(self) -> Layout:
        top = min(spot.y - spot.height / 2 for spot in self.spots) - MARGIN
        for spot in self.spots:
            spot.y = round(spot.y - top)
        left = self._lefts()
        boxes = [
            Placed(spot.box, left[spot.column], int(spot.y) - HEIGHT // 2, spot.column)
            for column in self.columns
            for number in column
            if (spot := self.spots[number]).box
        ]
        lines = [
            Line(link.source, link.target, link.kind, link.edges, self._path(way, left))
            for link, way in zip(self.folded.links, self.ways, strict=True)
        ]
        lowest = max(spot.y + spot.height / 2 for spot in self.spots)
        return Layout(tuple(boxes), tuple(lines), left[-1] + WIDTH + MARGIN, int(lowest) + MARGIN)

    def _lefts(self) -> list[int]:
        """Where each column begins: the steeper the lines before it, the more room they have."""
        steepest = [0.0] * len(self.columns)
        for spot in self.spots:
            for other in spot.right:
                steepest[spot.column] = max(steepest[spot.column], abs(self.spots[other].y - spot.y))
        lefts = [MARGIN]
        for steep in steepest[:-1]:
            lefts.append(lefts[-1] + WIDTH + round(min(_WIDE, max(_NARROW, steep * 0.35))))
        return lefts

    def _path(self, way: list[int], left: list[int]) -> str:
        first = self.spots[way[0]]
        x, y = left[first.column] + WIDTH, int(first.y)
        steps = [f"M{x} {y}"]
        for number in way[1:]:
            spot = self.spots[number]
            to_x, to_y = left[spot.column], int(spot.y)
            middle = (x + to_x) // 2
            steps.append(f"H{to_x}" if to_y == y else f"C{middle} {y} {middle} {to_y} {to_x} {to_y}")
            x, y = to_x, to_y
            if spot.box is None:
                x += WIDTH
                steps.append(f"H{x}")
        return "".join(steps)


def _is_small(folded: Folded, columns: dict[str, int]) -> bool:
    spans: dict[tuple[str, Edge], int] = {}
    for link in folded.links:
        way = link.source, link.kind
        spans[way] = max(spans.get(way, 0), columns[link.target] - columns[link.source] - 1)
    sizes = (len(folded.boxes), MOST_BOXES), (len(folded.links), MOST_LINKS), (sum(spans.values()), MOST_BENDS)
    return all(size <= most for size, most in sizes)


def _columns(folded: Folded) -> dict[str, int]:
    """Box → its column: as far left as its parents allow; those with more children than parents near their children."""
    parents: dict[str, list[str]] = {box.key: [] for box in folded.boxes}
    children: dict[str, list[str]] = {box.key: [] for box in folded.boxes}
    for link in folded.links:
        parents[link.target].append(link.source)
        children[link.source].append(link.target)
    columns: dict[str, int] = {}
    for box in folded.boxes:
        columns[box.key] = max((columns[parent] + 1 for parent in parents[box.key]), default=0)
    for box in reversed(folded.boxes):
        if len(children[box.key]) > len(parents[box.key]):
            columns[box.key] = min(columns[child] for child in children[box.key]) - 1
    return columns


def _inversions(values: Sequence[float]) -> int:
    """Pairs that stand in the wrong order: crossings, where the values are the ends of lines by their beginnings."""
    if not values:
        return 0
    size = int(max(values)) + 2
    tree, found = [0] * (size + 1), 0
    for seen, value in enumerate(values):
        place, not_larger = int(value) + 1, 0
        while place:
            not_larger += tree[place]
            place &= place - 1
        found += seen - not_larger
        place = int(value) + 1
        while place <= size:
            tree[place] += 1
            place += place & -place
    return found
