"""Boxes never overlap, every edge gets where it leads, columns are straight, large flows stay affordable."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given

from tests.drawing.shapes import ORDER, chain, complete, fan, flow_of, graph_of, graphs, tangle
from wfcelery.core.flow import Edge, Flow, Label
from wfcelery.drawing import crossings, mesh, placing
from wfcelery.drawing.layers import layers
from wfcelery.drawing.layout import LABEL_HEIGHT, Box, Layout, Route, layout

WIDTH = 150.0
SILENT = (Label.NEXT, Label.JOIN, Label.PARALLEL)


def label_widths(flow: Flow) -> dict[Edge, float]:
    edges = [edge for step in flow.steps.values() for edge in step.edges]
    return {edge: 30.0 + 20 * (edge.index % 4) for edge in edges if edge.label not in SILENT}


def laid_out(flow: Flow) -> Layout:
    return layout(flow, WIDTH, label_widths(flow))


def overlap(one: Box, other: Box) -> bool:
    across = one.x < other.x + other.width and other.x < one.x + one.width
    return across and one.y < other.y + other.height and other.y < one.y + one.height


def labels(flow: Flow, drawn: Layout) -> list[Box]:
    widths = label_widths(flow)
    return [
        Box(x - widths[route.edge] / 2, y - LABEL_HEIGHT / 2, widths[route.edge], LABEL_HEIGHT)
        for route in drawn.routes
        if route.label is not None and not route.beside
        for x, y in [route.label]
    ]


def strokes(route: Route) -> list[Box]:
    """Give what each part of a route covers at most: a curve stays within its two ends."""
    return [
        Box(min(x0, x1), min(y0, y1), abs(x1 - x0) + 0.01, abs(y1 - y0))
        for (x0, y0), (x1, y1) in pairwise(route.points)
    ]


def middles(drawn: Layout) -> dict[str, float]:
    return {name: box.middle for name, box in drawn.boxes.items()}


@given(graphs())
def test_no_box_and_no_label_overlaps_another(flow: Flow) -> None:
    drawn = laid_out(flow)
    boxes = [*drawn.boxes.values(), *labels(flow, drawn)]
    assert [pair for pair in combinations(boxes, 2) if overlap(*pair)] == []


@given(graphs())
def test_every_edge_goes_from_its_source_to_its_target_and_through_no_box(flow: Flow) -> None:
    drawn = laid_out(flow)
    wanted = [edge for step in flow.steps.values() for edge in step.edges]
    assert sorted(map(repr, wanted)) == sorted(repr(route.edge) for route in drawn.routes)
    for route in drawn.routes:
        source, target = drawn.boxes[route.edge.source], drawn.boxes[route.edge.target]
        assert route.points[0] == pytest.approx((source.middle, source.y + source.height), abs=0.1)
        assert route.points[-1] == pytest.approx((target.middle, target.y), abs=0.1)
        assert all(one[1] <= other[1] for one, other in pairwise(route.points))
        hit = [
            name
            for part in strokes(route)
            for name, box in drawn.boxes.items()
            if part.height and overlap(part, box)
        ]
        assert hit == []


@given(graphs())
def test_everything_lies_within_the_picture(flow: Flow) -> None:
    drawn = laid_out(flow)
    for box in [*drawn.boxes.values(), *labels(flow, drawn)]:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= drawn.width
        assert box.y + box.height <= drawn.height


@given(graphs())
def test_the_same_flow_gives_the_same_picture(flow: Flow) -> None:
    assert laid_out(flow) == laid_out(flow)


def test_a_chain_is_one_straight_column_no_wider_than_its_boxes() -> None:
    drawn = laid_out(chain(30))
    assert len(set(middles(drawn).values())) == 1
    assert drawn.width <= WIDTH + 40
    assert all(len(route.points) == 2 for route in drawn.routes)


def test_an_error_handler_beside_a_chain_leaves_the_chain_straight() -> None:
    pairs = [(0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (2, 4)]
    drawn = laid_out(graph_of(5, pairs, {1: Label.ERROR, 3: Label.ERROR, 5: Label.ERROR}))
    found = middles(drawn)
    assert len({found[name] for name in ("s0", "s1", "s2", "s3")}) == 1
    assert found["s4"] > found["s0"]


def test_a_way_that_cuts_a_chain_short_leaves_the_chain_straight() -> None:
    assert len(set(middles(laid_out(graph_of(4, [(0, 1), (1, 2), (2, 3), (0, 3)]))).values())) == 1


@pytest.mark.parametrize("count", [2, 3, 4, 12])
def test_parallel_branches_lie_evenly_about_the_steps_that_part_and_join_them(count: int) -> None:
    found = middles(laid_out(fan(count)))
    first, last = found["s0"], found[f"s{count + 1}"]
    branches = [found[f"s{number}"] for number in range(1, count + 1)]
    assert first == pytest.approx(last, abs=0.1)
    gaps = [other - one for one, other in pairwise(branches)]
    assert [x - first for x in branches] == pytest.approx([first - x for x in reversed(branches)], abs=0.2)
    assert gaps == pytest.approx([gaps[0]] * len(gaps), abs=0.2)


def test_nested_parallel_blocks_are_each_even() -> None:
    inner = [(0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (3, 6), (4, 6), (5, 6), (2, 7), (2, 8), (7, 9), (8, 9)]
    found = middles(laid_out(graph_of(11, [*inner, (6, 10), (9, 10)])))
    for parted, joined, branches in ((1, 6, (3, 4, 5)), (2, 9, (7, 8)), (0, 10, (1, 2))):
        middle = (found[f"s{branches[0]}"] + found[f"s{branches[-1]}"]) / 2
        assert found[f"s{parted}"] == pytest.approx(middle, abs=0.2)
        assert found[f"s{joined}"] == pytest.approx(middle, abs=0.2)


def test_two_branches_fit_on_a_phone() -> None:
    assert layout(fan(2), 152.0, {}).width <= 360


def test_a_tree_is_drawn_without_crossings() -> None:
    pairs = [((number - 1) // 3, number) for number in range(1, 40)]
    net = mesh.mesh(layers(graph_of(40, pairs)), WIDTH, {})
    crossings.untangle(net)
    assert crossings.crossings(net) == 0


def test_crossings_that_the_order_of_the_flow_has_are_undone() -> None:
    net = mesh.mesh(layers(graph_of(7, [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4)])), WIDTH, {})
    crossings.untangle(net)
    assert crossings.crossings(net) == 0


def test_steps_on_a_cycle_are_drawn_with_the_way_back_at_the_side() -> None:
    drawn = laid_out(graph_of(3, [(0, 1), (1, 2), (2, 1)]))
    assert [route.edge.id for route in drawn.routes if route.beside] == ["parallel:0"]
    assert len(drawn.boxes) == 3


def test_no_steps_give_an_empty_picture() -> None:
    assert laid_out(graph_of(0, [])).boxes == {}


def test_the_flow_of_every_kind_has_its_boxes_and_routes() -> None:
    flow = flow_of(ORDER)
    drawn = laid_out(flow)
    assert set(drawn.boxes) == set(flow.steps)
    assert len(drawn.routes) == sum(len(step.edges) for step in flow.steps.values())


LARGE = {
    "a chain of 1,000": chain(1_000),
    "a fan of 200": fan(200),
    "each of 60 to each": complete(60),
    "1,000 steps with 10,000 edges": tangle(1_000, 10_000),
}


@pytest.mark.parametrize("flow", LARGE.values(), ids=LARGE.keys())
def test_the_work_on_a_large_flow_is_bounded(flow: Flow) -> None:
    edges = sum(len(step.edges) for step in flow.steps.values())
    net = mesh.mesh(layers(flow), WIDTH, {})
    nodes = sum(map(len, net.rows))
    links = sum(map(len, net.downs))
    assert nodes <= len(flow.steps) + mesh.MOST_BENDS
    assert links <= edges + mesh.MOST_BENDS
    assert sum(len(trail) for _, trail in net.trails) <= mesh.MOST_PASSED + edges
    assert crossings.sweeps(links) * links <= max(crossings.WORK, 2 * links)
    assert placing.rounds(nodes) * nodes <= max(placing.WORK, 2 * nodes)
    assert len(net.trails) + len(net.beside) == edges


@pytest.mark.parametrize("flow", LARGE.values(), ids=LARGE.keys())
def test_a_large_flow_is_laid_out_whole(flow: Flow) -> None:
    drawn = laid_out(flow)
    assert len(drawn.routes) == sum(len(step.edges) for step in flow.steps.values())
    rows: dict[float, list[float]] = {}
    for box in drawn.boxes.values():
        rows.setdefault(box.y, []).append(box.x)
    assert all(other - one >= WIDTH for xs in rows.values() for one, other in pairwise(sorted(xs)))


def test_a_step_that_only_side_ways_lead_to_does_not_push_the_road_aside() -> None:
    pairs = [(0, 1), (0, 3), (1, 2), (1, 3), (2, 4), (2, 3)]
    drawn = laid_out(graph_of(5, pairs, {1: Label.ON, 3: Label.DENY, 5: Label.DENY}))
    found = middles(drawn)
    assert len({found[name] for name in ("s0", "s1", "s2", "s4")}) == 1


def test_ways_to_one_step_share_one_line() -> None:
    pairs = [(number, number + 1) for number in range(9)] + [(number, 10) for number in range(9)]
    net = mesh.mesh(layers(graph_of(11, pairs, dict.fromkeys(range(9, 18), Label.ERROR))), WIDTH, {})
    assert len(net.bends) == 8
