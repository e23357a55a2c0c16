"""Flows: kept, and listed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field, JsonValue

from wfcelery.core.flow import Flow, Gate
from wfcelery.core.reading import read
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, NotFound
from wfcelery.mcp.fields import PAGE_BYTES, Asked, Cursor, Limit, Line, bounded, bounded_text
from wfcelery.mcp.shapes import Defined, DefinitionPage, DefinitionShown
from wfcelery.rights import Permission, Resource
from wfcelery.store import definitions
from wfcelery.store.times import iso

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.core.reading import Place
    from wfcelery.mcp.desk import Desk
    from wfcelery.store import Connection


class Define(Asked):
    """A flow."""

    flow: Annotated[
        JsonValue,
        Field(
            description="The flow: a document, or its text in YAML or JSON (then faults have lines). "
            "The resource wfcelery://guide explains the language, wfcelery://tools lists the tools."
        ),
    ]
    name: Annotated[Line | None, Field(description="The name of a flow that does not say it itself.")] = None


class ListDefinitions(Asked):
    """Which flows."""

    flow: Annotated[
        Line | None, Field(description="Only the flow of this name, with its whole document.")
    ] = None
    limit: Limit = 20
    cursor: Cursor | None = None


def define(desk: Desk, who: Principal, args: Define) -> Defined:
    """Keep a flow as the next version of its name, unless it is kept already."""
    document, place = _document(cast("Json", args.flow))
    known: set[str] = set()
    # Who may define nothing learns nothing of what a flow may refer to: the executor refuses it all.
    if desk.may(who, Permission.DEFINE):
        with desk.reading() as conn:
            desk.check(conn, document, args.name, place)
            known = {each.id for each in definitions.versions(conn, _name(document, args.name))}
    desk.quota.take(who)
    made = desk.workflows.define(document, name=args.name, by=who)
    with desk.reading() as conn:
        gates = gates_of(desk.flow_of(conn, made.id))
    written = _steps(document)
    return Defined(
        id=made.id,
        name=made.name,
        version=made.version,
        created=made.id not in known,
        gates=gates,
        added_gates=[each for each in gates if each not in written],
    )


def listing(desk: Desk, who: Principal, args: ListDefinitions) -> DefinitionPage:
    """List the flows that may be read, by name; or show one."""
    with desk.reading() as conn:
        if args.flow is not None:
            return DefinitionPage(items=[_one(desk, who, conn, args.flow)], next=None)
        after = "" if args.cursor is None else str(desk.read_cursor("definitions", args.cursor))
        found = [
            each
            for each in definitions.listing(conn)
            if each.name > after and desk.may(who, Permission.READ, Resource(flow=each.name))
        ]
        page = found[: args.limit]
        items = [_shown(desk, conn, each) for each in page]
    following = desk.write_cursor("definitions", page[-1].name) if len(found) > len(page) else None
    return DefinitionPage(items=items, next=following)


def gates_of(flow: Flow) -> list[str]:
    """Name the steps of a flow that wait for a person's approval."""
    return [name for name, step in flow.steps.items() if isinstance(step.action, Gate)]


def _one(desk: Desk, who: Principal, conn: Connection, name: str) -> DefinitionShown:
    found = definitions.find(conn, name, None) if name.isprintable() else None
    if found is None or not desk.may(who, Permission.READ, Resource(flow=found.name)):
        raise NotFound("definition", name, "workflow_list_definitions lists those that you may read")
    shown = _shown(desk, conn, found)
    return shown.model_copy(update={"document": bounded(json.loads(found.document), PAGE_BYTES)})


def _shown(desk: Desk, conn: Connection, one: definitions.Definition) -> DefinitionShown:
    flow = desk.flow_of(conn, one.id)
    schema = None if flow.input_schema is None else dict(flow.input_schema)
    return DefinitionShown(
        id=one.id,
        name=one.name,
        version=one.version,
        description=bounded_text(flow.description),
        input=cast("JsonValue", bounded(schema)),
        created_by=one.created_by,
        created_at=iso(one.created_at),
        document=None,
    )


def _document(flow: Json) -> tuple[Json, Place | None]:
    """Give a document, and where its parts stand in the text, if it was text."""
    if isinstance(flow, str):
        found = read(flow)
        return cast("Json", found.data), found.place
    if not isinstance(flow, Mapping):
        raise InvalidInput("flow", "must be a map, or text in YAML or JSON")
    return flow, None


def _name(document: Json, name: str | None) -> str:
    written = document.get("name") if isinstance(document, Mapping) and "steps" in document else None
    return written if isinstance(written, str) else name or ""


def _steps(document: Json) -> frozenset[str]:
    """Name the steps that a document has written."""
    if not isinstance(document, Mapping):
        return frozenset()
    steps = document.get("steps", document)
    return frozenset(steps) if isinstance(steps, Mapping) else frozenset()
