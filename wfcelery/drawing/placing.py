"""How far right each node stands: near what it is linked with, not too near to its neighbours, and straight.

Row by row, each node wishes to stand at the mean of those it is linked with in the row before. Wishes that
come too near to one another are settled by least squares, so that what is alike left and right stays so.
Between the sweeps, what is linked one to one is pulled straight wherever the neighbours leave the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from wfcelery.drawing.mesh import Links, Mesh

MOST_ROUNDS: Final = 8
WORK: Final = 40_000
"""The nodes that all rounds together may move."""

_BOX_GAP: Final = 24.0
_LINE_GAP: Final = 16.0
_LABEL_GAP: Final = 8.0
_STEP, _LINE, _LOOSE = 16.0, 8.0, 0.01


def rounds(nodes: int) -> int:
    """Say how often a picture of so many nodes is gone over."""
    return max(2, min(MOST_ROUNDS, WORK // max(1, nodes)))


def place(mesh: Mesh) -> list[float]:
    """Give the middle of each node."""
    xs = [0.0] * len(mesh.widths)
    offsets = [_offsets(mesh, row) for row in mesh.rows]
    where = {node: (number, index) for number, row in enumerate(mesh.rows) for index, node in enumerate(row)}
    for row, offset in zip(mesh.rows, offsets, strict=True):
        middle = offset[-1] / 2 if offset else 0.0
        for node, at in zip(row, offset, strict=True):
            xs[node] = at - middle
    blocks = _blocks(mesh)
    downwards, upwards = range(1, len(mesh.rows)), range(len(mesh.rows) - 2, -1, -1)
    # At first everything draws together; then only what belongs to one place alone follows it.
    early = ((mesh.road_ups, downwards), (mesh.road_downs, upwards))
    late = (
        (_owned(mesh, mesh.road_ups, mesh.road_downs), downwards),
        (_owned(mesh, mesh.road_downs, mesh.road_ups), upwards),
    )
    count = rounds(len(xs))
    for turn in range(count):
        for links, numbers in early if turn < count // 2 else late:
            for number in numbers:
                _settle(mesh, xs, mesh.rows[number], offsets[number], links)
            for block in blocks:
                _straighten(mesh, xs, block, where, offsets)
    return xs


def _owned(mesh: Mesh, links: Links, back: Links) -> Links:
    """Leave the links by which a node is pulled: to several others, or to one that has no other than it.

    A branch does not follow the fork above it: the fork stands amid its branches. What is loose follows its
    source.
    """
    is_down = links is mesh.road_ups
    return [
        others
        if len(others) > 1 or (others and back[others[0]] == [node]) or (is_down and node in mesh.loose)
        else []
        for node, others in enumerate(links)
    ]


def gap(mesh: Mesh, left: int, right: int) -> float:
    """Give the least distance between the middles of two neighbours."""
    between = _BOX_GAP
    if left in mesh.bends or right in mesh.bends:
        between = _LINE_GAP
    elif left in mesh.labels or right in mesh.labels:
        between = _LABEL_GAP
    return (mesh.widths[left] + mesh.widths[right]) / 2 + between


def _offsets(mesh: Mesh, row: Sequence[int]) -> list[float]:
    """Place a row as tightly as may be, from nought."""
    found: list[float] = []
    for index, node in enumerate(row):
        found.append(found[-1] + gap(mesh, row[index - 1], node) if index else 0.0)
    return found


def _settle(mesh: Mesh, xs: list[float], row: Sequence[int], offsets: Sequence[float], links: Links) -> None:
    """Move a row to where its nodes wish to be; who has no wish stays where it can.

    Less what must lie left of it, a node may never stand left of the one before: neighbours that wish to are
    pooled at their common mean, which is the least sum of squares.
    """
    pools: list[tuple[float, float, int]] = []
    for node, offset in zip(row, offsets, strict=True):
        others = links[node]
        wish = sum([xs[other] for other in others]) / len(others) if others else xs[node]
        weight = _weight(mesh, node)
        mean, count = wish - offset, 1
        while pools and pools[-1][0] > mean:
            before, heft, size = pools.pop()
            mean = (before * heft + mean * weight) / (heft + weight)
            weight += heft
            count += size
        pools.append((mean, weight, count))
    index = 0
    for mean, _, count in pools:
        for _ in range(count):
            xs[row[index]] = mean + offsets[index]
            index += 1


def _weight(mesh: Mesh, node: int) -> float:
    if node in mesh.loose:
        return _LOOSE
    return _STEP if node < len(mesh.steps) else _LINE


def _blocks(mesh: Mesh) -> list[list[int]]:
    """Find the runs of nodes that are linked one to one: chains of steps, and the bends of a long way."""
    following: dict[int, int] = {}
    for node, lower in enumerate(mesh.road_downs):
        if len(lower) == 1 and mesh.road_ups[lower[0]] == [node]:
            following[node] = lower[0]
    inner = set(following.values())
    found = []
    for node in following:
        if node not in inner:
            block = [node]
            while block[-1] in following:
                block.append(following[block[-1]])
            found.append(block)
    return found


def _straighten(
    mesh: Mesh,
    xs: list[float],
    block: Sequence[int],
    where: Mapping[int, tuple[int, int]],
    offsets: Sequence[Sequence[float]],
) -> None:
    """Put a block on one line, or on as few as the room beside it allows."""
    start = 0
    while start < len(block):
        low, high = float("-inf"), float("inf")
        end = start
        while end < len(block):
            number, index = where[block[end]]
            left, right = _room(xs, mesh.rows[number], offsets[number], index)
            left, right = max(low, left), min(high, right)
            if left > right:
                break
            low, high = left, right
            end += 1
        end = max(end, start + 1)
        run = block[start:end]
        line = _line(mesh, xs, run, low, high)
        for node in run:
            xs[node] = line
        start = end


def _line(mesh: Mesh, xs: Sequence[float], run: Sequence[int], low: float, high: float) -> float:
    """Give the line between `low` and `high` that a run likes best.

    With steps in it: where these stand. Bends alone: straight above their target, or else amid all that they
    are linked with.
    """
    steps = [xs[node] for node in run if node < len(mesh.steps)]
    if steps:
        return min(max(_median(steps), low), high)
    target = [xs[other] for other in mesh.downs[run[-1]] if low <= xs[other] <= high]
    if target:
        return target[0]
    inside = set(run)
    around = [
        xs[other] for node in run for other in (*mesh.ups[node], *mesh.downs[node]) if other not in inside
    ]
    return min(max(_median(around or [xs[run[0]]]), low), high)


def _room(
    xs: Sequence[float], row: Sequence[int], offsets: Sequence[float], index: int
) -> tuple[float, float]:
    """Say between which places a node may stand, its neighbours staying where they are."""
    here, at = xs[row[index]], offsets[index]
    left, right = float("-inf"), float("inf")
    # What touches its neighbour has its own place for room, whatever rounding says.
    if index:
        left = min(xs[row[index - 1]] + at - offsets[index - 1], here)
    if index + 1 < len(row):
        right = max(xs[row[index + 1]] - offsets[index + 1] + at, here)
    return left, right


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
