"""Definitions: listed, shown, made, checked, put out of use."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from wfcelery.errors import InvalidInput, NotFound
from wfcelery.executor.definitions import MAX_DIGITS
from wfcelery.rights import Permission, Resource
from wfcelery.store import definitions
from wfcelery.store.times import iso
from wfcelery.web.api import cursor
from wfcelery.web.api.access import require_flow
from wfcelery.web.api.documents import checked, checked_name, document
from wfcelery.web.api.fields import Asked, Cursor, Document, Limit, Line, Nothing, Version, number
from wfcelery.web.api.operation import Call, Reply

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.store import Connection


class DefinitionsQuery(Asked):
    """Which page of the definitions."""

    limit: Limit = 50
    cursor: Cursor | None = None


class DefinitionQuery(Asked):
    """Which version; the newest, if it is left out."""

    version: Version | None = None


class DefineBody(Asked):
    """A flow."""

    flow: Annotated[Document, Field(description="A document, or its text in YAML or JSON.")]
    name: Annotated[Line | None, Field(description="The name of a flow that does not say it itself.")] = None


def listing(call: Call[DefinitionsQuery, None]) -> Reply:
    """List the flows that may be read, by name."""
    query, desk = call.query, call.desk
    after = "" if query.cursor is None else str(cursor.read(desk, "definitions", query.cursor))
    with desk.reading() as conn:
        known = definitions.listing(conn)
    found = [
        each
        for each in known
        if each.name > after and desk.may(call.who, Permission.READ, Resource(flow=each.name))
    ]
    page = found[: query.limit]
    following = cursor.write(desk, "definitions", page[-1].name) if len(found) > len(page) else None
    return Reply({"items": [_listed(each) for each in page], "next": following})


def one(call: Call[DefinitionQuery, None]) -> Reply:
    """Show a version of a flow."""
    name, _, written = call.part("name").partition("@")
    with call.desk.reading() as conn:
        if written and call.query.version is not None:
            raise InvalidInput("query.version", "is given twice: it stands in the path, too")
        version = _version(written) if written else call.query.version
        found = _find(conn, name, version)
        require_flow(call.desk, call.who, Permission.READ, found.name, _spelled(name, version))
        versions = [each.version for each in definitions.versions(conn, found.name)]
    return Reply({**_listed(found), "document": json.loads(found.document), "versions": versions})


def define(call: Call[Nothing, DefineBody]) -> Reply:
    """Keep a flow as the next version of its name, unless it is kept already."""
    flow = document(call.body.flow)
    with call.desk.reading() as conn:
        name = checked_name(call.desk, conn, flow, call.body.name)
        call.desk.require(call.who, Permission.DEFINE, Resource(flow=name))
        known = {each.id for each in definitions.versions(conn, name)}
    made = call.desk.workflows.define(flow.data, name=call.body.name, by=call.who)
    status = HTTPStatus.OK if made.id in known else HTTPStatus.CREATED
    return Reply({"id": made.id, "name": made.name, "version": made.version}, status)


def validate(call: Call[Nothing, DefineBody]) -> Reply:
    """Say of a flow what defining it would say; nothing is kept."""
    flow = document(call.body.flow)
    with call.desk.reading() as conn:
        name = checked(call.desk.settings, conn, flow, call.body.name).name
    call.desk.require(call.who, Permission.DEFINE, Resource(flow=name))
    return Reply({"name": name, "faults": []})


def retire(call: Call[Nothing, None]) -> Reply:
    """Put a version of a flow out of use; its runs go on."""
    name, version = call.part("name"), _version(call.part("version"))
    with call.desk.reading() as conn:
        found = _find(conn, name, version)
        require_flow(call.desk, call.who, Permission.DEFINE, found.name, _spelled(name, version))
    gone = call.desk.workflows.retire(f"{name}@{version}", by=call.who)
    return Reply({"id": gone.id, "name": gone.name, "version": gone.version})


def _find(conn: Connection, name: str, version: int | None) -> definitions.Definition:
    found = definitions.find(conn, name, version) if name.isprintable() else None
    if found is None:
        raise NotFound("definition", _spelled(name, version))
    return found


def _spelled(name: str, version: int | None) -> str:
    return name if version is None else f"{name}@{version}"


def _version(text: str) -> int:
    found = number(text)
    if found is None or found >= 10**MAX_DIGITS:
        raise NotFound("definition", f"of version {text[:40]}", "a version is a number, as in order@3")
    return found


def _listed(one: definitions.Definition) -> dict[str, Json]:
    return {
        "id": one.id,
        "name": one.name,
        "version": one.version,
        "created_by": one.created_by,
        "created_at": iso(one.created_at),
    }
