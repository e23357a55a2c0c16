"""`@tool`: a plain function with a name that flows can call."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, ParamSpec, TypeAlias, TypeVar, overload

from wfcelery.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
EVENT_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, eq=False)
class Tool(Generic[P, R_co]):
    """A function that steps can call by name. Called from Python it is that function, nothing more."""

    function: Callable[P, R_co]
    name: str
    events: tuple[str, ...] = ()
    permission: str | None = None
    requires_approval: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        """Refuse names that no flow could spell."""
        if not TOOL_NAME.fullmatch(self.name):
            reason = "must be named by 1 to 128 letters, digits, `_`, `-`, `.`"
            raise InvalidInput(f"tool {self.name!r}", f"{reason}; give it a name with @tool(name=...)")
        for event in self.events:
            if not EVENT_NAME.fullmatch(event):
                reason = "must be 1 to 64 letters, digits, `_`, `-`"
                raise InvalidInput(f"tool {self.name!r}", f"declares the event {event!r}; an event {reason}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the plain function: no engine, no checks."""
        return self.function(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """Let `inspect.signature` and documentation tools see the function."""
        return self.function

    @property
    def place(self) -> str:
        """Say where the function is written, for messages."""
        function = inspect.unwrap(self.function)
        name = getattr(function, "__qualname__", type(function).__qualname__)
        dotted = f"{getattr(function, '__module__', '?')}.{name}"
        code = getattr(function, "__code__", None)
        return f"{dotted} (line {code.co_firstlineno})" if code is not None else dotted


AnyTool: TypeAlias = Tool[..., object]


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    events: Iterable[str] = (),
    permission: str | None = None,
    requires_approval: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    events: Iterable[str] = (),
    permission: str | None = None,
    requires_approval: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Mark a function as a tool. It registers nothing: a `Registry` collects tools when it is told to."""
    declared = (events,) if isinstance(events, str) else tuple(events)

    def mark(function: Callable[P, R]) -> Tool[P, R]:
        return Tool(
            function=function,
            name=name if name is not None else getattr(function, "__name__", type(function).__name__),
            events=declared,
            permission=permission,
            requires_approval=requires_approval,
            description=inspect.getdoc(function) or "",
        )

    return mark if function is None else mark(function)
