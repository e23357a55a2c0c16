"""The value of a tree in a scope.

Pure and bounded: the tree is low, no operation loops but over its own operands, and one evaluation may
look at no more than `MAX_WORK` elements. The only thing ever raised is `ExpressionError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from wfcelery.core.expressions import functions, operations
from wfcelery.core.expressions.operations import Unfit, kind
from wfcelery.core.expressions.syntax import (
    And,
    Arithmetic,
    Call,
    Chain,
    Comparison,
    Conditional,
    Default,
    Has,
    Index,
    ListLiteral,
    Literal,
    Member,
    Method,
    Name,
    Negative,
    Node,
    Not,
    Or,
)
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError

Scope: TypeAlias = Mapping[str, Json]

MAX_WORK: Final = 2_000_000


class MissingValue(ExpressionError):
    """The expression reads a path that is not there."""


class Evaluation:
    """Evaluates the trees of one `source` after another; `missing` lists the paths that were taken as ""."""

    __slots__ = ("_lenient", "_scope", "_work", "missing", "source")

    def __init__(self, source: str, scope: Scope, *, lenient_input: bool = False) -> None:
        self.source = source
        self._scope = scope
        self._lenient = lenient_input
        self._work = MAX_WORK
        self.missing: list[str] = []

    def value(self, node: Node) -> Json:  # noqa: C901, PLR0911 (one case per kind of node)
        """Give the value of `node`."""
        match node:
            case Chain():
                return self._chain(node)
            case Literal():
                return node.value
            case Comparison():
                return self._comparison(node)
            case Name():
                return self._base(node, node)[0]
            case And():
                return all(self._truth(term, "&&", node.column) for term in node.terms)
            case Or():
                return any(self._truth(term, "||", node.column) for term in node.terms)
            case Not():
                return not self._truth(node.operand, "!", node.column)
            case Default():
                return self._default(node.terms)
            case Conditional():
                return self.value(node.then if self._truth(node.test, "?", node.column) else node.otherwise)
            case Has():
                return self._attempt(node.target)[0]
            case Call():
                return self._call(node)
            case Arithmetic():
                return self._arithmetic(node)
            case Negative():
                return self._negative(node)
            case ListLiteral():
                return [self.value(item) for item in node.items]

    def text(self, node: Node) -> str:
        """Give the value of `node` as it stands inside a text."""
        value = self.value(node)
        if isinstance(value, str):
            return value
        try:
            return functions.as_text(value, self._spend)
        except Unfit as unfit:
            raise self._fault(node.column, unfit) from None

    def _chain(self, node: Chain) -> Json:
        value, gone = self._base(node, node.base)
        for position, link in enumerate(node.links, 1):
            if isinstance(link, Member):
                if gone:
                    continue
                if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 (dict is the quick one)
                    if link.name in value:
                        value = value[link.name]
                        continue
                    value, gone = self._absent(node, position), True
                else:
                    value, gone = self._absent(node, position, f"is {kind(value)}, not a map"), True
            elif isinstance(link, Index):
                if not gone:
                    value, gone = self._indexed(node, position, value, self.value(link.key))
            else:
                value, gone = self._method(link, value), False
        return value

    def _base(self, node: Chain | Name, base: Node) -> tuple[Json, bool]:
        if not isinstance(base, Name):
            return self.value(base), False
        if base.name in self._scope:
            return self._scope[base.name], False
        return self._absent(node, 0), True

    def _indexed(self, node: Chain, position: int, value: Json, key: Json) -> tuple[Json, bool]:
        why = ""
        if isinstance(value, (list, tuple)) and isinstance(key, int) and not isinstance(key, bool):
            if 0 <= key < len(value):
                return value[key], False
            count = "1 element" if len(value) == 1 else f"{len(value):,} elements"
            why = f"has {count}, counted from 0"
        elif isinstance(value, Mapping) and isinstance(key, str):
            if key in value:
                return value[key], False
        elif isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and not isinstance(key, str)):
            needs = "a text" if isinstance(value, Mapping) else "a whole number"
            got = "a fraction" if isinstance(key, float) and needs == "a whole number" else kind(key)
            reason = f"the index of {kind(value)} is {needs}, not {got}"
            raise ExpressionError(self.source, node.links[position - 1].column, reason)
        else:
            why = f"is {kind(value)}, not a {'map' if isinstance(key, str) else 'list'}"
        return self._absent(node, position, why), True

    def _absent(self, node: Chain | Name, position: int, why: str = "") -> Json:
        """Refuse a path that ends after `position` links, or pass it as "" where old flows may."""
        base = node.base if isinstance(node, Chain) else node
        path = self._written(node, position)
        if self._lenient and isinstance(base, Name) and base.name == "input":
            self.missing.append(path)
            return ""
        because = f" ({self._written(node, position - 1)} {why})" if why else ""
        ask = f" or ask with `has({path})`" if isinstance(base, Name) else ""
        raise MissingValue(
            self.source, node.column, f"{path} is missing{because}; give a default with `??`{ask}"
        )

    def _written(self, node: Chain | Name, position: int) -> str:
        """Give the first links of a chain as they stand in the source."""
        if isinstance(node, Name):
            return node.name
        end = node.links[position - 1].end if position else node.links[0].column - 1
        text = self.source[node.column - 1 : end].strip()
        return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."

    def _comparison(self, node: Comparison) -> bool:
        left, right = self.value(node.left), self.value(node.right)
        try:
            return operations.compare(node.sign, left, right, self._spend)
        except Unfit as unfit:
            raise self._fault(node.column, unfit) from None

    def _call(self, node: Call) -> Json:
        value = self.value(node.argument)
        try:
            return functions.call(node.function, value, self._spend)
        except Unfit as unfit:
            raise self._fault(node.column, unfit) from None

    def _method(self, link: Method, value: Json) -> Json:
        arguments = [self.value(argument) for argument in link.arguments]
        try:
            return functions.method(link.name, value, arguments, self._spend)
        except Unfit as unfit:
            raise self._fault(link.column, unfit) from None

    def _arithmetic(self, node: Arithmetic) -> Json:
        value = self.value(node.first)
        for operation in node.rest:
            operand = self.value(operation.operand)
            try:
                value = operations.arithmetic(operation.sign, value, operand)
            except Unfit as unfit:
                raise self._fault(operation.column, unfit) from None
        return value

    def _negative(self, node: Negative) -> Json:
        value = self.value(node.operand)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ExpressionError(self.source, node.column, f"`-` takes a number, not {kind(value)}")
        try:
            return operations.checked(-value)
        except Unfit as unfit:
            raise self._fault(node.column, unfit) from None

    def _truth(self, node: Node, sign: str, column: int) -> bool:
        value = self.value(node)
        if isinstance(value, bool):
            return value
        raise ExpressionError(self.source, column, f"`{sign}` takes true or false, not {kind(value)}")

    def _default(self, terms: tuple[Node, ...]) -> Json:
        for term in terms[:-1]:
            found, value = self._attempt(term)
            if found and value is not None:
                return value
        return self.value(terms[-1])

    def _attempt(self, node: Node) -> tuple[bool, Json]:
        """Tell whether `node` has a value, and which; what deals with absence itself is never lenient."""
        lenient, self._lenient = self._lenient, False
        try:
            return True, self.value(node)
        except MissingValue:
            return False, None
        finally:
            self._lenient = lenient

    def _spend(self, amount: int) -> None:
        self._work -= amount
        if self._work < 0:
            raise Unfit(f"more than {MAX_WORK:,} elements to look at; do this work in a tool")

    def _fault(self, column: int, unfit: Unfit) -> ExpressionError:
        return ExpressionError(self.source, column, str(unfit))


_SHOWN: Final = 80
