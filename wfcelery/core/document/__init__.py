"""From plain data to a `Flow`.

Reading order: `build` (the whole document) → `spec` (the shape) → `steps` and `actions` (one step).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from wfcelery.core.document.build import Draft, build
from wfcelery.core.document.insertion import insert_gates
from wfcelery.core.flow import Flow, Foreach, Step, SubFlow
from wfcelery.core.graph import flow_references
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.reading import Place, faults_of_values
from wfcelery.errors import InvalidFlow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfcelery.core.values import Json

__all__ = ["Draft", "build", "canonical_document", "compile_flow", "flow_references", "insert_gates", "pin"]


def compile_flow(
    data: object, *, place: Place | None = None, name: str | None = None, limits: Limits = DEFAULT
) -> Flow:
    """Make a flow of `data`, or raise `InvalidFlow` with every fault of its shape.

    `name` is used where the document has none.
    """
    draft = build(data, place=place, name=name, limits=limits)
    if draft.faults or draft.flow is None:
        raise InvalidFlow(draft.faults)
    return draft.flow


def canonical_document(data: object, *, limits: Limits = DEFAULT) -> Json:
    """Give the document as it was written, known to be plain JSON: what a definition is addressed by."""
    faults = faults_of_values(data, limits=limits)
    if faults:
        raise InvalidFlow(tuple(faults))
    return cast("Json", data)


def pin(flow: Flow, definitions: Mapping[tuple[str, int | None], str]) -> Flow:
    """Fix each sub-flow to the definition it means today; unknown ones stay as they are."""

    def pinned(body: SubFlow) -> SubFlow:
        found = definitions.get((body.name, body.version), body.definition_id)
        return replace(body, definition_id=found)

    def renewed(step: Step) -> Step:
        match step.action:
            case SubFlow():
                return replace(step, action=pinned(step.action))
            case Foreach(body=SubFlow() as body):
                return replace(step, action=replace(step.action, body=pinned(body)))
            case _:
                return step

    return replace(flow, steps={name: renewed(step) for name, step in flow.steps.items()})
