"""A parsed expression: what it reads, and its value in a scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from wfcelery.core.expressions import parser
from wfcelery.core.expressions.evaluate import Evaluation, Scope
from wfcelery.core.expressions.references import Reference, references_of

if TYPE_CHECKING:
    from wfcelery.core.expressions.syntax import Node
    from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that parsed; `references` are its uses of the scope, from left to right."""

    source: str
    root: Node = field(repr=False)
    references: tuple[Reference, ...]

    def evaluate(self, scope: Scope, *, lenient_input: bool = False) -> Json:
        """Give the value in `scope`; a missing `input.…` is "" when lenient, any other is an error."""
        return Evaluation(self.source, scope, lenient_input=lenient_input).value(self.root)


@lru_cache(maxsize=4_096)
def parse(source: str) -> Expression:
    """Parse `source`, or raise `ExpressionError` with the column and the reason."""
    root = parser.read(source)
    return Expression(source, root, references_of(root))
