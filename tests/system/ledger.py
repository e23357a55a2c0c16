"""Tools whose effects are lines in a file, and reading them: the oracle outside the engine."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from wfcelery.errors import ToolError
from wfcelery.tools import tool
from wfcelery.tools.context import Context

LEDGER = "WFCELERY_TEST_LEDGER"


def write(ctx: Context, what: str) -> None:
    """Append a line; it is whole, or not there."""
    line = {
        "run": ctx.run_id,
        "step": ctx.step,
        "item": ctx.item,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "what": what,
        "pid": os.getpid(),
        "at": time.time(),
    }
    descriptor = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
    finally:
        os.close(descriptor)


@tool
def act(ctx: Context, value: object = None, seconds: float = 0.0) -> object:
    """Begin, take so long, end."""
    write(ctx, "begin")
    if seconds:
        ctx.sleep(seconds)
    write(ctx, "end")
    return value


@tool
def hang(ctx: Context, seconds: float = 60.0) -> None:
    """Sleep without looking up."""
    write(ctx, "begin")
    time.sleep(seconds)
    write(ctx, "end")


@tool
def hold(ctx: Context, value: object = None) -> object:
    """Begin, and end only when the test removes the file LEDGER.hold."""
    write(ctx, "begin")
    while Path(os.environ[LEDGER] + ".hold").exists():
        time.sleep(0.02)
    write(ctx, "end")
    return value


@tool
def linger(ctx: Context) -> int:
    """Begin, and end only when the test removes the file of this attempt, LEDGER.hold.N."""
    write(ctx, "begin")
    while Path(f"{os.environ[LEDGER]}.hold.{ctx.attempt}").exists():
        time.sleep(0.02)
    write(ctx, "end")
    return ctx.attempt


@tool
def deaf(ctx: Context, seconds: float = 60.0) -> None:
    """Sleep, and take no notice of being told that time is over."""
    write(ctx, "begin")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            time.sleep(seconds)
        except Exception:  # noqa: BLE001 - this is what the tool is about
            write(ctx, "heard")
    write(ctx, "end")


@tool
def look_around(ctx: Context) -> dict[str, object]:
    """Tell what can be seen from here: loaded packages that speak SQL, and the names of our settings."""
    write(ctx, "begin")
    spoken = {"sqlalchemy", "alembic", "psycopg", "sqlite3"} & set(sys.modules)
    write(ctx, "end")
    return {"sql": sorted(spoken), "settings": sorted(name for name in os.environ if "WFCELERY" in name)}


@tool
def stumble(ctx: Context, times: int = 1) -> int:
    """Fail the first attempts."""
    write(ctx, "begin")
    if ctx.attempt <= times:
        raise ToolError("stumbled")
    write(ctx, "end")
    return ctx.attempt


@tool
def die(ctx: Context, times: int = 1_000) -> int:
    """Kill the process that runs this, in the first attempts."""
    write(ctx, "begin")
    if ctx.attempt <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    write(ctx, "end")
    return ctx.attempt


@tool
def kill_worker(ctx: Context, times: int = 1_000) -> int:
    """Kill the worker's main process and then this one, in the first attempts."""
    write(ctx, "begin")
    if ctx.attempt <= times:
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    write(ctx, "end")
    return ctx.attempt


@dataclass(frozen=True, slots=True)
class Line:
    run: str
    step: str
    item: int
    attempt: int
    fence: int
    what: str
    pid: int
    at: float


class Ledger:
    """What tools have done, read from their file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, what: str | None = None) -> list[Line]:
        if not self.path.exists():
            return []
        found = [Line(**json.loads(line)) for line in self.path.read_text().splitlines()]
        return [line for line in found if what is None or line.what == what]

    def begun(self) -> Counter[tuple[str, str, int, int]]:
        """How often each attempt was begun, by run, step, item and attempt."""
        return Counter((line.run, line.step, line.item, line.attempt) for line in self.lines("begin"))

    def repeated(self) -> dict[tuple[str, str, int, int], int]:
        """The attempts that were begun more than once."""
        return {key: count for key, count in self.begun().items() if count > 1}

    @property
    def gate(self) -> Path:
        """While this file is there, `hold` does not end."""
        return self.path.with_name(self.path.name + ".hold")

    def gate_of(self, attempt: int) -> Path:
        """While this file is there, this attempt at `linger` does not end."""
        return self.path.with_name(f"{self.path.name}.hold.{attempt}")
