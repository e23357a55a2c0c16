"""Gates as people see them: what is asked, by whom, what runs then, who decides, what has happened so far.

One reading for every surface: the page behind a link, the console, the inbox, the API. Nobody is told here
how to decide: links are made elsewhere, and are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from wfcelery.core import values
from wfcelery.core.decide import gates as rules
from wfcelery.core.flow import Flow, Gate, Label, Step
from wfcelery.core.messages import Principal
from wfcelery.core.state import KEPT, Attempt, StepStatus, WaitsFor
from wfcelery.core.values import Json
from wfcelery.insight import gate_words
from wfcelery.insight.gate_view import TIMEOUT, Before, Coming, Ending, GateState, GateView
from wfcelery.store import gates as stored
from wfcelery.store.gates import GateEvent, GateRow, GateVote

if TYPE_CHECKING:
    from wfcelery.executor.definitions import Defined
    from wfcelery.store import Connection

__all__ = ["Definitions", "GateState", "GateView", "gate", "objection_of", "open_gates"]

_ENDS: Final = frozenset({"step_done", "step_failed", "step_cancelled"})
_AFTER: Final = frozenset({Label.NEXT, Label.JOIN, Label.PARALLEL, Label.IF, Label.ELSE})
_END_OF_TIME: Final = 253_402_300_800.0
"""The year 10000: no table holds a later moment."""


class Definitions(Protocol):
    """Where definitions are found; threads may share it only if it says so."""

    def get(self, conn: Connection, definition_id: str, /) -> Defined:
        """Give the definition of a run."""


def gate(
    conn: Connection,
    definitions: Definitions,
    run_id: str,
    step: str,
    attempt: int | None = None,
    *,
    describe: Callable[[str], str] = lambda _: "",
) -> GateView | None:
    """Read an attempt at a gate, the newest unless one is named; None if there is no such open or past gate.

    `describe` gives the words of a tool about itself.
    """
    row = stored.find(conn, run_id, step, attempt)
    if row is None:
        return None
    defined = definitions.get(conn, row.run.definition_id)
    meant = defined.flow.steps.get(step)
    if meant is None or not isinstance(meant.action, Gate):
        return None
    cast = stored.votes_of(conn, [run_id]).get(run_id, [])
    told = stored.events(conn, run_id, row.attempt)
    own = _with_ways(_own_votes(row.attempt, cast), told)
    coming = _coming(defined.flow, meant, row.shown, describe)
    return GateView(
        id=row.id,
        flow=defined.flow,
        version=defined.version,
        run=row.run._replace(votes=tuple(each.vote for each in own)),
        step=meant,
        gate=meant.action,
        attempt=row.attempt,
        state=_state(row),
        newest=stored.newest_attempt(conn, run_id, step),
        opened_at=next((each.at for each in told if each.type == "gate_opened"), row.attempt.ready_at),
        votes=own,
        ending=_ending(row, own, told),
        shown=row.shown,
        coming=coming,
        digest=_digest(row, coming),
        past=gate_words.past(stored.past(conn, run_id), row.attempt, defined.flow, cast),
        before=_before(conn, definitions, row, meant.action),
    )


def open_gates(
    conn: Connection, definitions: Definitions, limit: int = 50, before: str | None = None
) -> list[GateView]:
    """List the gates that wait, newest first; `before` is the `cursor` of the last one of the page before."""
    found = stored.waiting(conn, limit, read_cursor(before))
    cast = stored.votes_of(conn, sorted({row.run.id for row in found}))
    views = []
    for row in found:
        defined = definitions.get(conn, row.run.definition_id)
        step = defined.flow.steps[row.attempt.name]
        if not isinstance(step.action, Gate) or _state(row) is not GateState.OPEN:
            continue
        own = _own_votes(row.attempt, cast.get(row.run.id, ()))
        views.append(
            GateView(
                id=row.id,
                flow=defined.flow,
                version=defined.version,
                run=row.run._replace(votes=tuple(each.vote for each in own)),
                step=step,
                gate=step.action,
                attempt=row.attempt,
                state=GateState.OPEN,
                newest=row.attempt.attempt,
                opened_at=row.attempt.ready_at,
                votes=own,
            )
        )
    return views


def read_cursor(text: str | None) -> tuple[float, str] | None:
    """Read the place of a gate in the list; what is none means the beginning."""
    moment, _, step_id = (text or "").partition("~")
    try:
        at = float(moment)
    except ValueError:
        return None
    return (at, step_id) if 0 <= at < _END_OF_TIME else None


def objection_of(view: GateView, who: Principal, may_decide: bool) -> str | None:  # noqa: FBT001 - a plain predicate
    """Say why somebody cannot decide the gate now; None if they can."""
    if not view.is_open:
        return gate_words.state(view.attempt.name, view.state.value, view.ending)
    objected = rules.objection_to(view.flow, view.gate, view.run, view.attempt, who)
    if objected is not None:
        return objected.reason
    if not may_decide:
        return f"{who.id} may not decide gates of {view.flow.name}: the permission `decide` is missing"
    return None


def _state(row: GateRow) -> GateState:
    attempt = row.attempt
    if attempt.status is StepStatus.PENDING and attempt.waits_for is WaitsFor.APPROVAL and row.run.is_live:
        return GateState.OPEN
    if attempt.status is StepStatus.DONE:
        denied = (attempt.took or "").removeprefix(KEPT) == Label.DENY.value
        return GateState.DENIED if denied else GateState.APPROVED
    if attempt.status is StepStatus.FAILED and attempt.error is not None and attempt.error.type == "denied":
        return GateState.DENIED
    return GateState.CANCELLED


def _own_votes(attempt: Attempt, cast: Sequence[GateVote]) -> tuple[GateVote, ...]:
    place = (attempt.name, attempt.attempt)
    return tuple(each for each in cast if (each.vote.step, each.vote.attempt) == place)


def _with_ways(own: Sequence[GateVote], told: Sequence[GateEvent]) -> tuple[GateVote, ...]:
    """Add to each vote through which door it came: the history says it."""
    ways = {each.actor: str(each.data.get("via", "")) for each in told if each.type == "vote_cast"}
    return tuple(GateVote(each.vote, each.at, ways.get(each.vote.voter, "")) for each in own)


def _ending(row: GateRow, own: Sequence[GateVote], told: Sequence[GateEvent]) -> Ending | None:
    state = _state(row)
    if state is GateState.OPEN:
        return None
    last = next((each for each in reversed(told) if each.type in _ENDS), None)
    actor = "" if last is None else last.actor
    at = row.attempt.completed_at if last is None else last.at
    if state is GateState.CANCELLED:
        error = row.run.error
        return Ending((), at, "" if error is None else error.message)
    if actor == TIMEOUT:
        return Ending((TIMEOUT,), at)
    approved = state is GateState.APPROVED
    deciding = [each.vote for each in own if each.vote.approve is approved]
    by = tuple(vote.voter for vote in deciding) or ((actor,) if actor else ())
    return Ending(by, at, deciding[-1].comment if deciding else "")


def _coming(flow: Flow, gate: Step, shown: Json, describe: Callable[[str], str]) -> tuple[Coming, ...]:
    frozen = shown if isinstance(shown, Mapping) else {}
    found = []
    for edge in gate.edges:
        if edge.label not in _AFTER:
            continue
        step = flow.steps[edge.target]
        kind, what = gate_words.does(step)
        seen = frozen.get(step.name)
        found.append(
            Coming(
                step=step.name,
                kind=kind,
                what=what,
                description=step.description,
                about_tool=describe(what) if kind == "tool" else "",
                args=seen.get("args") if isinstance(seen, Mapping) else None,
                is_frozen=isinstance(seen, Mapping),
                when=gate_words.when(gate, edge),
            )
        )
    return tuple(found)


def _digest(row: GateRow, coming: Sequence[Coming]) -> str:
    action: Json = {
        "definition": row.run.definition_id,
        "gate": row.attempt.name,
        "runs": [
            {
                "step": each.step,
                "kind": each.kind,
                "what": each.what,
                "args": each.args,
                "frozen": each.is_frozen,
            }
            for each in coming
        ],
    }
    return values.digest(values.canonical(action))


def _before(conn: Connection, definitions: Definitions, row: GateRow, gate: Gate) -> Before | None:
    """Compare with the last approval, if the same people were asked then: others may not know of it.

    Where nothing is filled in beforehand there is nothing to compare: two unknowns are not the same.
    """
    if not row.shown:
        return None
    for each in stored.approved_before(conn, row):
        defined = definitions.get(conn, each.definition_id)
        step = defined.flow.steps.get(row.attempt.name)
        if step is None or not isinstance(step.action, Gate) or step.action.approvers != gate.approvers:
            continue
        changes, others = gate_words.changes(each.shown, row.shown)
        return Before(each.run_id, defined.version, each.at, changes, others)
    return None
