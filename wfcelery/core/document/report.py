"""Collects the faults of one document, each with its place; a bad expression does not stop the reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from wfcelery.core.expressions import Condition, Template, parse_condition, parse_template
from wfcelery.core.faults import Fault
from wfcelery.core.reading.place import Path, Place, spell
from wfcelery.errors import ExpressionError

if TYPE_CHECKING:
    from wfcelery.core.values import Json

NOTHING: Final = parse_template(None)
NEVER: Final = parse_condition("false")


class Report:
    """The faults found so far."""

    __slots__ = ("_place", "faults")

    def __init__(self, place: Place) -> None:
        self._place = place
        self.faults: list[Fault] = []

    def add(self, code: str, path: Path, message: str, hint: str = "") -> None:
        """Note one fault."""
        line, column = self._place(path) or (None, None)
        self.faults.append(Fault(code, message, spell(path), line, column, hint))

    def template(self, value: object, path: Path) -> Template:
        """Parse a template; where it does not parse, note each text that does not and give a stand-in."""
        plain = cast("Json", value)
        try:
            return parse_template(plain, spell(path))
        except ExpressionError:
            for text, place in _texts(plain, path):
                try:
                    parse_template(text)
                except ExpressionError as error:
                    self.add("bad-template", place, _explained(error), "see docs/expressions.md")
            return NOTHING

    def condition(self, source: str, path: Path) -> Condition:
        """Parse a condition; where it does not parse, note it and give a stand-in."""
        try:
            return parse_condition(source)
        except ExpressionError as error:
            self.add("bad-condition", path, _explained(error), "see docs/expressions.md")
            return NEVER


def _explained(error: ExpressionError) -> str:
    return str(ExpressionError(error.source, error.column, error.reason))


def _texts(value: Json, path: Path) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    todo: list[tuple[Json, Path]] = [(value, path)]
    while todo:
        each, place = todo.pop()
        if isinstance(each, str):
            found.append((each, place))
        elif isinstance(each, Mapping):
            todo.extend((each[key], (*place, key)) for key in reversed(list(each)))
        elif isinstance(each, (list, tuple)):
            todo.extend((each[index], (*place, index)) for index in reversed(range(len(each))))
    return found
