"""Every error that wfcelery raises on purpose.

    WfceleryError
    ├── InvalidFlow          a flow that cannot be accepted, with all its faults
    ├── InvalidInput         an input, result or message that is not what it must be
    ├── ExpressionError      a condition or template that does not parse or cannot be evaluated
    │   ├── TemplateError    the same in a template, with the place of the text
    │   └── MissingValue     it reads a path that is not there
    ├── NotFound             no such run, step, definition
    ├── Refused              not allowed, already decided, in conflict with what is
    │   └── Forbidden        who asks has not the permission
    ├── NotAllStarted        of many starts some were refused
    ├── NotReachable         the database or the broker does not answer
    ├── NotConfirmed         a request was sent, and no answer to it was seen in time
    ├── TimedOut             a run has not ended in time; it goes on
    ├── StoreError           the tables and the engine disagree
    │   ├── StaleState       rows have moved past what was read
    │   ├── LostLease        another executor writes now
    │   └── UnknownSchema    the tables are of a version this code does not know
    ├── InvalidSettings      a setting that is unknown or cannot be used
    │   └── InvalidPolicy    a policy file that cannot be used, with all its faults
    └── ToolError            raised by tools: the attempt failed
        └── NoRetry          raised by tools: failed for good, do not try again

The arguments of an error are its data and survive pickling; its words are made in `__str__`.
`code` is stable and documented in docs/errors.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfcelery.core.faults import Fault

SHOWN = 80


class WfceleryError(Exception):
    """The root of the tree: catching it catches everything we raise on purpose."""

    code: str = "error"


class InvalidFlow(WfceleryError):
    """The flow has faults; `faults` lists every one of them."""

    code = "invalid-flow"

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults)
        self.faults = faults

    def __str__(self) -> str:
        count = len(self.faults)
        head = "the flow has 1 fault" if count == 1 else f"the flow has {count} faults"
        return "\n".join([f"{head}:", *(f"  {fault}" for fault in self.faults)])


class InvalidInput(WfceleryError):
    """A value from outside is not what it must be; `path` says where, `reason` why."""

    code = "invalid-input"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ExpressionError(WfceleryError):
    """A condition or template does not parse, or has no value here; `column` counts from 1."""

    code = "bad-expression"

    def __init__(self, source: str, column: int, reason: str) -> None:
        super().__init__(source, column, reason)
        self.source = source
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        shown = self.source if len(self.source) <= SHOWN else self.source[: SHOWN - 3] + "..."
        return f"{self.reason} (in `{shown}`, column {self.column})"


class NotFound(WfceleryError):
    """There is no such run, step or definition."""

    code = "not-found"

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        super().__init__(kind, name, hint)
        self.kind = kind
        self.name = name
        self.hint = hint

    def __str__(self) -> str:
        return f"no {self.kind} {self.name}" + (f"; {self.hint}" if self.hint else "")


class Refused(WfceleryError):
    """The request was understood and turned down; nothing has changed. `code` says on which ground."""

    code = "refused"

    def __init__(self, reason: str, code: str = "refused") -> None:
        super().__init__(reason, code)
        self.reason = reason
        self.code = code

    def __str__(self) -> str:
        return self.reason


class Forbidden(Refused):
    """Who asks has not the permission that it takes; nothing has changed."""

    code = "forbidden"

    def __init__(self, reason: str, code: str = "forbidden") -> None:
        super().__init__(reason, code)


class NotReachable(WfceleryError):
    """The database or the broker does not answer."""

    code = "not-reachable"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.what} is out of reach: {self.reason}"


class NotAllStarted(WfceleryError):
    """Of many starts some were refused: `refused` by their place, counted from 0. The others have begun."""

    code = "not-all-started"

    def __init__(self, refused: Mapping[int, WfceleryError], started: Mapping[int, str]) -> None:
        super().__init__(refused, started)
        self.refused = refused
        self.started = started

    def __str__(self) -> str:
        first, error = next(iter(self.refused.items()))
        total = len(self.refused) + len(self.started)
        count = f"{len(self.refused)} of {total} starts were refused and the others have begun"
        return f"{count}; the first refused is number {first + 1}: {error}"


class NotConfirmed(WfceleryError):
    """A request was sent, and no answer to it was seen in time: it may happen yet, or have happened.

    `ids` are the ids of the runs or commands: whoever repeats the request with them does nothing twice.
    """

    code = "not-confirmed"

    def __init__(self, what: str, ids: tuple[str, ...], seconds: float, reason: str = "") -> None:
        super().__init__(what, ids, seconds, reason)
        self.what = what
        self.ids = ids
        self.seconds = seconds
        self.reason = reason

    def __str__(self) -> str:
        said = f"{self.what} was not confirmed within {self.seconds:g} s, and may happen yet"
        safely = f"the same id ({self.ids[0]})" if len(self.ids) == 1 else "the same ids"
        reason = self.reason or "perhaps no executor is running"
        return f"{said}; {reason}. Repeating it with {safely} is safe"


class TimedOut(WfceleryError):
    """A run has not ended in the time that somebody was ready to wait. It goes on."""

    code = "timed-out"

    def __init__(self, run_id: str, status: str, seconds: float) -> None:
        super().__init__(run_id, status, seconds)
        self.run_id = run_id
        self.status = status
        self.seconds = seconds

    def __str__(self) -> str:
        return f"run {self.run_id} has not ended within {self.seconds:g} s; it is {self.status}, and goes on"


class StoreError(WfceleryError):
    """The tables and the engine disagree."""

    code = "store-error"


class StaleState(StoreError):
    """A guarded write hit fewer rows than it must: somebody else has written."""

    code = "stale-state"

    def __init__(self, table: str, expected: int, hit: int) -> None:
        super().__init__(table, expected, hit)

    def __str__(self) -> str:
        table, expected, hit = self.args
        return f"{table}: {hit} of {expected} rows were as they were read; read them again"


class LostLease(StoreError):
    """Another executor has taken over; this one must stop writing."""

    code = "lost-lease"

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)

    def __str__(self) -> str:
        return f"another executor has taken over since epoch {self.args[0]}; this one stops"


class UnknownSchema(StoreError):
    """The tables are of a version this code does not know."""

    code = "unknown-schema"

    def __init__(self, found: str, known: str) -> None:
        super().__init__(found, known)

    def __str__(self) -> str:
        found, known = self.args
        return f"the tables are at version {found}, this wfcelery knows {known}; upgrade whichever is older"


class InvalidSettings(WfceleryError):
    """A setting is unknown or cannot be used."""

    code = "invalid-settings"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)

    def __str__(self) -> str:
        name, reason = self.args
        return f"setting {name}: {reason}"


class InvalidPolicy(InvalidSettings):
    """The policy file cannot be used; `faults` lists everything that is wrong with it."""

    code = "invalid-policy"

    def __init__(self, path: str, faults: tuple[str, ...]) -> None:
        WfceleryError.__init__(self, path, faults)
        self.path = path
        self.faults = faults

    def __str__(self) -> str:
        if len(self.faults) == 1:
            return f"policy {self.path}: {self.faults[0]}"
        head = f"policy {self.path} has {len(self.faults)} faults:"
        return "\n".join([head, *(f"  {fault}" for fault in self.faults)])


class ToolError(WfceleryError):
    """For tools to raise: this attempt failed, another may succeed (after `retry_after` seconds)."""

    code = "tool-error"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return str(self.args[0])


class NoRetry(ToolError):
    """For tools to raise: this step has failed for good, trying again is pointless."""

    code = "no-retry"
