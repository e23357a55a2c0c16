"""How an attempt ended: a closed union of plain data that can be stored, pickled and sent."""

from __future__ import annotations

import math
import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from wfcelery.errors import NoRetry, ToolError
from wfcelery.tools.failures import BadArguments, BadResult, ResultTooLarge, Stopped, UnknownEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wfcelery.core.values import Json

T = TypeVar("T")

LONGEST_RETRY_AFTER: Final = 366 * 86_400.0
MOST_ANCESTORS: Final = 64
LONGEST_NAME: Final = 200
MOST_PARTS: Final = 1_000
UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of what a tool says is kept."""

    result_bytes: int = 1024 * 1024
    message_chars: int = 2_000
    detail_bytes: int = 16 * 1024


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool returned `result`, and named its outcome `event` if it named any."""

    result: Json
    event: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed.

    `type` is the exception's class name, or one of the codes in docs/tools.md. `ancestors` are the names that
    `no_retry_on` may match: class names and dotted paths. `retry` is False when trying again is pointless.
    `detail` is the traceback.
    """

    type: str
    message: str
    ancestors: tuple[str, ...] = ()
    retry: bool = True
    retry_after: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The tool returned `ctx.later()`: the result will be reported from outside."""


Report: TypeAlias = Returned | Failed | Postponed


def failure(error: BaseException, limits: Limits) -> Failed:
    """Describe `error`, whatever its own methods do."""
    speechless = Failed("BaseException", "the exception cannot be described", ("BaseException",))
    return _safely(lambda: _described(error, limits), speechless)


def _described(error: BaseException, limits: Limits) -> Failed:
    if isinstance(error, (BadArguments, BadResult, ResultTooLarge, UnknownEvent)):
        message = _storable(str(error)[: limits.message_chars])
        return Failed(error.code, message, (error.code, *_names(type(error))), retry=False)
    name = _safely(lambda: type(error).__name__, "BaseException")
    kind = _kind_of_stop(error) if isinstance(error, Stopped) else _storable(name[:LONGEST_NAME])
    return Failed(
        type=kind,
        message=_message(error, kind, limits.message_chars),
        ancestors=_safely(lambda: _ancestors(kind, error), (kind,)),
        retry=kind != "cancelled" and not any(isinstance(leaf, NoRetry) for leaf in _leaves(error)),
        retry_after=_safely(lambda: _retry_after(error), None),
        detail=_detail(error, limits.detail_bytes),
    )


def _kind_of_stop(error: Stopped) -> str:
    return "cancelled" if error.time_limit is None else "timeout"


def _message(error: BaseException, kind: str, most: int) -> str:
    text = _safely(lambda: str(error)[:most], f"{kind}, whose message cannot be made into text")
    if isinstance(error, SystemExit):
        text = f"the tool called exit({text})"
    return _storable((text or f"{kind} without a message")[:most])


def _ancestors(kind: str, error: BaseException) -> tuple[str, ...]:
    """Name the classes of `error`; those inside an exception group count too."""
    names = dict.fromkeys([kind])
    for leaf in _leaves(error):
        names.update(dict.fromkeys(_names(type(leaf))))
        if len(names) >= MOST_ANCESTORS:
            break
    return tuple(names)[:MOST_ANCESTORS]


def _names(cls: type) -> Iterator[str]:
    for each in cls.__mro__[:-1]:
        yield _storable(each.__name__[:LONGEST_NAME])
        yield _storable(f"{each.__module__}.{each.__qualname__}"[:LONGEST_NAME])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and, through groups in groups, everything that it holds, once."""
    waiting, seen = [error], {id(error)}
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, BaseExceptionGroup):
            fresh = [part for part in reversed(each.exceptions) if id(part) not in seen]
            seen.update(map(id, fresh))
            waiting.extend(fresh)


def _retry_after(error: BaseException) -> float | None:
    """Find the longest delay asked for; what is not a number of seconds asks for none."""
    asked = [leaf.retry_after for leaf in _leaves(error) if isinstance(leaf, ToolError)]
    seconds = [float(each) for each in asked if isinstance(each, (int, float)) and not isinstance(each, bool)]
    good = [each for each in seconds if math.isfinite(each) and each >= 0]
    return min(max(good), LONGEST_RETRY_AFTER) if good else None


def _detail(error: BaseException, most: int) -> str:
    text = _safely(lambda: _traceback(error), "the traceback cannot be made into text")
    data = _storable(text).encode()
    if len(data) <= most:
        return data.decode()
    # The end says what happened, the beginning how it came to that.
    mark = "\n... left out ...\n"
    head, tail = most // 4, most - most // 4 - len(mark)
    return data[:head].decode(errors="ignore") + mark + data[-tail:].decode(errors="ignore")


def _traceback(error: BaseException) -> str:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__package__") == __package__:
        frames = frames.tb_next
    if _is_modest(error):
        return "".join(traceback.format_exception(type(error), error, frames))
    last = f"{type(error).__qualname__}, with too many causes and parts to list\n"
    return "".join([*traceback.format_tb(frames), last])


def _is_modest(error: BaseException) -> bool:
    """Whether the parts of `error` can be listed: groups that share parts unfold without end."""
    waiting: list[BaseException | None] = [error]
    for _ in range(MOST_PARTS):
        if not waiting:
            return True
        each = waiting.pop()
        if each is not None:
            waiting += [each.__cause__, each.__context__]
            waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return False


def _storable(text: str) -> str:
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _safely(describe: Callable[[], T], otherwise: T) -> T:
    """Ask a user's exception about itself; it may raise anything while it answers."""
    try:
        return describe()
    except BaseException:  # noqa: BLE001 - __str__, properties and metaclasses are user code
        return otherwise
