"""Tools that every engine has, so that a YAML file alone runs."""

from __future__ import annotations

from wfcelery.core.values import Json
from wfcelery.errors import ToolError
from wfcelery.tools.context import Context
from wfcelery.tools.declare import tool


@tool
def echo(**arguments: Json) -> Json:
    """Return the arguments; with the single argument `value`, that value."""
    return arguments["value"] if arguments.keys() == {"value"} else arguments


@tool
def sleep(ctx: Context, seconds: float) -> None:
    """Let `seconds` pass, or less when the step is asked to stop."""
    ctx.sleep(seconds)


@tool
def fail(ctx: Context, message: str = "failed on purpose", times: int | None = None) -> Json:
    """Fail the first `times` attempts, then succeed; without `times`, always fail."""
    if times is None or ctx.attempt <= times:
        raise ToolError(message)
    return {"attempts": ctx.attempt}
