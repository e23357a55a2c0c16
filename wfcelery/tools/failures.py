"""What the engine itself holds against a tool's attempt: each becomes one `Failed` with its `code` as type.

ToolError
├── Stopped              the tool noticed that it must stop: time is over, or it was asked to
└── NoRetry
    ├── BadArguments     the arguments do not fit the tool
    ├── BadResult        the result is not JSON
    ├── ResultTooLarge   the result is JSON, and too much of it
    └── UnknownEvent     the tool named an outcome that it does not declare
"""

from __future__ import annotations

from wfcelery.errors import NoRetry, ToolError


class BadArguments(NoRetry):
    """The arguments do not fit the tool; `misfits` are pairs of a path and what is wrong there."""

    code = "bad-arguments"

    def __init__(self, tool: str, misfits: tuple[tuple[str, str], ...]) -> None:
        super().__init__(tool)
        self.args = (tool, misfits)
        self.misfits = misfits

    def __str__(self) -> str:
        tool, misfits = self.args
        wrong = "; ".join(f"{path}: {message}" if path else message for path, message in misfits)
        return f"the arguments do not fit the tool `{tool}`: {wrong}"


class BadResult(NoRetry):
    """The result, or a part of it, is not JSON."""

    code = "bad-result"


class ResultTooLarge(NoRetry):
    """The result is JSON, and too much of it."""

    code = "result-too-large"

    def __init__(self, max_bytes: int) -> None:
        super().__init__("")
        self.args = (max_bytes,)

    def __str__(self) -> str:
        limit = f"{self.args[0]:,} bytes of JSON"
        return f"result: is more than {limit}. Store large data elsewhere and return a reference"


class UnknownEvent(NoRetry):
    """The tool named an outcome that it does not declare."""

    code = "unknown-event"


class Stopped(ToolError):
    """Raised by `ctx.sleep` in a tool that must stop. Let it pass, or clean up and raise it again."""

    code = "stopped"

    def __init__(self, time_limit: float | None = None) -> None:
        super().__init__("")
        self.args = (time_limit,)
        self.time_limit = time_limit

    def __str__(self) -> str:
        if self.time_limit is None:
            return "the step was asked to stop"
        return f"the time limit of {self.time_limit:g} s is over"
