"""Reading runs for the executor: what a decision needs, in one query per table for however many runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, case, false, func, or_, select, tuple_

from wfcelery.core.flow import Foreach
from wfcelery.core.rebuild import Row, rebuild
from wfcelery.core.state import LIVE, NO_ITEM, OPEN, RunStatus, StepStatus, Vote, WaitsFor
from wfcelery.store import rows, signals, votes
from wfcelery.store.schema import is_status, workflow_steps, workflows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Select
    from sqlalchemy import Row as SqlRow

    from wfcelery.core.flow import Flow
    from wfcelery.core.state import Attempt, Run

CHUNK: Final = 500
"""How many ids one query names: SQLite takes 32,766 parameters, and plans stay small."""

_steps = workflow_steps.c
_is_open = _steps.status.in_(sorted(OPEN))
_read_runs = select(*rows.RUN).where(workflows.c.id.in_(bindparam("ids", expanding=True)))
_live_key = select(workflows.c.id).where(
    is_status(workflows, *LIVE),
    workflows.c.key_space == bindparam("key_space"),
    workflows.c.key == bindparam("key"),
)
_live = select(workflows.c.id).where(is_status(workflows, *LIVE)).order_by(workflows.c.id)


_standing = select(
    workflows.c.status,
    select(func.count()).where(_steps.workflow_id == workflows.c.id, _is_open).scalar_subquery(),
).where(workflows.c.id == bindparam("id"))


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands: its status, and how many of its rows are open."""

    status: RunStatus
    open: int

    @property
    def ended(self) -> bool:
        """Tell whether nothing about the run will change any more."""
        return self.status not in LIVE and self.open == 0


def load(
    conn: Connection, flow_of: Callable[[str], Flow], run_ids: Sequence[str], *, full: bool = False
) -> dict[str, Run]:
    """Read runs as far as their next decision may need them; `full` adds what an operator's retry needs.

    `flow_of` gives the flow of a definition id. Ids that are not there are left out.
    """
    loaded: dict[str, Run] = {}
    for start in range(0, len(run_ids), CHUNK):
        ids = run_ids[start : start + CHUNK]
        found = {row.id: rows.run(row) for row in conn.execute(_read_runs, {"ids": ids})}
        if not found:
            continue
        flows = {run_id: flow_of(run.definition_id) for run_id, run in found.items()}
        attempts = _rows_of(conn, flows, full=full)
        cast, kept = votes.of_runs(conn, list(found)), signals.of_runs(conn, list(found))
        for run_id, run in found.items():
            steps = attempts[run_id]
            loaded[run_id] = rebuild(
                flows[run_id], run, steps, _of_open_gates(cast.get(run_id, ()), steps), kept.get(run_id, ())
            )
    return loaded


def root_of(conn: Connection, run_id: str) -> str | None:
    """Give the id of the run to which this one belongs as a sub-run; its own, if it is none."""
    found: str | None = conn.execute(select(workflows.c.root_id).where(workflows.c.id == run_id)).scalar()
    return found


def owners(conn: Connection, run_ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Tell of runs their ids, the names of their flows, and who began them."""
    columns = (workflows.c.id, workflows.c.name, workflows.c.created_by)
    found: list[tuple[str, str, str]] = []
    for start in range(0, len(run_ids), CHUNK):
        these = workflows.c.id.in_(run_ids[start : start + CHUNK])
        found += [(row[0], row[1], row[2]) for row in conn.execute(select(*columns).where(these))]
    return found


def live_key(conn: Connection, key_space: str, key: str) -> str | None:
    """Give the id of the live run that has the key."""
    found: str | None = conn.execute(_live_key, {"key_space": key_space, "key": key}).scalar()
    return found


def standing(conn: Connection, run_id: str) -> Standing | None:
    """Tell how a run stands."""
    found = conn.execute(_standing, {"id": run_id}).first()
    return None if found is None else Standing(RunStatus(found[0]), found[1])


def live(conn: Connection) -> list[str]:
    """List the ids of all live runs, oldest first."""
    return list(conn.execute(_live).scalars())


def _rows_of(conn: Connection, flows: Mapping[str, Flow], *, full: bool) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    kept = sorted(frozenset[str]().union(*(flow.kept for flow in flows.values())))
    for row in conn.execute(_steps_query(kept, full=full), {"ids": list(flows)}):
        found[row.workflow_id].append(_row(row))
    if not full:
        loops = [
            (run_id, row.attempt.name)
            for run_id, steps in found.items()
            for row in steps
            if isinstance(flows[run_id].steps[row.attempt.name].action, Foreach)
            and row.attempt.status is not StepStatus.DONE
        ]
        for start in range(0, len(loops), CHUNK):
            query = _items_query(loops[start : start + CHUNK])
            for row in conn.execute(query):
                found[row.workflow_id].append(_row(row))
    return found


def _steps_query(kept: Iterable[str], *, full: bool) -> Select[tuple[object, ...]]:
    """Read the rows outside any foreach, with what is still of use of their payloads; `full`: everything."""
    of_these = _steps.workflow_id.in_(bindparam("ids", expanding=True))
    if full:
        columns = (_steps.workflow_id, _steps.args, _steps.secrets, _steps.result)
        return select(*rows.ATTEMPT, *columns).where(of_these).order_by(_steps.position)
    wanted = or_(_is_open, _steps.name.in_(list(kept)))
    return (
        select(
            *rows.ATTEMPT,
            _steps.workflow_id,
            case((_is_open, _steps.args)).label("args"),
            case((_is_open, _steps.secrets)).label("secrets"),
            case((wanted, _steps.result)).label("result"),
        )
        .where(of_these, _steps.item == NO_ITEM)
        .order_by(_steps.position)
    )


def _items_query(loops: Sequence[tuple[str, str]]) -> Select[tuple[object, ...]]:
    """Read the items of loops under way: the arguments of the open ones, the results of the done ones."""
    return select(
        *rows.ATTEMPT,
        _steps.workflow_id,
        case((_is_open, _steps.args)).label("args"),
        case((_is_open, _steps.secrets)).label("secrets"),
        case((_steps.status == StepStatus.DONE, _steps.result)).label("result"),
    ).where(
        _steps.workflow_id.in_([run_id for run_id, _ in loops]),
        _steps.item > NO_ITEM,
        tuple_(_steps.workflow_id, _steps.name).in_(loops) if loops else false(),
    )


def _row(row: SqlRow[tuple[object, ...]]) -> Row:
    return Row(rows.attempt(row), rows.prepared(row.args, row.secrets), rows.value(row.result))


def _of_open_gates(cast: Iterable[Vote], steps: Iterable[Row]) -> tuple[Vote, ...]:
    gates = {_place(row.attempt) for row in steps if row.attempt.waits_for is WaitsFor.APPROVAL}
    return tuple(vote for vote in cast if (vote.step, vote.attempt) in gates)


def _place(attempt: Attempt) -> tuple[str, int]:
    return attempt.name, attempt.attempt
