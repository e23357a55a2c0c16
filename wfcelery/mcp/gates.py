"""Gates: those of a run that wait, and deciding them. No answer holds a link."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import Field, JsonValue

from wfcelery.core.values import Json
from wfcelery.errors import NotFound
from wfcelery.insight.gate_view import GateView
from wfcelery.insight.gates import gate, objection_of
from wfcelery.mcp.definitions import gates_of
from wfcelery.mcp.desk import resource_of
from wfcelery.mcp.fields import Asked, Line, Plain, Prose, RunId, bounded, bounded_text
from wfcelery.mcp.shapes import Decision, GateShown
from wfcelery.rights import Permission
from wfcelery.store import pages
from wfcelery.store.times import iso

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.mcp.desk import Desk
    from wfcelery.store import Connection

VIA: Final = "mcp"
MOST_GATES: Final = 20


class Decide(Asked):
    """Which gate, and what is said. Only a person decides: with an agent's token it is refused."""

    run_id: RunId
    step: Annotated[Line, Field(description="The gate, as `gates` of workflow_status names it.")]
    comment: Prose = ""
    form: Annotated[Plain, Field(description="The answers to the gate's form.")] = None
    attempt: Annotated[
        int | None,
        Field(ge=1, le=2**31 - 1, description="Only if no retry has opened the gate anew since this one."),
    ] = None


def approve(desk: Desk, who: Principal, args: Decide) -> Decision:
    """Approve a gate, as who calls."""
    return _decide(desk, who, args, approve=True)


def deny(desk: Desk, who: Principal, args: Decide) -> Decision:
    """Deny a gate, as who calls."""
    return _decide(desk, who, args, approve=False)


def waiting(
    desk: Desk, conn: Connection, who: Principal, run: pages.Place, steps: Iterable[str]
) -> list[GateShown]:
    """Show those of these steps that are gates of the run and wait."""
    found = (gate(conn, desk, run.id, step) for step in dict.fromkeys(steps))
    may_decide = desk.may(who, Permission.DECIDE, resource_of(run))
    return [_shown(view, who, may_decide=may_decide) for view in found if view is not None and view.is_open]


def _decide(desk: Desk, who: Principal, args: Decide, *, approve: bool) -> Decision:
    """Ask the executor, who judges whether this is theirs to decide, and writes down that they have asked."""
    with desk.reading() as conn:
        run = desk.run_of(conn, who, args.run_id)
        known = gates_of(desk.flow_of(conn, pages.definition_of(conn, run.id)))
    if args.step not in known:
        raise NotFound(
            "gate", args.step, f"the gates of this flow: {', '.join(known[:MOST_GATES]) or 'none'}"
        )
    said = desk.workflows.decide(
        run.id,
        args.step,
        approve=approve,
        comment=args.comment,
        form=cast("Json", args.form),
        attempt=args.attempt,
        by=who,
        via=VIA,
    )
    return Decision.model_validate(
        {name: said.get(name) for name in ("decided", "approved", "votes", "quorum")}
    )


def _shown(view: GateView, who: Principal, *, may_decide: bool) -> GateShown:
    form = None if view.gate.form is None else dict(view.gate.form)
    return GateShown(
        step=view.step.name,
        attempt=view.attempt.attempt,
        description=bounded_text(view.step.description),
        approvers=list(view.approvers),
        quorum=view.gate.quorum,
        votes=len(view.votes),
        require_comment=view.gate.require_comment,
        form=cast("JsonValue", bounded(form)),
        deadline=iso(view.deadline),
        objection=objection_of(view, who, may_decide),
    )
