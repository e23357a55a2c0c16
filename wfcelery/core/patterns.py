"""Regular expressions of authors, matched in bounded time: all ways at once, never back and forth.

Python's own matcher tries one way after another, and some short patterns have more ways than there is time.
Known is what needs no memory of what was matched: no looking around, no references to groups, no flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined] # the only reader of Python's own syntax
from typing import Any, Final, NamedTuple

MOST_STATES: Final = 2_000


class BadPattern(ValueError):
    """A pattern that cannot be used; its text says why."""


class _Do(Enum):
    CHAR = auto()
    AT = auto()
    GO = auto()
    DONE = auto()


class _State(NamedTuple):
    do: _Do
    fits: Callable[[str], bool] | None = None
    place: str = ""
    ways: tuple[int, ...] = ()


class Pattern:
    """A pattern that can be looked for."""

    def __init__(self, states: list[_State]) -> None:
        self._states = states

    def is_in(self, text: str, charge: Callable[[int], None] = lambda _: None) -> bool:
        """Tell whether it matches anywhere in a text. `charge` is told of the work, and may raise."""
        coming: set[int] = set()
        for place in range(len(text) + 1):
            reached = self._reached({0, *coming}, text, place)
            charge(len(reached))
            if len(self._states) - 1 in reached:
                return True
            if place < len(text):
                char = text[place]
                coming = {
                    each + 1
                    for each in reached
                    if (fits := self._states[each].fits) is not None and fits(char)
                }
        return False

    def _reached(self, begun: set[int], text: str, place: int) -> set[int]:
        """Go every way that takes no character."""
        todo, seen = list(begun), set(begun)
        while todo:
            number = todo.pop()
            state = self._states[number]
            ways = state.ways if state.do is _Do.GO else ()
            if state.do is _Do.AT and _is_at(state.place, text, place):
                ways = (number + 1,)
            for way in ways:
                if way not in seen:
                    seen.add(way)
                    todo.append(way)
        return seen


@lru_cache(maxsize=256)
def pattern(source: str) -> Pattern:
    """Read a pattern in Python's syntax. Raises `BadPattern`."""
    try:
        parsed = _parser.parse(source)
    except (re.error, RecursionError, OverflowError):
        raise BadPattern("is not a regular expression") from None
    if parsed.state.flags != re.UNICODE.value:
        raise BadPattern("has flags, which are not known here")
    states: list[_State] = []
    try:
        _write(states, parsed)
    except RecursionError:
        raise BadPattern("is nested too deeply") from None
    return Pattern([*states, _State(_Do.DONE)])


def _write(states: list[_State], nodes: Any) -> None:  # noqa: ANN401 - what the parser gives has no types
    for node, told in nodes:
        match str(node):
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                _add(states, _State(_Do.CHAR, _char(str(node), told)))
            case "AT":
                _add(states, _State(_Do.AT, place=str(told)))
            case "SUBPATTERN" if not told[1] and not told[2]:
                _write(states, told[3])
            case "BRANCH":
                _write_branches(states, told[1])
            case "MAX_REPEAT" | "MIN_REPEAT":
                _write_repeat(states, *told)
            case _:
                raise BadPattern("looks around or back, has flags or never gives back; leave that out")


def _add(states: list[_State], state: _State) -> int:
    if len(states) >= MOST_STATES:
        raise BadPattern("is too large: repeat less often")
    states.append(state)
    return len(states) - 1


def _write_branches(states: list[_State], branches: Any) -> None:  # noqa: ANN401 - same
    fork, begins, ends = _add(states, _State(_Do.GO)), [], []
    for branch in branches:
        begins.append(len(states))
        _write(states, branch)
        ends.append(_add(states, _State(_Do.GO)))
    states[fork] = _State(_Do.GO, ways=tuple(begins))
    for end in ends:
        states[end] = _State(_Do.GO, ways=(len(states),))


def _write_repeat(states: list[_State], least: int, most: int, body: Any) -> None:  # noqa: ANN401 - same
    for _ in range(least):
        # A step of its own, so that also what is empty cannot be repeated without end.
        _add(states, _State(_Do.GO, ways=(len(states) + 1,)))
        _write(states, body)
    if most == _parser.MAXREPEAT:
        fork = _add(states, _State(_Do.GO))
        _write(states, body)
        _add(states, _State(_Do.GO, ways=(fork,)))
        states[fork] = _State(_Do.GO, ways=(fork + 1, len(states)))
        return
    forks = []
    for _ in range(most - least):
        forks.append(_add(states, _State(_Do.GO)))
        _write(states, body)
    for fork in forks:
        states[fork] = _State(_Do.GO, ways=(fork + 1, len(states)))


def _char(node: str, told: Any) -> Callable[[str], bool]:  # noqa: ANN401 - same
    if node == "ANY":
        return lambda char: char != "\n"
    if node != "IN":
        wanted = chr(told)
        return (lambda char: char == wanted) if node == "LITERAL" else (lambda char: char != wanted)
    is_other = str(told[0][0]) == "NEGATE"
    tests = [_member(str(kind), each) for kind, each in told[1 if is_other else 0 :]]
    return lambda char: any(test(char) for test in tests) != is_other


def _member(kind: str, told: Any) -> Callable[[str], bool]:  # noqa: ANN401 - same
    match kind:
        case "LITERAL":
            wanted = chr(told)
            return lambda char: char == wanted
        case "RANGE":
            first, last = map(chr, told)
            return lambda char: first <= char <= last
        case _:
            return _CATEGORIES[str(told)]


def _is_at(place: str, text: str, here: int) -> bool:
    match place:
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return here == 0
        case "AT_END":
            return here == len(text) or (here == len(text) - 1 and text[here] == "\n")
        case "AT_END_STRING":
            return here == len(text)
        case _:
            before = here > 0 and _is_word(text[here - 1])
            after = here < len(text) and _is_word(text[here])
            return (before != after) == (place == "AT_BOUNDARY")


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_CATEGORIES: Final[dict[str, Callable[[str], bool]]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_NOT_DIGIT": lambda char: not char.isdecimal(),
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda char: not char.isspace(),
    "CATEGORY_WORD": _is_word,
    "CATEGORY_NOT_WORD": lambda char: not _is_word(char),
}
