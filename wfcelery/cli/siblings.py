"""The flows that a flow calls, found in the files beside it: each before those that call it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from wfcelery.cli.files import FaultyFile, FlowFile, beside, called, read_flow
from wfcelery.core.document import build
from wfcelery.core.faults import Fault

DEEPEST: Final = 10


def in_order(first: FlowFile) -> list[FlowFile]:
    """Give the files beside `first` that it calls, directly or not, in the order in which to define them.

    Flows that call one another in a circle, or nest too deep, are `FaultyFile`.
    """
    found: dict[Path, FlowFile] = {}

    def visit(file: FlowFile, above: tuple[Path, ...]) -> None:
        here = (*above, file.path.resolve())
        if len(here) > DEEPEST + 1:
            message = f"{first.own_name} has more than {DEEPEST} levels of flows below it"
            fault = Fault("subflow-too-deep", message, hint="flatten them")
            raise FaultyFile((fault,), str(first.path))
        for path in _siblings(file):
            if path.resolve() in here:
                circle = " → ".join(each.name for each in (*here[here.index(path.resolve()) :], path))
                hint = "a flow ends; use `retry` or `foreach` to repeat work"
                fault = Fault("subflow-cycle", f"these flows call one another: {circle}", hint=hint)
                raise FaultyFile((fault,), str(file.path))
            if path.resolve() not in found:
                sibling = read_flow(path)
                visit(sibling, here)
                found[path.resolve()] = sibling

    visit(first, ())
    return list(found.values())


def _siblings(file: FlowFile) -> list[Path]:
    draft = build(file.data, place=file.place, name=file.name)
    if draft.flow is None:
        return []
    # A version that is asked for is one that was kept before: only the database has it.
    return [
        path for name, version in called(draft.flow) if version is None and (path := beside(file.path, name))
    ]


class Beside:
    """The flows that a file may call: those beside it, and those that `otherwise` knows."""

    def __init__(
        self, file: FlowFile, otherwise: Callable[[str, int | None], tuple[str, int] | None]
    ) -> None:
        self._file = file
        self._otherwise = otherwise

    def find(self, name: str, version: int | None, /) -> tuple[str, int] | None:
        """Give a flow's id (for a file: its path) and how many levels it has, itself counted."""
        path = beside(self._file.path, name) if version is None else None
        if path is None:
            return self._otherwise(name, version)
        return str(path), _levels(read_flow(path), DEEPEST + 1)


def _levels(file: FlowFile, at_most: int) -> int:
    if at_most <= 1:
        return 1
    return 1 + max((_levels(read_flow(path), at_most - 1) for path in _siblings(file)), default=0)
