"""Whether data is plain JSON that every later layer can carry: all faults at once, without recursion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from wfcelery.core.faults import Fault
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.reading.place import Path, Place, nowhere, spell
from wfcelery.core.values import MAX_INTEGER

_Problem: TypeAlias = tuple[str, Path, str, str]

MOST_FAULTS: Final = 50
"""More than this many faults help nobody."""


def faults_of_values(data: object, *, place: Place = nowhere, limits: Limits = DEFAULT) -> list[Fault]:
    """List what in `data` is not plain JSON, or is too deep or too large."""
    faults: list[Fault] = []
    for code, path, message, hint in _problems(data, limits):
        line, column = place(path) or (None, None)
        faults.append(Fault(code, message, spell(path), line, column, hint))
        if len(faults) == MOST_FAULTS:
            break
    return faults


def too_large(limits: Limits, found: str) -> Fault:
    """Say that a flow is larger than it may be."""
    message = f"the flow is {found}; at most {limits.flow_bytes:,} bytes are allowed"
    return Fault("too-large", message, hint="split it into sub-flows, or keep large data elsewhere")


def too_deep(limits: Limits, path: Path, line: int | None, column: int | None) -> Fault:
    """Say that a flow is nested deeper than it may be."""
    hint = "flatten it, or pass the value as text"
    return Fault("too-deep", f"is nested deeper than {limits.depth} levels", spell(path), line, column, hint)


def _problems(data: object, limits: Limits) -> Iterator[_Problem]:
    # The size is counted on the way, so that data that holds itself is found out early.
    size = 0
    todo: list[tuple[object, Path]] = [(data, ())]
    while todo:
        value, path = todo.pop()
        size += _size(value)
        if size > limits.flow_bytes:
            fault = too_large(limits, "too large when written as JSON")
            yield fault.code, (), fault.message, fault.hint
            return
        if isinstance(value, (Mapping, list, tuple)):
            if len(path) >= limits.depth:
                fault = too_deep(limits, path, None, None)
                yield fault.code, path, fault.message, fault.hint
                continue
            if isinstance(value, Mapping):
                yield from _bad_keys(value, path)
                good = [key for key in value if isinstance(key, str) and _of_text(key) is None]
                size += sum(map(_size, good))
                todo.extend((value[key], (*path, key)) for key in reversed(good))
            else:
                todo.extend((value[index], (*path, index)) for index in reversed(range(len(value))))
        else:
            problem = _of_scalar(value)
            if problem is not None:
                code, message, hint = problem
                yield code, path, message, hint


def _bad_keys(value: Mapping[object, object], path: Path) -> Iterator[_Problem]:
    for key in value:
        if not isinstance(key, str):
            yield "bad-key", path, f"has the key {key!r}, which is not text", "write it in quotes"
        elif (problem := _of_text(key)) is not None:
            code, message, hint = problem
            yield code, path, f"has a key that {message}", hint


def _of_scalar(value: object) -> tuple[str, str, str] | None:
    match value:
        case None | bool():
            return None
        case str():
            return _of_text(value)
        case int() if abs(value) > MAX_INTEGER:
            return "bad-number", "is an integer beyond 64 bits", "write it as text"
        case float() if not math.isfinite(value):
            return "bad-number", "is not a finite number, which JSON does not have", "write it as text"
        case int() | float():
            return None
        case _:
            return (
                "bad-type",
                f"is of type {type(value).__name__}, which is not JSON",
                "use plain JSON values",
            )


def _of_text(text: str) -> tuple[str, str, str] | None:
    if "\x00" in text:
        return "bad-text", "holds a NUL character", "remove it: databases refuse it"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "bad-text", "holds a lone surrogate, which is not valid text", "write the whole character"
    return None


def _size(value: object) -> int:
    """Count the bytes of JSON that a value has at least, without what is inside it.

    Never more than its shortest spelling: what was accepted as text must be accepted as data.
    """
    match value:
        case str():
            return len(value.encode(errors="replace")) + 2
        case Mapping():
            return 2 * max(len(value), 1)
        case list() | tuple():
            return len(value) + 1
        case _:
            return 1
