"""Whether a flow can work: every fault at once, each with its code, its place and what to do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from wfcelery.core.approval import ungated
from wfcelery.core.document import build, insert_gates
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.reading.place import Path, Place, nowhere
from wfcelery.core.validate.calls import check_flows, check_tools
from wfcelery.core.validate.references import check_references
from wfcelery.core.validate.subject import Subject
from wfcelery.core.validate.ways import check_ways
from wfcelery.errors import InvalidFlow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wfcelery.core.catalogue import FlowCatalogue, ToolCatalogue
    from wfcelery.core.faults import Fault
    from wfcelery.core.flow import Flow
    from wfcelery.core.values import Json

__all__ = ["check_flow", "gated", "validate"]


def validate(
    flow: Flow,
    *,
    tools: ToolCatalogue | None = None,
    flows: FlowCatalogue | None = None,
    place: Place | None = None,
    paths: Mapping[str, Path] | None = None,
    unsure: frozenset[str] = frozenset(),
    limits: Limits = DEFAULT,
    gates_follow: bool = False,
) -> list[Fault]:
    """List the faults of a flow. What is not given (tools, flows) is not checked.

    `paths` and `unsure` are those of the `Draft` that the flow comes from. `gates_follow`: the gates that its
    tools require and it leaves out will be inserted.
    """
    subject = Subject(flow, place or nowhere, paths or {}, unsure, limits)
    check_ways(subject)
    check_references(subject)
    if tools is not None:
        check_tools(subject, tools, gates_follow=gates_follow)
    if flows is not None:
        check_flows(subject, flows)
    return in_order(subject.faults)


def check_flow(
    data: object,
    *,
    place: Place | None = None,
    name: str | None = None,
    tools: ToolCatalogue | None = None,
    flows: FlowCatalogue | None = None,
    limits: Limits = DEFAULT,
) -> Flow:
    """Make a flow of `data`, or raise `InvalidFlow` with all faults: shape, graph, references, calls.

    The gates that its tools require and it leaves out are inserted, as `gated` does.
    """

    def checked(written: object, *, gates_follow: bool) -> Flow:
        draft = build(written, place=place, name=name, limits=limits)
        faults = list(draft.faults)
        if draft.flow is not None:
            faults += validate(
                draft.flow,
                tools=tools,
                flows=flows,
                place=place,
                paths=draft.paths,
                unsure=draft.unsure,
                limits=limits,
                gates_follow=gates_follow,
            )
        if faults or draft.flow is None:
            raise InvalidFlow(tuple(in_order(faults)))
        return draft.flow

    flow = checked(data, gates_follow=True)
    if tools is None or not ungated(flow, _needs(tools)):
        return flow
    return checked(gated(cast("Json", data), tools, limits=limits), gates_follow=False)


def gated(document: Json, tools: ToolCatalogue | None, *, limits: Limits = DEFAULT) -> Json:
    """Give the document with the gates that its tools require and it leaves out: that is what is kept."""
    return document if tools is None else insert_gates(document, _needs(tools), limits=limits)


def _needs(tools: ToolCatalogue) -> Callable[[str], bool]:
    return lambda name: name in tools and tools.requires_approval(name)


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """Put faults in the order of the text; those without a place come last."""
    return sorted(faults, key=lambda each: (each.line or math.inf, each.column or math.inf))
