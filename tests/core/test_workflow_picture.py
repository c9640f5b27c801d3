"""The picture of a workflow: what shares a box, where boxes stand, and how a run goes in time."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.core.workflow import Axis, Edge, Graph, Layout, Node, Span, axis, critical_path, layout
from jobs.core.workflow.folding import FOLD_ABOVE, foldings
from jobs.core.workflow.layout import HEIGHT, MOST_BOXES, WIDTH


def node(key: str, *parents: str, type: str = "t", failure: tuple[str, ...] = ()) -> Node:
    return Node(key=key, type=type, depends_on=parents, on_failure=failure)


def fan(number: int) -> Graph:
    pages = [node(f"page:{each}", "extract", type="page") for each in range(number)]
    return Graph([node("extract"), *pages, node("merge", *(page.key for page in pages))])


def random_graph(number: int, seed: int) -> Graph:
    random = Random(seed)
    nodes = []
    for each in range(number):
        before = range(max(0, each - 30), each)
        parents = random.sample(before, min(len(before), random.randint(0, 3)))
        nodes.append(node(f"n{each}x", *(f"n{parent}x" for parent in parents), type=f"t{each % 3}"))
    return Graph(nodes)


GRAPHS = st.builds(random_graph, st.integers(1, 80), st.integers(0, 10_000))


def names(picture: Layout) -> dict[str, int]:
    return {placed.box.name: len(placed.box.nodes) for placed in picture.boxes}


class TestFolding:
    def test_a_few_siblings_are_drawn_one_by_one(self) -> None:
        assert len(layout(fan(FOLD_ABOVE)).boxes) == FOLD_ABOVE + 2

    def test_a_large_fan_out_is_one_box_with_its_number(self) -> None:
        assert names(layout(fan(9_998))) == {"extract": 1, "page": 9_998, "merge": 1}

    def test_edges_into_a_box_are_one_line_that_knows_how_many_it_stands_for(self) -> None:
        assert [(line.source, line.target, line.edges) for line in layout(fan(100)).lines] == [
            ("extract", "page:0", 100),
            ("page:0", "merge", 100),
        ]

    def test_chains_beside_each_other_are_one_chain_of_boxes(self) -> None:
        steps = ("read", "clean", "save")
        nodes = [
            node(f"{step}:{each}", *([f"{steps[number - 1]}:{each}"] if number else []))
            for number, step in enumerate(steps)
            for each in range(60)
        ]

        assert names(layout(Graph(nodes))) == {"read": 60, "clean": 60, "save": 60}

    def test_siblings_with_another_follower_are_not_alike(self) -> None:
        pages = [node(f"page:{each}", type="page") for each in range(120)]
        odd = node("odd", *(page.key for page in pages[1::2]), type="odd")
        even = node("even", *(page.key for page in pages[::2]), type="even")

        assert sorted(len(placed.box.nodes) for placed in layout(Graph([*pages, odd, even])).boxes) == [1, 1, 60, 60]

    @pytest.mark.parametrize(
        "graph",
        [
            random_graph(3_000, 1),
            Graph([node(f"step:{each}", *([f"step:{each - 1}"] if each else [])) for each in range(10_000)]),
            Graph([node(f"{Random(each).random()}x".replace(".", "")) for each in range(10_000)]),
        ],
        ids=["tangle", "chain", "crowd"],
    )
    def test_however_large_the_workflow_its_picture_is_small_and_soon_there(self, graph: Graph) -> None:
        began = time.process_time()
        picture = layout(graph)

        assert time.process_time() - began < 5
        assert len(picture.boxes) <= MOST_BOXES
        assert sum(len(placed.box.nodes) for placed in picture.boxes) == len(graph)

    @settings(deadline=None, max_examples=25)
    @given(graph=GRAPHS)
    def test_whatever_is_folded_boxes_come_after_those_that_lead_to_them(self, graph: Graph) -> None:
        for folded in foldings(graph):
            order = {box.key: number for number, box in enumerate(folded.boxes)}
            edges = {
                (folded.box_of[parent].key, folded.box_of[key].key, kind)
                for key in graph.nodes
                for parent, kind in graph.parents[key].items()
            }

            assert sorted(folded.box_of) == sorted(graph.nodes)
            assert all(order[link.source] < order[link.target] for link in folded.links)
            assert {(link.source, link.target, link.kind) for link in folded.links} == {
                edge for edge in edges if edge[0] != edge[1]
            }


class TestLayout:
    @settings(deadline=None, max_examples=25)
    @given(graph=GRAPHS)
    def test_boxes_never_overlap_lines_lead_to_the_right_and_nothing_leaves_the_picture(self, graph: Graph) -> None:
        picture = layout(graph)
        for column in {placed.column for placed in picture.boxes}:
            stack = [placed for placed in picture.boxes if placed.column == column]

            assert len({placed.x for placed in stack}) == 1
            assert all(lower.y - upper.y >= HEIGHT for upper, lower in pairwise(stack))
        for line in picture.lines:
            source, target = picture.box_of[line.source], picture.box_of[line.target]

            assert source.column < target.column
            assert line.path.startswith(f"M{source.x + WIDTH} {source.y + HEIGHT // 2}")
            assert [int(number) for number in re.findall(r"-?\d+", line.path)][-1] in (
                target.y + HEIGHT // 2,
                target.x,
            )
        for placed in picture.boxes:
            assert placed.x >= 0
            assert placed.x + WIDTH <= picture.width
            assert 0 <= placed.y <= picture.height - HEIGHT

    def test_a_chain_is_a_straight_line(self) -> None:
        picture = layout(Graph([node("a"), node("b", "a"), node("c", "b")]))

        assert len({placed.y for placed in picture.boxes}) == 1
        assert not any("C" in line.path for line in picture.lines)

    def test_a_tree_has_no_crossing(self) -> None:
        leaves = [node(f"leaf{each}x", f"twig{each % 5}x") for each in range(15)]
        picture = layout(Graph([node("root"), *(node(f"twig{each}x", "root") for each in range(5)), *leaves]))
        ys = {placed.box.key: placed.y for placed in picture.boxes}
        ends = sorted((ys[line.source], ys[line.target]) for line in picture.lines if line.source != "root")

        assert [target for _, target in ends] == sorted(target for _, target in ends)

    def test_one_definition_has_one_picture(self) -> None:
        assert layout(random_graph(60, 7)) == layout(random_graph(60, 7))

    def test_kinds_of_edges_have_lines_of_their_own(self) -> None:
        picture = layout(Graph([node("a"), node("b", "a"), node("alarm", failure=("a", "b"))]))

        assert {(line.source, line.target, line.kind) for line in picture.lines} == {
            ("a", "b", Edge.SUCCESS),
            ("a", "alarm", Edge.FAILURE),
            ("b", "alarm", Edge.FAILURE),
        }


class TestCriticalPath:
    GRAPH = Graph([node("read"), node("quick", "read"), node("slow", "read"), node("merge", "quick", "slow")])

    def test_it_leads_through_the_parent_that_ended_last(self) -> None:
        spans = {
            "read": Span(0, 10, 100),
            "quick": Span(101, 110, 200),
            "slow": Span(101, 120, 900),
            "merge": Span(902, 910, 950),
        }

        assert critical_path(self.GRAPH, spans) == ("read", "slow", "merge")

    def test_while_a_run_goes_on_it_leads_to_what_runs_since_longest(self) -> None:
        spans = {"read": Span(0, 10, 100), "quick": Span(105, 110), "slow": Span(101, 120)}

        assert critical_path(self.GRAPH, spans) == ("read", "slow")

    def test_a_node_that_wanted_any_parent_was_released_by_the_first(self) -> None:
        graph = Graph([node("a"), node("b"), Node(key="c", type="t", depends_on=("a", "b"), join="any")])
        spans = {"a": Span(0, 1, 900), "b": Span(0, 1, 100), "c": Span(101, 102, 950)}

        assert critical_path(graph, spans) == ("b", "c")

    def test_a_run_of_which_nothing_is_known_has_none(self) -> None:
        assert critical_path(self.GRAPH, {}) == ()


class TestAxis:
    def test_moments_stand_where_their_share_of_the_time_is(self) -> None:
        line = axis([Span(0, 0, 1_000)], now=5_000)

        assert [line.place(at) for at in (0, 250, 1_000, 9_999)] == [0, 25, 100, 100]

    def test_what_goes_on_lasts_until_now(self) -> None:
        assert axis([Span(0, 0, None)], now=2_000).place(1_000) == 50

    def test_a_long_wait_in_which_nothing_runs_is_folded(self) -> None:
        line = axis([Span(0, 0, 1_000), Span(1_000, 3_601_000, 3_602_000)], now=3_602_000)

        assert [fold.ms for fold in line.folds] == [3_600_000]
        assert line.place(1_000) == pytest.approx(48)
        assert line.place(3_601_000) == pytest.approx(52)
        assert all(not 48 < tick.left < 52 for tick in line.ticks())

    def test_a_short_wait_is_shown_as_it_is(self) -> None:
        assert axis([Span(0, 0, 1_000), Span(1_000, 9_000, 10_000)], now=10_000).folds == ()

    @given(
        st.lists(st.tuples(*[st.integers(0, 10**8)] * 3).map(lambda three: Span(*sorted(three))), min_size=1),
        st.integers(0, 10**8),
    )
    def test_whatever_happened_later_is_further_right_and_ticks_are_few(self, spans: list[Span], now: int) -> None:
        line: Axis = axis(spans, now)
        moments = sorted({at for span in spans for at in (span.released, span.started, span.ended) if at is not None})
        places = [line.place(at) for at in moments]

        assert places == sorted(places)
        assert all(0 <= place <= 100 for place in places)
        assert 1 <= len(line.ticks()) <= 12
