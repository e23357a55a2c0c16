"""What the executor can be told: everything that can happen to a run, and what makes runs and definitions."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TypeAlias, get_args

from typing_extensions import TypeIs

from wfcelery.core.messages import (
    ChildEnded,
    Finding,
    Principal,
    Report,
    Request,
    StepBegun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReturned,
    StepSent,
    StepUnsent,
    Trace,
)
from wfcelery.core.state import StepRef
from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class Define:
    """Keep a flow as the next version of its name, unless it is already kept."""

    command_id: str
    document: Json
    by: Principal
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Begin a run. `flow` is a name, `name@version`, a definition's id, or the document itself.

    `at` (seconds since 1970) lets it begin later: its row is there at once, its first step waits.
    """

    command_id: str
    run_id: str
    flow: Json
    input: Json
    by: Principal
    key: str | None = None
    tags: tuple[str, ...] = ()
    name: str | None = None
    refuse_conflict: bool = False
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tell everybody who waits for this signal with this key; it is kept for a while if nobody does."""

    command_id: str
    name: str
    key: str
    by: Principal
    payload: Json = None


@dataclass(frozen=True, slots=True)
class Retire:
    """Delete a definition softly: runs that have it go on, new ones cannot begin."""

    command_id: str
    flow: str
    by: Principal


@dataclass(frozen=True, slots=True)
class Holding:
    """A worker process is alive, and these steps are in its hands.

    `reserved` wait in it, `active` run since the moment given, reports of `unsent` could not be pushed yet.
    `boot_id` tells a process from its predecessor of the same name; `at` is the worker's own clock.
    """

    worker: str
    boot_id: str
    at: float
    queues: tuple[str, ...] = ()
    pool: str = ""
    reserved: tuple[StepRef, ...] = ()
    active: tuple[tuple[StepRef, float], ...] = ()
    unsent: tuple[StepRef, ...] = ()
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class MarkerSeen:
    """A worker has taken a marker from a queue: what was queued before it has been taken too."""

    queue: str
    priority: int
    epoch: int
    number: int
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class NoticeTried:
    """The notifier has tried to send a notice. `reached`: who has it now; without an `error`, everybody.

    With `final`, trying again would not help.
    """

    notice_id: str
    reached: tuple[str, ...] = ()
    error: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something in the mailbox that is no message."""

    text: str
    reason: str


Asked: TypeAlias = Request | Define | Start | Broadcast | Retire
"""What is answered under the id of its command."""

Told: TypeAlias = Report | Trace | Finding
"""What is taken in without an answer."""

Sign: TypeAlias = Holding | MarkerSeen
"""Signs of life: for the watch, not for a run."""

Message: TypeAlias = Asked | Told | Sign | NoticeTried | Unreadable


_ASKED = frozenset([*get_args(Request), Define, Start, Broadcast, Retire])


def is_asked(message: Message) -> TypeIs[Asked]:
    """Tell whether a message wants an answer; by its very class, for this is asked of every message."""
    return type(message) in _ASKED


def is_sign(message: Message) -> TypeIs[Sign]:
    """Tell whether a message is a sign of life."""
    return isinstance(message, (Holding, MarkerSeen))


def run_of(message: Asked | Told) -> str | None:
    """Name the run that a message is about, if it is about one."""
    match message:
        case Define() | Broadcast() | Retire():
            return None
        case ChildEnded():
            return message.parent.run_id
        case (
            StepDone()
            | StepFailed()
            | StepPostponed()
            | StepBegun()
            | StepReturned()
            | StepLost()
            | StepSent()
            | StepUnsent()
        ):
            return message.ref.run_id
        case _:
            return message.run_id


def text_of(message: Message) -> str:
    """Write a message down for people: its kind and its fields as JSON."""
    if isinstance(message, Unreadable):
        return message.text
    fields = dataclasses.asdict(message)
    for name, value in fields.items():
        if isinstance(value, StepRef):
            fields[name] = value._asdict()
    return json.dumps({"kind": type(message).__name__, **fields}, ensure_ascii=False, default=str)
