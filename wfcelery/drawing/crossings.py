"""Who stands left of whom: in the order of the flow at first, then moved where fewer lines cross."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from wfcelery.drawing.mesh import Links, Mesh

MOST_SWEEPS: Final = 16
WORK: Final = 80_000
"""The links that all sweeps together may look at: a large picture is swept seldom."""


def sweeps(links: int) -> int:
    """Say how often a picture of so many links is swept."""
    return max(2, min(MOST_SWEEPS, WORK // max(1, links)))


def untangle(mesh: Mesh) -> None:
    """Put the nodes of each row into an order with few crossings; the same flow always gives the same."""
    _as_met(mesh)
    links = sum(map(len, mesh.downs))
    best, fewest = [list(row) for row in mesh.rows], crossings(mesh)
    for sweep in range(sweeps(links)):
        if fewest == 0:
            break
        downwards = sweep % 2 == 0
        _sweep(mesh, downwards=downwards, ties_turn=sweep % 4 > 1)
        count = crossings(mesh)
        if count < fewest:
            best, fewest = [list(row) for row in mesh.rows], count
    mesh.rows = best


def crossings(mesh: Mesh) -> int:
    """Count the pairs of lines that cross."""
    count = 0
    for upper, lower in pairwise(mesh.rows):
        place = {node: index for index, node in enumerate(lower)}
        ends = [place[other] for node in upper for other in sorted(mesh.downs[node], key=place.__getitem__)]
        count += _inversions(ends, len(lower))
    return count


def _as_met(mesh: Mesh) -> None:
    """Order each row as its nodes are met on the way down, the road first and what leaves it last."""
    row_of = {node: index for index, row in enumerate(mesh.rows) for node in row}
    rows: list[list[int]] = [[] for _ in mesh.rows]
    seen: set[int] = set()
    for root in (node for row in mesh.rows for node in row):
        todo = [root]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            rows[row_of[node]].append(node)
            todo += reversed(mesh.downs[node])
    mesh.rows = rows


def _sweep(mesh: Mesh, *, downwards: bool, ties_turn: bool) -> None:
    """Sort row after row by the mean place of the neighbours in the row before."""
    links: Links = mesh.ups if downwards else mesh.downs
    numbers = range(1, len(mesh.rows)) if downwards else range(len(mesh.rows) - 2, -1, -1)
    for number in numbers:
        before = mesh.rows[number - 1 if downwards else number + 1]
        place = {node: index for index, node in enumerate(before)}
        row = mesh.rows[number]
        if ties_turn:
            row = row[::-1]
        mesh.rows[number] = _sorted(row, place, links)


def _sorted(row: Sequence[int], place: dict[int, int], links: Links) -> list[int]:
    """Sort by mean place; who has no neighbour there keeps its own."""
    means = {node: sum(map(place.__getitem__, links[node])) / len(links[node]) for node in row if links[node]}
    moving = iter(sorted(means, key=means.__getitem__))
    return [next(moving) if node in means else node for node in row]


def _inversions(ends: Sequence[int], size: int) -> int:
    """Count the pairs that stand in the wrong order, with a tree of sums."""
    tree = [0] * (size + 1)
    count = 0
    for seen, end in enumerate(ends):
        index, not_after = end + 1, 0
        while index > 0:
            not_after += tree[index]
            index -= index & -index
        count += seen - not_after
        index = end + 1
        while index <= size:
            tree[index] += 1
            index += index & -index
    return count
