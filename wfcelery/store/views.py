"""Reading for people and programs: the documented objects, as JSON data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, literal, select, tuple_

from wfcelery.core.state import NO_ITEM
from wfcelery.core.values import canonical
from wfcelery.store import definitions as stored
from wfcelery.store.schema import workflow_definitions, workflow_events, workflow_steps, workflows
from wfcelery.store.times import iso

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sqlalchemy import Connection, RowMapping, Tuple

    from wfcelery.core.values import Json

_runs = workflows.c
_steps = workflow_steps.c
_events = workflow_events.c
RUN: Final = (
    _runs.id,
    _runs.name,
    workflow_definitions.c.version,
    _runs.status,
    _runs.input,
    _runs.output,
    _runs.error,
    _runs.created_by,
    _runs.key,
    _runs.tags,
    _runs.created_at,
    _runs.completed_at,
)
STEP: Final = (
    _steps.id,
    _steps.name,
    _steps.item,
    _steps.attempt,
    _steps.status,
    _steps.tool,
    _steps.args,
    _steps.result,
    _steps.error,
    _steps.ready_at,
    _steps.due_at,
    _steps.started_at,
    _steps.completed_at,
    _steps.worker,
)
WITH_DEFINITION = workflows.join(workflow_definitions, workflow_definitions.c.id == _runs.definition_id)
_JSON: Final = frozenset({"input", "output", "error", "tags", "args", "result", "data"})
_PAYLOADS: Final = frozenset({"input", "output"})
_TIMES: Final = frozenset({"at", "created_at", "ready_at", "due_at", "started_at", "completed_at"})


def run(conn: Connection, run_id: str) -> dict[str, Json] | None:
    """Show a run with all its steps, in the order in which they appeared."""
    found = (
        conn.execute(select(*RUN).select_from(WITH_DEFINITION).where(_runs.id == run_id)).mappings().first()
    )
    if found is None:
        return None
    steps = select(*STEP).where(_steps.workflow_id == run_id).order_by(_steps.position)
    return {**shown(found), "steps": [shown(row) for row in conn.execute(steps).mappings()]}


def runs(
    conn: Connection,
    *,
    status: str | Sequence[str] | None = None,
    name: str | None = None,
    key: str | None = None,
    created_by: str | None = None,
    tag: str | None = None,
    since: float | None = None,
    until: float | None = None,
    limit: int = 50,
    before: str | None = None,
    after: str | None = None,
    payloads: bool = True,
) -> list[dict[str, Json]]:
    """List runs without their steps, newest first: those that have one of the statuses and all the rest.

    `since` and `until` are the earliest and the latest start; `before` is the id of the last one of the page
    before, `after` that of the first one of the page after. Without `payloads` input and output are left out.
    """
    columns = [column for column in RUN if payloads or column.name not in _PAYLOADS]
    query = select(*columns).select_from(WITH_DEFINITION)
    if status:
        query = query.where(_runs.status.in_([status] if isinstance(status, str) else list(status)))
    if since is not None:
        query = query.where(_runs.created_at >= since)
    if until is not None:
        query = query.where(_runs.created_at <= until)
    wanted = {_runs.name: name, _runs.key: key, _runs.created_by: created_by}
    for column, value in wanted.items():
        if value is not None:
            query = query.where(column == value)
    if tag is not None:
        # A whole tag of the JSON text, with its quotes; LIKE would not tell cases apart on SQLite.
        query = query.where(func.replace(_runs.tags, canonical(tag), "") != _runs.tags)
    place = tuple_(_runs.created_at, _runs.id)
    if before is not None:
        query = query.where(place < _place_of(before))
    if after is not None:
        # The next ones up, which are the last of all that are newer.
        next_up = query.where(place > _place_of(after)).order_by(_runs.created_at, _runs.id).limit(limit)
        return [shown(row) for row in reversed(conn.execute(next_up).mappings().all())]
    newest = query.order_by(_runs.created_at.desc(), _runs.id.desc()).limit(limit)
    return [shown(row) for row in conn.execute(newest).mappings()]


def events(conn: Connection, run_id: str, *, after_seq: int = 0, limit: int = 1000) -> list[dict[str, Json]]:
    """List the history of a run after an event, oldest first. Events of the run itself name no step."""
    columns = (_events.seq, _events.at, _events.type, _events.step, _events.item, _events.attempt)
    query = select(*columns, _events.actor, _events.data).where(
        _events.workflow_id == run_id, _events.seq > after_seq
    )
    found = [shown(row) for row in conn.execute(query.order_by(_events.seq).limit(limit)).mappings()]
    return [
        {**event, "attempt": event["attempt"] or None, "actor": event["actor"] or None} for event in found
    ]


def definitions(conn: Connection) -> list[dict[str, Json]]:
    """List the newest version of every flow."""
    return [
        {
            "id": one.id,
            "name": one.name,
            "version": one.version,
            "created_by": one.created_by,
            "created_at": iso(one.created_at),
        }
        for one in stored.listing(conn)
    ]


def _place_of(run_id: str) -> Tuple:
    created = select(_runs.created_at).where(_runs.id == run_id).scalar_subquery()
    return tuple_(created, literal(run_id))


def shown(row: RowMapping) -> dict[str, Json]:
    """Write a row as the documented object."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Json:  # noqa: ANN401 -- a column of any type
    if name in _TIMES:
        return iso(value)
    if name in _JSON:
        parsed: Json = None if value is None else json.loads(value)
        return parsed
    if name == "item":
        return None if value == NO_ITEM else int(value)
    shown: Json = value
    return shown
