"""Flows: which there are, how each looks, and a form that starts one."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ruamel.yaml import YAML
from starlette.responses import RedirectResponse

from wfcelery.core import ids
from wfcelery.core.values import Json
from wfcelery.core.words import plain
from wfcelery.drawing.svg import svg
from wfcelery.errors import InvalidInput, NotFound, Refused
from wfcelery.executor.answers import new_run_id
from wfcelery.rights import Permission, Resource
from wfcelery.store import definitions as stored
from wfcelery.store import run_page
from wfcelery.web import forms
from wfcelery.web.doors import Door
from wfcelery.web.failures import status_of
from wfcelery.web.guard import desk_of, form_of, visitor_of
from wfcelery.web.pages.run import number
from wfcelery.web.rendering import path_to, render

if TYPE_CHECKING:
    from starlette.datastructures import ImmutableMultiDict
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.core.messages import Principal
    from wfcelery.store import Connection
    from wfcelery.store.definitions import Definition

PAGE: Final = 200
DAY_S: Final = 86_400.0
MOST_VERSIONS: Final = 50
LONGEST_KEY: Final = 200
MOST_TAGS: Final = 50
ANY: Final[Mapping[str, Json]] = {"type": "object", "description": "The input of the run, as JSON."}


def listing(request: Request) -> Response:
    """Show the newest version of every flow that the visitor may see, by name and a page at a time."""
    desk, who = desk_of(request), visitor_of(request).who
    after = request.query_params.get("after", "")
    with desk.reading() as conn:
        found = [
            each
            for each in stored.listing(conn)
            if each.name > after
            and (
                desk.may(who, Permission.READ, Resource(each.name))
                or desk.may(who, Permission.START, Resource(each.name))
            )
        ]
        counts = run_page.counts_since(conn, time.time() - DAY_S)
    page = found[:PAGE]
    return render(
        request,
        "definitions.html",
        found=page,
        counts=counts,
        described={each.name: _description(each) for each in page},
        following=page[-1].name if len(found) > PAGE else "",
        is_first=not after,
    )


def show(request: Request) -> Response:
    """Show one flow, with the form that starts it."""
    return _page(request)


def start(request: Request) -> Response:
    """Start a run, once for each form that was made, and lead to its page."""
    desk, form, who = desk_of(request), form_of(request), _who(request)
    with desk.reading() as conn:
        found = _found(request, conn)
        schema = desk.flow_of(conn, found.id).input_schema
    desk.require(who, Permission.START, Resource(found.name))
    value, errors = forms.value_from(ANY if schema is None else schema, form)
    try:
        tags = _tags(form.get("tags", ""))
        key = _key(form.get("key", ""))
    except InvalidInput as error:
        errors[error.path] = error.reason
        tags, key = (), None
    if errors:
        return _page(request, form, errors, "nothing was started: some of what was typed cannot be used")
    given = form.get("run_id", "")
    run_id = given if ids.is_run_id(given) else new_run_id(time.time())
    try:
        run = desk.workflows.start(
            f"{found.name}@{found.version}",
            {} if value is None else value,
            key=key,
            tags=tags,
            run_id=run_id,
            by=who,
        )
    except (InvalidInput, Refused) as error:
        return _page(request, form, {}, str(error), status_of(error))
    return RedirectResponse(path_to(request, "run", run_id=run.id), 303)


def _page(
    request: Request,
    typed: ImmutableMultiDict[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    message: str = "",
    status: int = 422,
) -> Response:
    desk, who = desk_of(request), visitor_of(request).who
    with desk.reading() as conn:
        found = _found(request, conn)
        versions = stored.versions(conn, found.name)[:MOST_VERSIONS]
        flow = desk.flow_of(conn, found.id)
    resource = Resource(found.name)
    told = errors or {}
    schema = ANY if flow.input_schema is None else flow.input_schema
    document = json.loads(found.document)
    return render(
        request,
        "definition.html",
        status=status if message else 200,
        found=found,
        newest=versions[0].version if versions else found.version,
        flow=flow,
        versions=versions,
        graph=svg(flow),
        yaml=_yaml(document),
        json=plain(json.dumps(document, ensure_ascii=False, indent=2)),
        fields=forms.fields_of(schema, typed, told),
        whole=told.get(forms.WHOLE, ""),
        errors=told,
        key="" if typed is None else typed.get("key", ""),
        tags="" if typed is None else typed.get("tags", ""),
        run_id=new_run_id(time.time()),
        may_start=desk.may(who, Permission.START, resource),
        message=message,
    )


def _description(definition: Definition) -> str:
    """Read what a flow says of itself; it need not be compiled for that."""
    document = json.loads(definition.document)
    return str(document.get("description") or "") if isinstance(document, dict) else ""


def _found(request: Request, conn: Connection) -> Definition:
    """Find the flow; one that may be neither read nor started is not there."""
    name, version = request.path_params["name"], number(request, "version", 0)
    found = stored.find(conn, name, version or None)
    desk, who = desk_of(request), visitor_of(request).who
    some = (Permission.READ, Permission.START)
    if found is None or not any(desk.may(who, each, Resource(found.name)) for each in some):
        raise NotFound("flow", f"{name}@{version}" if version else name)
    return found


def _who(request: Request) -> Principal:
    who = visitor_of(request).who
    if who is None:
        raise NotFound("page", request.url.path)
    return who


def _key(text: str) -> str | None:
    key = text.strip()
    if len(key) > LONGEST_KEY:
        raise InvalidInput("key", f"must have at most {LONGEST_KEY} characters")
    return key or None


def _tags(text: str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(tags) > MOST_TAGS:
        raise InvalidInput("tags", f"must be at most {MOST_TAGS}")
    return tags


def _yaml(document: Json) -> str:
    """Write a document as YAML, in the order in which it was kept."""
    writer = YAML()
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.width = 100
    out = io.StringIO()
    try:
        writer.dump(document, out)
    except (ValueError, RecursionError) as error:  # What YAML cannot write is still there as JSON.
        return f"# cannot be written as YAML: {error}\n"
    return plain(out.getvalue())


DOORS: Final = (
    Door("GET", "/flows", listing, "definitions", Permission.READ),
    Door("GET", "/flows/{name}", show, "definition", Permission.READ),
    Door("POST", "/flows/{name}", start, "start_run", Permission.START),
)
