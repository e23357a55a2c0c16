"""Writing what was decided: a batch of runs in a handful of statements.

Every update names what the row was when it was read. A row that is no longer that makes the whole batch fail
with `StaleState`: a transition cannot happen twice, whoever tries.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from wfcelery.core.ids import step_id
from wfcelery.core.state import Attempt, Error, Run
from wfcelery.core.values import canonical
from wfcelery.errors import Refused, StaleState
from wfcelery.store import statements
from wfcelery.store.failures import DRIVER_ERRORS, is_unique_violation
from wfcelery.store.schema import LIVE_KEY, workflow_events, workflow_steps, workflows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Table

    from wfcelery.core.decide import Decision, Event, Write
    from wfcelery.store.statements import Row

ATTEMPT_COLUMNS: Final = tuple(name for name in Attempt._fields if name != "error")
RUN_COLUMNS: Final = (
    "status",
    "held",
    "last_done",
    "output_digest",
    "seq",
    "updated_at",
    "completed_at",
    "cancelled_at",
)
_RUN_FIXED: Final = ("definition_id", "name", "created_by", "created_at", "key", "key_space", "root_id")
_RUN_MORE: Final = (
    "id",
    "tags",
    "input",
    "output",
    "error",
    "parent_run_id",
    "parent_step",
    "parent_item",
    "parent_attempt",
    "parent_fence",
)
_STEP_MORE: Final = ("error", "args", "secrets", "result", "id", "workflow_id", "position")
_EVENT_FIELDS: Final = ("seq", "at", "type", "step", "item", "attempt", "actor", "transition")
_STEP_GUARDS: Final = ("id", "status", "fence")
_RUN_GUARDS: Final = ("id", "seq")

_attempt_values = attrgetter(*ATTEMPT_COLUMNS)
_run_values = attrgetter(*RUN_COLUMNS)
_run_fixed_values = attrgetter(*_RUN_FIXED)
_event_values = attrgetter(*_EVENT_FIELDS)
_NO_PARENT: Final = (None, None, None, None, None)


@dataclass(slots=True)
class RunChange:
    """What a batch does to one run: it grows by `merge` and is written once."""

    before: Run | None
    after: Run
    writes: dict[tuple[str, int, int], Write] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    output: str | None = None

    def newest(self, name: str, item: int) -> Attempt | None:
        """Give the newest attempt at a step that the batch has written, if it has."""
        own = [write.after for place, write in self.writes.items() if place[:2] == (name, item)]
        return max(own, key=lambda attempt: attempt.attempt, default=None)


def first(before: Run | None, decision: Decision) -> RunChange:
    """Begin a change with the first decision about a run; `before` is None for a run that begins."""
    return merge(RunChange(before, decision.run), decision)


def merge(earlier: RunChange, decision: Decision) -> RunChange:
    """Add the next decision about the same run to `earlier`, and give it back."""
    earlier.after = decision.run
    earlier.events.extend(decision.events)
    if decision.output is not None:
        earlier.output = decision.output
    for write in decision.writes:
        after = write.after
        place = (after.name, after.item, after.attempt)
        known = earlier.writes.get(place)
        earlier.writes[place] = write if known is None else _joined(known, write)
    return earlier


def write(conn: Connection, changes: Sequence[RunChange]) -> None:
    """Write the whole batch, or raise: `StaleState` if a row has moved, `Refused` if a live key is taken."""
    try:
        _update_runs(conn, [change for change in changes if change.before is not None])
        _insert_runs(conn, [change for change in changes if change.before is None])
    except DRIVER_ERRORS as exc:
        if is_unique_violation(exc) and _names_live_key(exc):
            raise Refused("another live run has this key") from exc
        raise
    _write_steps(conn, changes)
    columns = ("workflow_id", "data", *_EVENT_FIELDS)
    _add(conn, workflow_events, columns, [row for change in changes for row in _event_rows(change)])


def _joined(known: Write, write: Write) -> Write:
    return type(write)(
        known.before,
        write.after,
        known.args if write.args is None else write.args,
        known.secrets if write.args is None else write.secrets,
        known.result if write.result is None else write.result,
    )


def _update_runs(conn: Connection, changes: Iterable[RunChange]) -> None:
    groups: dict[tuple[bool, tuple[str, ...]], list[Row]] = defaultdict(list)
    for change in changes:
        before, after = change.before, change.after
        if before is None:
            continue
        columns, values = _changed(RUN_COLUMNS, _run_values(before), _run_values(after))
        if before.error != after.error:
            columns, values = (*columns, "error"), (*values, _error(after.error))
        if change.output is not None:
            columns, values = (*columns, "output"), (*values, change.output)
        if columns:
            groups[after.is_live, columns].append((*values, after.id, before.seq))
    # Runs that end come first: another may take over their key in the same batch.
    for (_, columns), rows in sorted(groups.items()):
        statements.update(conn, workflows, columns, _RUN_GUARDS, rows)


def _insert_runs(conn: Connection, changes: Iterable[RunChange]) -> None:
    rows = []
    for change in changes:
        run, parent = change.after, change.after.parent
        above = (
            _NO_PARENT
            if parent is None
            else (parent.run_id, parent.step, parent.item, parent.attempt, parent.fence)
        )
        more = (run.id, canonical(run.tags), canonical(run.input), change.output, _error(run.error))
        rows.append((*_run_values(run), *_run_fixed_values(run), *more, *above))
    _add(conn, workflows, (*RUN_COLUMNS, *_RUN_FIXED, *_RUN_MORE), rows, keep=LIVE_KEY.name)


def _write_steps(conn: Connection, changes: Sequence[RunChange]) -> None:
    added: list[Row] = []
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for change in changes:
        run_id = change.after.id
        position = change.before.seq if change.before else 0
        for place, write in change.writes.items():
            before, after = write.before, write.after
            payloads = (write.args, write.secrets, write.result)
            if before is None:
                # Every new row has an event of its own, so these numbers never meet those of a later batch.
                position += 1
                more = (_error(after.error), *payloads, step_id(run_id, *place), run_id, position)
                added.append((*_attempt_values(after), *more))
                continue
            columns, values = _changed(ATTEMPT_COLUMNS, _attempt_values(before), _attempt_values(after))
            if before.error != after.error:
                columns, values = (*columns, "error"), (*values, _error(after.error))
            for column, payload in zip(("args", "secrets", "result"), payloads, strict=True):
                if payload is not None:
                    columns, values = (*columns, column), (*values, payload)
            if columns:
                groups[columns].append((*values, step_id(run_id, *place), before.status, before.fence))
    _add(conn, workflow_steps, (*ATTEMPT_COLUMNS, *_STEP_MORE), added)
    for columns, rows in groups.items():
        statements.update(conn, workflow_steps, columns, _STEP_GUARDS, rows)


def _event_rows(change: RunChange) -> Iterable[Row]:
    run_id = change.after.id
    return [(run_id, canonical(event.data), *_event_values(event)) for event in change.events]


def _changed(columns: tuple[str, ...], before: Row, after: Row) -> tuple[tuple[str, ...], Row]:
    differ = [index for index, value in enumerate(after) if value != before[index]]
    return tuple([columns[index] for index in differ]), tuple([after[index] for index in differ])


def _add(
    conn: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[Row], keep: object = None
) -> None:
    """Insert rows that must be new; one that is already there means that somebody else has written."""
    try:
        statements.insert(conn, table, columns, rows)
    except DRIVER_ERRORS as exc:
        if is_unique_violation(exc) and not (keep and _names_live_key(exc)):
            raise StaleState(table.name, len(rows), 0) from exc
        raise


def _names_live_key(exc: Exception) -> bool:
    said = str(exc)
    return str(LIVE_KEY.name) in said or "workflows.key_space, workflows.key" in said


def _error(error: Error | None) -> str | None:
    return None if error is None else canonical(error.as_json())
