"""Proof that a database is sound: history explains every row; rows agree with each other and the flow.

Runs are taken one by one from streams in the order of their ids: the largest run is all that is in memory.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlalchemy import func, select

from wfcelery.core.decide.draft import Event
from wfcelery.core.ids import definition_id
from wfcelery.core.state import LIVE
from wfcelery.errors import WfceleryError
from wfcelery.store import rows
from wfcelery.store.run_check import History, Problem, problems_of
from wfcelery.store.schema import (
    is_status,
    votes,
    workflow_definitions,
    workflow_events,
    workflow_steps,
    workflows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sqlalchemy import Connection, Row, Select

    from wfcelery.core.flow import Flow
    from wfcelery.core.state import Run

__all__ = ["Problem", "check"]

Rows: TypeAlias = "list[Row[Any]]"

AT_A_TIME: Final = 2_000
_runs = select(*rows.RUN, workflows.c.output).order_by(workflows.c.id)
_steps = workflow_steps.c
_of_steps = select(*rows.ATTEMPT, _steps.workflow_id, _steps.args, _steps.result).order_by(
    _steps.workflow_id, _steps.item, _steps.name, _steps.attempt
)
_of_events = select(workflow_events).order_by(workflow_events.c.workflow_id, workflow_events.c.seq)
_of_votes = select(votes).order_by(votes.c.workflow_id, votes.c.id)


def check(conn: Connection, flow_of: Callable[[str], Flow]) -> list[Problem]:
    """List everything that is wrong; a sound database gives an empty list. Use it inside `reading()`."""
    return list(chain(_of_definitions(conn), _of_keys(conn), _of_all_runs(conn, flow_of)))


def _of_definitions(conn: Connection) -> Iterator[Problem]:
    for row in _stream(conn, select(workflow_definitions)):
        if definition_id(row.name, row.document, row.pins) != row.id:
            yield Problem("", "definition-changed", f"definition {row.id} is not the digest of its document")


def _of_keys(conn: Connection) -> Iterator[Problem]:
    key = (workflows.c.key_space, workflows.c.key)
    live = (is_status(workflows, *LIVE), workflows.c.key_space.is_not(None))
    query = select(func.max(workflows.c.id), *key).where(*live).group_by(*key).having(func.count() > 1)
    for run_id, space, name in conn.execute(query):
        yield Problem(run_id, "key-taken-twice", f"more than one live run has the key {name} of {space}")


def _of_all_runs(conn: Connection, flow_of: Callable[[str], Flow]) -> Iterator[Problem]:
    steps = _Beside(_stream(conn, _of_steps), "orphan-step", "steps")
    events = _Beside(_stream(conn, _of_events), "orphan-event", "events")
    cast = _Beside(_stream(conn, _of_votes), "orphan-vote", "votes")
    for row in _stream(conn, _runs):
        for beside in (steps, events, cast):
            yield from beside.orphans_before(row.id)
        run = rows.run(row)
        history = History(
            run=run,
            input=row.input,
            output=row.output,
            steps=[(rows.attempt(step), step.args, step.result) for step in steps.of(row.id)],
            events=[_event(event) for event in events.of(row.id)],
            votes=[(vote.step, vote.attempt, vote.approve) for vote in cast.of(row.id)],
        )
        yield from _of_run(run, history, flow_of)
    for beside in (steps, events, cast):
        yield from beside.orphans_before(None)


def _of_run(run: Run, history: History, flow_of: Callable[[str], Flow]) -> Iterator[Problem]:
    try:
        flow = flow_of(run.definition_id)
    except WfceleryError as error:
        yield Problem(run.id, "no-definition", f"its definition cannot be used: {error}")
        return
    yield from problems_of(flow, history)


class _Beside:
    """A stream ordered by run, read in step with the runs; what belongs to none of them is an orphan."""

    def __init__(self, stream: Iterator[Row[Any]], code: str, what: str) -> None:
        self._stream = stream
        self._code = code
        self._what = what
        self._next = next(stream, None)

    def of(self, run_id: str) -> Rows:
        """Take the rows of one run."""
        taken: Rows = []
        while self._next is not None and self._next.workflow_id == run_id:
            taken.append(self._next)
            self._next = next(self._stream, None)
        return taken

    def orphans_before(self, run_id: str | None) -> Iterator[Problem]:
        """Pass by the rows that stand before `run_id` and belong to no run; None: all the rest."""
        while self._next is not None and (run_id is None or self._next.workflow_id < run_id):
            lost = str(self._next.workflow_id)
            count = len(self.of(lost))
            yield Problem(lost, self._code, f"there are {count} {self._what} of it, but no such run")


def _event(row: Row[Any]) -> Event:
    return Event(
        row.seq,
        row.at,
        row.type,
        row.step,
        row.item,
        row.attempt,
        row.actor,
        json.loads(row.data),
        row.transition,
    )


def _stream(conn: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    return iter(conn.execute(query, execution_options={"yield_per": AT_A_TIME}))
