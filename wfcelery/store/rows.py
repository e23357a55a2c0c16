"""From rows of the tables to values of the core."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from wfcelery.core.state import Attempt, Error, Prepared, Run, RunStatus, StepRef, StepStatus, WaitsFor
from wfcelery.store.schema import workflow_steps, workflows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sqlalchemy import ColumnElement

    from wfcelery.core.values import Json

ATTEMPT_FIELDS: Final = tuple(Attempt._fields)
ATTEMPT: Final[tuple[ColumnElement[Any], ...]] = tuple(workflow_steps.c[name] for name in ATTEMPT_FIELDS)
RUN: Final[tuple[ColumnElement[Any], ...]] = tuple(
    column for column in workflows.c if column.name != workflows.c.output.name
)
_STATUS: Final = {status.value: status for status in StepStatus}
_WAITS: Final[dict[str | None, WaitsFor | None]] = {None: None} | {waits.value: waits for waits in WaitsFor}


def attempt(columns: Sequence[Any]) -> Attempt:
    """Read the columns `ATTEMPT`."""
    fields = dict(zip(ATTEMPT_FIELDS, columns, strict=False))
    fields["status"] = _STATUS[fields["status"]]
    fields["waits_for"] = _WAITS[fields["waits_for"]]
    fields["error"] = error(fields["error"])
    return Attempt(**fields)


def run(row: Any) -> Run:  # noqa: ANN401 -- a row of SQLAlchemy has no narrower type
    """Read the columns `RUN`; the steps are not in it."""
    parent = None
    if row.parent_run_id is not None:
        place = (row.parent_run_id, row.parent_step, row.parent_item, row.parent_attempt)
        parent = StepRef(*place, row.parent_fence)
    return Run(
        id=row.id,
        definition_id=row.definition_id,
        name=row.name,
        input=json.loads(row.input),
        created_by=row.created_by,
        created_at=row.created_at,
        status=RunStatus(row.status),
        held=row.held,
        key=row.key,
        key_space=row.key_space,
        tags=tuple(json.loads(row.tags)),
        parent=parent,
        root_id=row.root_id,
        error=error(row.error),
        last_done=row.last_done,
        output_digest=row.output_digest,
        seq=row.seq,
        updated_at=row.updated_at,
        completed_at=row.completed_at,
        cancelled_at=row.cancelled_at,
    )


def error(text: str | None) -> Error | None:
    """Read a column `error`."""
    if text is None:
        return None
    told = json.loads(text)
    return Error(told["type"], told["message"])


def prepared(args: str | None, secrets: str | None) -> Prepared | None:
    """Read the columns `args` and `secrets`."""
    if args is None:
        return None
    return Prepared(json.loads(args), {} if secrets is None else json.loads(secrets))


def value(text: str | None) -> Json:
    """Read a payload; where there is none, null."""
    found: Json = None if text is None else json.loads(text)
    return found
