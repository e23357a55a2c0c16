"""A module of tools that harms the process which loads it, in the way that its environment asks for.

Executors and workers import the modules of WFCELERY_TOOLS before they begin: nothing of the product has to be
changed for a test, and nothing of it knows of this.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wfcelery.tools import tool

if TYPE_CHECKING:
    from wfcelery.core.effects import Dispatch

TOOLS = "tests.system.ledger,tests.system.sabotage"
HARM = "WFCELERY_TEST_HARM"
"""`before-send:N`, `after-send:N`, `before-done:N`: SIGKILL at the N-th call. `double`: send all twice."""


@tool
def harmless() -> None:
    """A module of tools has a tool."""


def harm(what: str) -> dict[str, Any]:
    """The environment of a process that harms itself, for `System.spawn`."""
    return {"WFCELERY_TOOLS": TOOLS, HARM: what}


def _kill_at(number: str) -> Callable[[], None]:
    left = int(number)

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def _kill_at_send(number: str, *, before: bool) -> None:
    from wfcelery.shell.publisher import Publisher

    count = _kill_at(number)
    send = Publisher.send

    def harmed(self: Publisher, steps: Sequence[Dispatch]) -> None:
        if before:
            count()
        send(self, steps)
        if not before:
            count()

    _replace(Publisher, "send", harmed)


def _kill_before_done(number: str) -> None:
    from wfcelery.broker.mailbox import RedisMailbox

    count = _kill_at(number)
    done = RedisMailbox.done

    def harmed(self: RedisMailbox) -> None:
        count()
        done(self)

    _replace(RedisMailbox, "done", harmed)


def _double() -> None:
    """Everything is put twice into the queues and into the mailbox."""
    from wfcelery.broker.sender import Sender

    post, push = Sender.post, Sender.push

    def post_twice(self: Sender, lines: Mapping[tuple[str, int], Sequence[bytes]]) -> None:
        post(self, {place: [each for each in line for _ in range(2)] for place, line in lines.items()})

    def push_twice(self: Sender, payloads: Sequence[bytes]) -> str | None:
        return push(self, [payload for payload in payloads for _ in range(2)])

    _replace(Sender, "post", post_twice)
    _replace(Sender, "push", push_twice)


def _replace(owner: type, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def _begin(asked: str) -> None:
    what, _, number = asked.partition(":")
    match what:
        case "before-send" | "after-send":
            _kill_at_send(number, before=what == "before-send")
        case "before-done":
            _kill_before_done(number)
        case "double":
            _double()
        case "":
            return
        case _:
            raise ValueError(f"no such harm: {asked}")


_begin(os.environ.get(HARM, ""))
