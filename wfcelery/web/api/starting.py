"""Starting runs, so that a repeat starts nothing twice."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from wfcelery.core import ids
from wfcelery.errors import InvalidInput, NotFound
from wfcelery.executor.definitions import MAX_DIGITS
from wfcelery.rights import Permission, Resource
from wfcelery.store import definitions
from wfcelery.web.api.access import REPEAT_HEADER, repeated_run, require_flow
from wfcelery.web.api.documents import checked_name, name_or_document
from wfcelery.web.api.fields import MOST_TAGS, Asked, Document, Line, Moment, Nothing, Plain, number
from wfcelery.web.api.operation import ROOT, Call, Reply

if TYPE_CHECKING:
    from wfcelery.store import Connection


class StartBody(Asked):
    """What to start. A document is defined on the way, which takes the permission to define."""

    flow: Annotated[
        Document, Field(description="A name, `name@version`, the id of a definition, or a document.")
    ]
    input: Plain = None
    key: Line | None = None
    tags: Annotated[list[Line], Field(default_factory=list, max_length=MOST_TAGS)]
    id: Annotated[
        str | None,
        Field(pattern=f"^[{ids.ALPHABET}]{{{ids.LENGTH}}}$", description="The id that the run shall have."),
    ] = None
    at: Annotated[Moment | None, Field(description="Its first step waits until then.")] = None
    on_conflict: Annotated[
        Literal["return", "error"],
        Field(description="What to do if a live run has the key: give that run, or refuse."),
    ] = "return"


def start(call: Call[Nothing, StartBody]) -> Reply:
    """Start a run, or find the one that this request has started before."""
    body, who = call.body, call.who
    named = repeated_run(call)
    if named is not None and body.id is not None:
        raise InvalidInput("id", f"names the run, and so does the header {REPEAT_HEADER}; give one of them")
    flow = name_or_document(body.flow)
    with call.desk.reading() as conn:
        if isinstance(flow, str):
            require_flow(call.desk, who, Permission.START, _name(conn, flow), flow)
        else:
            name = checked_name(call.desk, conn, flow, None)
            for permission in (Permission.DEFINE, Permission.START):
                call.desk.require(who, permission, Resource(flow=name))
    run = call.desk.workflows.start(
        flow if isinstance(flow, str) else flow.data,
        body.input,
        key=body.key,
        tags=body.tags,
        run_id=named or body.id,
        at=None if body.at is None else datetime.fromisoformat(body.at),
        by=who,
        on_conflict=body.on_conflict,
    )
    status = HTTPStatus.CREATED if run.created else HTTPStatus.OK
    path = f"{call.request.scope.get('root_path', '').rstrip('/')}{ROOT}/runs/{run.id}"
    return Reply({"id": run.id, "created": bool(run.created)}, status, {"Location": path})


def _name(conn: Connection, flow: str) -> str:
    """Give the name of the flow that is meant; one that is not there is not there for everybody."""
    name, _, written = flow.partition("@")
    version = number(written)
    found = None
    if not written or (version is not None and version < 10**MAX_DIGITS):
        found = definitions.find(conn, name, version)
    if found is None:
        found = definitions.get(conn, flow)
    if found is None or found.deleted_at is not None:
        raise NotFound("definition", flow)
    return found.name
