"""Beginning a run: which flow, which input, which key, and what if it has begun before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfcelery.core import ids, values
from wfcelery.core.decide import key_space
from wfcelery.core.decide.begin import MAX_WAIT_S
from wfcelery.core.flow import Flow
from wfcelery.core.messages import Answer, NewRun
from wfcelery.core.schemas import problems
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.executor.definitions import Defined
from wfcelery.executor.messages import Start
from wfcelery.store import runs

if TYPE_CHECKING:
    from wfcelery.executor.batch import Batch

MAX_KEY = 200


def start(batch: Batch, message: Start) -> Answer:
    """Begin the run, or find the one that this request, or its key, has begun before."""
    if not ids.is_run_id(message.run_id):
        raise InvalidInput("run_id", f"{message.run_id!r} is not the id of a run")
    _check_time(message.at, batch.now)
    given = values.check(message.input, "input")
    defined = _defined(batch, message)
    reason = objection(defined.flow, given)
    if reason is not None:
        return Answer(ok=False, reason=reason, code="invalid-input")
    same = batch.run(message.run_id)
    if same is not None:
        if same.definition_id == defined.id and values.canonical(same.input) == values.canonical(given):
            return Answer(ok=True, data={"run_id": same.id, "created": False})
        return Answer(ok=False, reason=f"run {same.id} exists with another flow or input", code="conflict")
    key = message.key if message.key is not None else _rendered_key(defined.flow, given, message)
    _check_key(key)
    space = key_space(defined.flow, key, defined.version)
    if space is not None and key is not None:
        first = holder(batch, space, key)
        if first is not None and message.refuse_conflict:
            return Answer(ok=False, reason=f"run {first} is live under the key {key}", code="conflict")
        if first is not None:
            return Answer(ok=True, data={"run_id": first, "created": False})
    return batch.begin(
        NewRun(
            run_id=message.run_id,
            definition_id=defined.id,
            version=defined.version,
            input=given,
            by=message.by,
            key=key,
            tags=message.tags,
            at=message.at,
        )
    )


def objection(flow: Flow, given: Json) -> str | None:
    """Say what is wrong with an input, by the flow's own schema; None if nothing is."""
    if flow.input_schema is None:
        return None
    wrong = problems(flow.input_schema, given)
    return f"the input does not fit {flow.name}: {'; '.join(wrong[:10])}" if wrong else None


def holder(batch: Batch, space: str, key: str) -> str | None:
    """Give the live run that has the key, in the tables or in this batch."""
    for change in batch.changes.values():
        run = batch.runs[change.after.id]
        if run.is_live and (run.key_space, run.key) == (space, key):
            return run.id
    found = runs.live_key(batch.conn, space, key)
    if found is None:
        return None
    run_now = batch.run(found)
    return found if run_now is not None and run_now.is_live else None


def _defined(batch: Batch, message: Start) -> Defined:
    if isinstance(message.flow, str):
        return batch.catalogue.find(batch.conn, message.flow)
    return batch.catalogue.define(batch.conn, message.flow, message.name, message.by.id, batch.now)


def _rendered_key(flow: Flow, given: Json, message: Start) -> str | None:
    if flow.key is None:
        return None
    scope: dict[str, Json] = {"input": given, "run": {"id": message.run_id, "created_by": message.by.id}}
    value = flow.key.render(scope, lenient_input=flow.lenient).value
    return value if isinstance(value, str) else values.canonical(value)


def _check_key(key: str | None) -> None:
    if key is not None and not 0 < len(key) <= MAX_KEY:
        raise InvalidInput("key", f"must have 1 to {MAX_KEY} characters, not {len(key)}")


def _check_time(at: Json, now: float) -> None:
    """Refuse a time to start at that no clock will show; one that has passed means now."""
    if at is None:
        return
    if isinstance(at, bool) or not isinstance(at, (int, float)):
        raise InvalidInput("at", f"must be a time in seconds since 1970, not {at!r}")
    if at > now + MAX_WAIT_S:
        raise InvalidInput("at", "must lie within the next ten years")
