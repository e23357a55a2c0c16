"""Gates: those of a run, those that wait for somebody, and deciding them. No answer holds a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

from pydantic import Field

from wfcelery.core import values
from wfcelery.core.flow import Gate
from wfcelery.errors import NotFound
from wfcelery.insight import gates
from wfcelery.rights import Permission, Resource
from wfcelery.store import pages
from wfcelery.web.api import cursor
from wfcelery.web.api.access import repeated_command, run_of
from wfcelery.web.api.fields import Asked, Attempt, Cursor, Flag, Limit, Nothing, Plain, Prose
from wfcelery.web.api.operation import Call, Reply
from wfcelery.web.api.runs import MOST_BYTES

if TYPE_CHECKING:
    from typing import Any

    from wfcelery.core.values import Json
    from wfcelery.insight.gates import GateView
    from wfcelery.store import Connection

VIA: Final = "api"
MOST_SCANNED: Final = 2_000
_SCAN: Final = 100
_OWN: Final = ("input", "runs_next", "action_hash")
"""Of one gate only: in a list of all that wait they are left out."""


class GatesQuery(Asked):
    """Which page of a run's gates."""

    limit: Limit = 20
    cursor: Cursor | None = None


class ApprovalsQuery(Asked):
    """Which of the gates that wait: those that the asker can decide, or all that may be read."""

    mine: Flag = True
    limit: Limit = 50
    cursor: Cursor | None = None


class DecisionBody(Asked):
    """What somebody decides. With `attempt` only if no retry has opened the gate anew since that one."""

    decision: Literal["approve", "deny"]
    comment: Prose = ""
    form: Annotated[Plain, Field(description="The answers to the gate's form.")] = None
    attempt: Attempt | None = None


def of_run(call: Call[GatesQuery, None]) -> Reply:
    """Show the gates of a run that have opened, each at its newest attempt."""
    desk, query = call.desk, call.query
    items: list[Json] = []
    size, following = 0, None
    with desk.reading() as conn:
        run = run_of(call, conn)
        what = f"gates:{run.id}"
        first = 0 if query.cursor is None else int(cast("int", cursor.read(desk, what, query.cursor)))
        names = _gates_of(call, conn, run.id)
        for place, name in enumerate(names[first:], first):
            view = gates.gate(conn, desk.definitions, run.id, name)
            if view is None:
                continue
            shown = _shown(call, view)
            size += len(values.canonical(shown))
            if len(items) == query.limit or (items and size > MOST_BYTES):
                following = cursor.write(desk, what, place)
                break
            items.append(shown)
    return Reply({"items": items, "next": following})


def waiting(call: Call[ApprovalsQuery, None]) -> Reply:
    """List the gates that wait, the newest first."""
    desk, query = call.desk, call.query
    place = None if query.cursor is None else str(cursor.read(desk, "approvals", query.cursor))
    items: list[Json] = []
    scanned = 0
    with desk.reading() as conn:
        while scanned < MOST_SCANNED:
            found = gates.open_gates(conn, desk.definitions, _SCAN, place)
            if not found:
                return Reply({"items": items, "next": None})
            for view in found:
                scanned += 1
                shown = _listed(call, view)
                if shown is not None:
                    if len(items) == query.limit:
                        return Reply({"items": items, "next": cursor.write(desk, "approvals", place)})
                    items.append(shown)
                place = view.cursor
    return Reply({"items": items, "next": cursor.write(desk, "approvals", place)})


def decide(call: Call[Nothing, DecisionBody]) -> Reply:
    """Approve or deny a gate, as who asks."""
    body, step = call.body, call.part("step")
    with call.desk.reading() as conn:
        run = run_of(call, conn, Permission.DECIDE)
        if step not in _gates_of(call, conn, run.id):
            raise NotFound("gate", step, "`/runs/ID/gates` lists those of the run")
    said = call.desk.workflows.decide(
        run.id,
        step,
        approve=body.decision == "approve",
        comment=body.comment,
        form=body.form,
        attempt=body.attempt,
        by=call.who,
        via=VIA,
        command_id=repeated_command(call),
    )
    return Reply({name: said.get(name) for name in ("decided", "approved", "votes", "quorum")})


def _gates_of(call: Call[Any, Any], conn: Connection, run_id: str) -> list[str]:
    flow = call.desk.definitions.get(conn, pages.definition_of(conn, run_id)).flow
    return [name for name, step in flow.steps.items() if isinstance(step.action, Gate)]


def _listed(call: Call[ApprovalsQuery, None], view: GateView) -> dict[str, Json] | None:
    """Show a gate in the list; None if it is not for who asks."""
    shown = _shown(call, view)
    if call.query.mine and shown["objection"] is not None:
        return None
    if not any(
        call.desk.may(call.who, each, _resource(view)) for each in (Permission.READ, Permission.DECIDE)
    ):
        return None
    return {name: value for name, value in shown.items() if name not in _OWN}


def _shown(call: Call[Any, Any], view: GateView) -> dict[str, Json]:
    may_decide = call.desk.may(call.who, Permission.DECIDE, _resource(view))
    return {**view.as_json(), "objection": gates.objection_of(view, call.who, may_decide)}


def _resource(view: GateView) -> Resource:
    return Resource(view.flow.name, view.run.id, view.run.created_by)
