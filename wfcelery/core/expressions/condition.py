"""Conditions of branches: true or false, nothing else.

The small old patterns come first, matched on the whole text; they never fail, whatever the result is:

    result == true | false     also when the result is that text
    result == nil | null       also when it is "", "nil" or not there at all
    result == WORD             a bare word is text, even if it names something
    result == "quoted"         or 'quoted'

Each may be said with `!=` too. Everything else is an expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from wfcelery.core.expressions.evaluate import Evaluation, Scope
from wfcelery.core.expressions.expression import Expression, parse
from wfcelery.core.expressions.operations import kind
from wfcelery.core.expressions.references import Reference
from wfcelery.core.expressions.syntax import MAX_SOURCE
from wfcelery.errors import ExpressionError

if TYPE_CHECKING:
    from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class Pattern:
    """`result` is, or is not, one of `values`; true and "true" are two values here, 1 and true never one."""

    values: tuple[bool | str | None, ...]
    negated: bool

    def holds(self, result: Json) -> bool:
        """Compare without ever failing."""
        found = any(type(result) is type(value) and result == value for value in self.values)
        return found is not self.negated


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a condition came out, and which input paths were missing and taken as ""."""

    holds: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that parsed; `references` are its uses of the scope, from left to right."""

    source: str
    rule: Pattern | Expression
    references: tuple[Reference, ...]

    def holds(self, scope: Scope, *, lenient_input: bool = False) -> bool:
        """Decide in `scope`; raises `ExpressionError` where there is no answer."""
        if isinstance(self.rule, Pattern):
            return self.rule.holds(scope.get("result"))
        return _decided(self.rule, Evaluation(self.source, scope, lenient_input=lenient_input))

    def judge(self, scope: Scope, *, lenient_input: bool = False) -> Verdict:
        """Decide like `holds`, and also say which input paths were taken as "" (lenient only)."""
        if isinstance(self.rule, Pattern):
            return Verdict(self.rule.holds(scope.get("result")))
        evaluation = Evaluation(self.source, scope, lenient_input=lenient_input)
        return Verdict(_decided(self.rule, evaluation), tuple(evaluation.missing))


@lru_cache(maxsize=4_096)
def parse_condition(source: str) -> Condition:
    """Parse `source`, or raise `ExpressionError` with the column and the reason."""
    match = _PATTERN.fullmatch(source) if len(source) <= MAX_SOURCE else None
    if match is None:
        expression = parse(source)
        return Condition(source, expression, expression.references)
    pattern = Pattern(_values(match["word"], match["quoted"]), negated=match["sign"] == "!=")
    column = match.start("result") + 1
    return Condition(source, pattern, (Reference("result", (), optional=True, column=column),))


def _decided(rule: Expression, evaluation: Evaluation) -> bool:
    value = evaluation.value(rule.root)
    if isinstance(value, bool):
        return value
    reason = f"the condition gave {kind(value)}, it must give true or false"
    raise ExpressionError(rule.source, rule.root.column, reason)


def _values(word: str | None, quoted: str | None) -> tuple[bool | str | None, ...]:
    match word:
        case None:
            return ((quoted or "")[1:-1],)
        case "true":
            return (True, "true")
        case "false":
            return (False, "false")
        case "nil" | "null":
            return (None, "", "nil")
        case _:
            return (word,)


_PATTERN: Final = re.compile(
    r"""[ \t\r\n]* (?P<result>result) [ \t\r\n]* (?P<sign>==|!=) [ \t\r\n]*
    (?: (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<quoted>"[^"\\\r\n\x00\ud800-\udfff]*"|'[^'\\\r\n\x00\ud800-\udfff]*')
    ) [ \t\r\n]*""",
    re.VERBOSE,
)
