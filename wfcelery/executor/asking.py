"""What is asked of the executor, each answered with a word that is kept: yes, or no and why."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from wfcelery.core import values
from wfcelery.core.limits import Limits
from wfcelery.core.messages import Answer, Principal, Request, RetryRun, Signal
from wfcelery.core.state import Error, StoredSignal
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow, NotReachable, StoreError, WfceleryError
from wfcelery.executor import starting
from wfcelery.executor.definitions import fault_json
from wfcelery.executor.messages import Asked, Broadcast, Define, Retire, Start, run_of
from wfcelery.store import commands, definitions, signals

if TYPE_CHECKING:
    from wfcelery.executor.batch import Batch

SIGNAL_KEPT_S = 7 * 86_400.0
"""How long a signal by key waits for somebody to wait for it."""


def answer(batch: Batch, message: Asked) -> Answer:
    """Do what is asked, or say why not; whatever is wrong with a request is an answer, not an error."""
    try:
        _check(message, batch.limits)
        match message:
            case Define():
                return _define(batch, message)
            case Start():
                return starting.start(batch, message)
            case Broadcast():
                return _broadcast(batch, message)
            case Retire():
                return _retire(batch, message)
            case RetryRun():
                return _retry(batch, message)
            case _:
                return request(batch, message)
    except (StoreError, NotReachable):
        raise
    except InvalidFlow as error:
        faults = [fault_json(fault) for fault in error.faults]
        return Answer(ok=False, reason=str(error), code=error.code, data={"faults": faults})
    except WfceleryError as error:
        return Answer(ok=False, reason=str(error), code=error.code)


def answered(message: Asked, given: Answer, now: float) -> commands.Command:
    """Write an answer as it is kept."""
    run_id = given.data.get("run_id")
    return commands.Command(
        id=message.command_id,
        kind=type(message).__name__,
        run_id=run_id if isinstance(run_id, str) else run_of(message),
        ok=given.ok,
        code="" if given.ok else given.code,
        reason=given.reason,
        data=given.data,
        at=now,
        actor=message.by.id,
    )


def _check(message: Asked, limits: Limits) -> None:
    """Refuse what the tables cannot hold; documents are checked as flows, with codes of their own."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name not in ("flow", "document") or isinstance(value, str):
            plain = dataclasses.asdict(value) if isinstance(value, Principal | Error) else value
            values.check(plain, field.name, max_bytes=limits.payload_bytes)


def request(batch: Batch, message: Request) -> Answer:
    """Decide a request about a run; a refusal changes nothing."""
    run = batch.marked_run(message.run_id)
    if run is None:
        return Answer(ok=False, reason=f"no run {message.run_id}", code="not-found")
    decision = batch.decide(run, message)
    if decision is None:
        reason = f"it could not be decided; the dead letters of run {run.id} say why"
        return Answer(ok=False, reason=reason, code="internal")
    given = decision.answer or Answer(ok=True)
    if given.ok:
        batch.take(run, decision)
    return given


def _define(batch: Batch, message: Define) -> Answer:
    made = batch.catalogue.define(batch.conn, message.document, message.name, message.by.id, batch.now)
    return Answer(ok=True, data={"id": made.id, "name": made.name, "version": made.version})


def _retire(batch: Batch, message: Retire) -> Answer:
    found = batch.catalogue.find(batch.conn, message.flow)
    definitions.delete(batch.conn, found.name, found.version, now=batch.now)
    batch.catalogue.forget()
    return Answer(ok=True, data={"id": found.id, "name": found.name, "version": found.version})


def _retry(batch: Batch, message: RetryRun) -> Answer:
    batch.reload(message.run_id)
    run = batch.run(message.run_id)
    if run is not None and run.key is not None and run.key_space is not None:
        holder = starting.holder(batch, run.key_space, run.key)
        if holder not in (None, run.id):
            return Answer(ok=False, reason=f"run {holder} is live under the key {run.key}")
    return request(batch, message)


def _broadcast(batch: Batch, message: Broadcast) -> Answer:
    batch.write_runs()
    reached: list[Json] = []
    for run_id in signals.waiting(batch.conn, message.name, message.key):
        if not batch.waits(run_id, message.name, message.key):
            continue  # Another step that the signal has reached needed this one no more.
        signal = Signal(message.command_id, run_id, message.name, message.by, message.payload, message.key)
        if request(batch, signal).ok and run_id not in reached:
            reached.append(run_id)
    if not reached:
        kept = StoredSignal(message.command_id, message.name, message.key, message.payload)
        signals.keep_for_key(batch.conn, kept, now=batch.now, expires_at=batch.now + SIGNAL_KEPT_S)
    return Answer(ok=True, data={"reached": reached})
