"""Strict JSON: no comments, no trailing commas, no key twice. Places are found only when one is asked for."""

from __future__ import annotations

import bisect
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Final

from wfcelery.core.faults import Fault
from wfcelery.core.reading.place import LineColumn, Path, Place, spell
from wfcelery.core.reading.plain import MOST_FAULTS, too_deep
from wfcelery.core.values import MAX_INTEGER
from wfcelery.errors import InvalidFlow

if TYPE_CHECKING:
    from wfcelery.core.limits import Limits

# Text that is never closed runs to the end: otherwise each of its quotes would be tried as another beginning.
_STRING: Final = r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)'
_BRACKET: Final = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_TOKEN: Final = re.compile(rf'{_STRING}|[\[\]{{}},:]|[^\s\[\]{{}},:"]+', re.DOTALL)
_LONGEST_INTEGER: Final = len(str(MAX_INTEGER)) + 1


def parse(text: str, limits: Limits) -> tuple[object, Place]:
    """Return the data and the way to find places in it, or raise `InvalidFlow`."""
    _refuse_depth(text, limits)
    repeated: list[str] = []

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(items)
        if len(found) != len(items):
            repeated.append("")
        return found

    try:
        data: object = json.loads(text, object_pairs_hook=pairs, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise InvalidFlow((_syntax_fault(text, error),)) from None
    if repeated:
        raise InvalidFlow(tuple(_Places(text).duplicates()))
    places = cache(lambda: _Places(text).found)

    def place(path: Path) -> LineColumn | None:
        known = places()
        return next((known[path[:size]] for size in range(len(path), -1, -1) if path[:size] in known), None)

    return data, place


def _refuse_depth(text: str, limits: Limits) -> None:
    """Come before any recursion: json.loads would run out of stack."""
    depth = 0
    for match in _BRACKET.finditer(text):
        sign = match.group()
        if sign in "[{":
            depth += 1
            if depth > limits.depth:
                line, column = _Lines(text).at(match.start())
                raise InvalidFlow((too_deep(limits, (), line, column),))
        elif sign in "]}":
            depth -= 1


def _integer(digits: str) -> int:
    # Python refuses to convert thousands of digits; anything this long is out of range and is found so later.
    return int(digits) if len(digits) <= _LONGEST_INTEGER else MAX_INTEGER + 1


def _syntax_fault(text: str, error: json.JSONDecodeError) -> Fault:
    if error.msg == "Extra data" and text[error.pos] in "{[":
        message = "a second document begins here; a flow is one document"
        return Fault(
            "several-documents", message, "", error.lineno, error.colno, "put each flow in its own file"
        )
    message = f"the JSON does not parse: {error.msg[0].lower()}{error.msg[1:]}"
    hint = "JSON has no comments, no trailing commas, and text stands in double quotes; YAML has them"
    return Fault("bad-syntax", message, "", error.lineno, error.colno, hint)


class _Lines:
    """Turns offsets into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def at(self, offset: int) -> LineColumn:
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class _Places:
    """One walk over text that is known to be JSON; a member's place is that of its key."""

    def __init__(self, text: str) -> None:
        self.found: dict[Path, LineColumn] = {}
        self._twice: list[tuple[Path, LineColumn, LineColumn]] = []
        lines = _Lines(text)
        parents: list[Path] = []
        seen: list[dict[str, LineColumn]] = []
        path: Path = ()
        awaits_key = False
        for match in _TOKEN.finditer(text):
            sign, here = match.group(), lines.at(match.start())
            if sign in "]}":
                path, awaits_key = parents.pop(), False
                seen.pop()
            elif sign == ",":
                last = path[-1]
                awaits_key = isinstance(last, str)
                path = path[:-1] if isinstance(last, str) else (*path[:-1], last + 1)
            elif sign == ":":
                awaits_key = False
            elif awaits_key:
                key = str(json.loads(sign))
                path = (*path, key)
                if key in seen[-1]:
                    self._twice.append((path, seen[-1][key], here))
                self.found[path] = seen[-1][key] = here
            else:
                self.found.setdefault(path, here)
                if sign in "[{":
                    parents.append(path)
                    seen.append({})
                    path, awaits_key = ((*path, 0), False) if sign == "[" else (path, True)

    def duplicates(self) -> list[Fault]:
        """Name every key that stands twice in one map, with both places."""
        return [duplicate_key(path, first, again) for path, first, again in self._twice[:MOST_FAULTS]]


def duplicate_key(path: Path, first: LineColumn, again: LineColumn) -> Fault:
    """Say that a key stands twice in one map."""
    message = f"the key `{path[-1]}` stands here again; it is already at line {first[0]}, column {first[1]}"
    return Fault("duplicate-key", message, spell(path), *again, "remove or rename one of them")
