"""Telling runs something: stop, hold, go on, try again, and signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from wfcelery.errors import NotFound
from wfcelery.rights import Permission
from wfcelery.web.api.access import repeated_command, run_of
from wfcelery.web.api.fields import LONGEST_TEXT, Asked, Line, Nothing, Plain, Prose
from wfcelery.web.api.operation import Call, Reply

if TYPE_CHECKING:
    from typing import Any


class CancelBody(Asked):
    """Why it is cancelled, for the record."""

    reason: Prose = ""


class SignalBody(Asked):
    """What the run is told. With `key` only a wait with this key takes it."""

    payload: Annotated[Plain, Field(description="Becomes the result of the step that waits.")] = None
    key: Line | None = None


def cancel(call: Call[Nothing, CancelBody]) -> Reply:
    """Stop a run for good."""
    run_id = _allowed(call, Permission.CANCEL)
    command = repeated_command(call)
    call.desk.workflows.cancel(run_id, call.body.reason, by=call.who, command_id=command)
    return _stands(call, run_id)


def pause(call: Call[Nothing, Nothing]) -> Reply:
    """Let nothing new begin in a run."""
    run_id = _allowed(call, Permission.CANCEL)
    call.desk.workflows.pause(run_id, by=call.who, command_id=repeated_command(call))
    return _stands(call, run_id)


def resume(call: Call[Nothing, Nothing]) -> Reply:
    """Let a paused run go on."""
    run_id = _allowed(call, Permission.CANCEL)
    call.desk.workflows.resume(run_id, by=call.who, command_id=repeated_command(call))
    return _stands(call, run_id)


def retry(call: Call[Nothing, Nothing]) -> Reply:
    """Let a failed run go on from where it failed."""
    run_id = _allowed(call, Permission.RETRY)
    call.desk.workflows.retry(run_id, by=call.who, command_id=repeated_command(call))
    return _stands(call, run_id)


def signal(call: Call[Nothing, SignalBody]) -> Reply:
    """Tell a run something that it waits for, or will."""
    run_id = _allowed(call, Permission.SIGNAL)
    name = call.part("name")
    if len(name) > LONGEST_TEXT or not name.isprintable():
        raise NotFound("signal", "of such a name")
    call.desk.workflows.signal(
        run_id,
        name,
        call.body.payload,
        key=call.body.key,
        by=call.who,
        command_id=repeated_command(call),
    )
    return _stands(call, run_id)


def _allowed(call: Call[Any, Any], permission: Permission) -> str:
    with call.desk.reading() as conn:
        return run_of(call, conn, permission).id


def _stands(call: Call[Any, Any], run_id: str) -> Reply:
    return Reply({"id": run_id, "status": call.desk.workflows.status(run_id)})
