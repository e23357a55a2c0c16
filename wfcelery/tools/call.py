"""Run a tool. The one place where user code runs, and the one that catches whatever comes out of it."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from typing import TYPE_CHECKING, Final

from wfcelery.tools.context import CURRENT, Context, Later, Outcome
from wfcelery.tools.declare import EVENT_NAME, AnyTool
from wfcelery.tools.failures import UnknownEvent
from wfcelery.tools.report import Failed, Limits, Postponed, Report, Returned, failure
from wfcelery.tools.result import plain
from wfcelery.tools.signature import bind

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

DEFAULT_LIMITS: Final = Limits()


def call(
    tool: AnyTool, args: Mapping[str, object], context: Context, limits: Limits = DEFAULT_LIMITS
) -> Report:
    """Run `tool` to its end in this thread and say how it went. Never raises, whatever the tool does.

    An `async def` tool gets an event loop of its own. Time limits are the caller's to enforce: a tool
    that ends late reports what it did.
    """
    try:
        return contextvars.copy_context().run(_attempt, tool, args, context, limits)
    except BaseException as error:  # noqa: BLE001 - user code: SystemExit and friends are one failed attempt
        return failure(error, limits)


def _attempt(tool: AnyTool, args: Mapping[str, object], context: Context, limits: Limits) -> Report:
    CURRENT.set(context)  # In a copy of the caller's context: it ends with this call.
    positional, named = bind(tool, args, context)
    value = tool.function(*positional, **named)
    return _judged(tool, _awaited(value) if inspect.iscoroutine(value) else value, limits)


def _awaited(coroutine: Coroutine[object, object, object]) -> object:
    try:
        return asyncio.run(coroutine)
    finally:
        coroutine.close()  # where a loop already runs in this thread, it was never begun


def _judged(tool: AnyTool, value: object, limits: Limits) -> Report:
    if isinstance(value, Later):
        return Postponed()
    if not isinstance(value, Outcome):
        return Returned(plain(value, limits.result_bytes))
    return Returned(plain(value.value, limits.result_bytes), _known_event(tool, value.event))


def _known_event(tool: AnyTool, event: object) -> str:
    if not isinstance(event, str) or not EVENT_NAME.fullmatch(event):
        raise UnknownEvent(
            f"the tool `{tool.name}` named its outcome {event!r:.80}; "
            "an event is 1 to 64 letters, digits, `_`, `-`"
        )
    if tool.events and event not in tool.events:
        declared = ", ".join(f"`{each}`" for each in tool.events)
        raise UnknownEvent(
            f"the tool `{tool.name}` named its outcome `{event}`, but declares only {declared}; "
            "add it to @tool(events=...)"
        )
    return str.__str__(event)


__all__ = ["DEFAULT_LIMITS", "Failed", "Limits", "Postponed", "Report", "Returned", "call"]
