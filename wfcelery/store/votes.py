"""Votes at gates: one per person and attempt, for ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select

from wfcelery.core.state import Vote
from wfcelery.core.values import canonical
from wfcelery.store import statements
from wfcelery.store.schema import votes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from wfcelery.core.effects import CastVote

_COLUMNS = ("workflow_id", "step", "attempt", "voter", "approve", "comment", "form", "at")
_of_runs = select(votes).where(votes.c.workflow_id.in_(bindparam("ids", expanding=True))).order_by(votes.c.id)


def put_many(conn: Connection, cast: Sequence[CastVote], *, now: float) -> None:
    """Write votes, in this order."""
    rows = [
        (one.run_id, one.step, one.attempt, one.voter, one.approve, one.comment, canonical(one.form), now)
        for one in cast
    ]
    statements.insert(conn, votes, _COLUMNS, rows)


def of_runs(conn: Connection, run_ids: Sequence[str]) -> dict[str, tuple[Vote, ...]]:
    """Read the votes of runs, in the order in which they were cast."""
    found: dict[str, tuple[Vote, ...]] = {}
    if run_ids:
        for row in conn.execute(_of_runs, {"ids": list(run_ids)}):
            vote = Vote(row.step, row.attempt, row.voter, row.approve, row.comment, json.loads(row.form))
            found[row.workflow_id] = (*found.get(row.workflow_id, ()), vote)
    return found
