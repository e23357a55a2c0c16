"""Tools whose effects are lines in a file: each is on the disk before the tool goes on."""

from __future__ import annotations

import json
import os

from wfcelery.errors import ToolError
from wfcelery.tools import tool
from wfcelery.tools.context import Context


def write(ctx: Context, what: str) -> None:
    line = {
        "key": ctx.idempotency_key,
        "step": ctx.step,
        "item": ctx.item,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "what": what,
        "pid": os.getpid(),
    }
    descriptor = os.open(os.environ["WFCELERY_TEST_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@tool
def act(ctx: Context, value: object = None) -> object:
    """Begin, take a moment, end."""
    write(ctx, "begin")
    ctx.sleep(0.03)
    write(ctx, "end")
    return value


@tool
def finish(ctx: Context, value: object = None) -> object:
    """Begin, and end only when the test lets go: the run cannot be over before."""
    write(ctx, "begin")
    while os.path.exists(os.environ["WFCELERY_TEST_LEDGER"] + ".hold"):  # noqa: PTH110 - plain and quick
        ctx.sleep(0.01)
    write(ctx, "end")
    return value


@tool
def stumble(ctx: Context) -> str:
    """Fail once, whatever became of the attempt that did; then succeed."""
    write(ctx, "begin")
    with open(os.environ["WFCELERY_TEST_LEDGER"], encoding="utf-8") as ledger:  # noqa: PTH123 - plain and quick
        has_failed = any(json.loads(line)["what"] == "fail" for line in ledger if line.endswith("\n"))
    if not has_failed:
        write(ctx, "fail")
        raise ToolError("stumbled")
    write(ctx, "end")
    return "up again"
