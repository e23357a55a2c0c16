"""From tokens to a tree: precedence climbing, with every bound checked while reading.

From loosest to tightest: `c ? a : b`, `??`, `||`, `&&`, comparison (not chainable), `+ -`, `* / %`, unary.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, cast, get_args

from wfcelery.core.expressions import lexer, syntax
from wfcelery.core.expressions.syntax import MAX_HEIGHT, MAX_NODES, Link, Node
from wfcelery.core.values import MAX_INTEGER
from wfcelery.errors import ExpressionError

if TYPE_CHECKING:
    from wfcelery.core.expressions.lexer import Token


def read(source: str) -> Node:
    """Read the whole of `source` as one expression."""
    return read_tokens(source, lexer.scan(source))


def read_tokens(source: str, tokens: list[Token]) -> Node:
    """Read all `tokens` as one expression; columns are those of `source`."""
    root = _Parser(source, tokens).whole()
    if syntax.height(root) > MAX_HEIGHT:
        raise ExpressionError(source, root.column, _TOO_DEEP)
    return root


class _Parser:
    """A cursor over the tokens; each method reads what its name says and moves on."""

    __slots__ = ("_depth", "_next", "_nodes", "_source", "_token", "_tokens")

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self._source = source
        self._tokens = tokens
        self._token = tokens[0]
        self._next = 1
        self._nodes = 0
        self._depth = 0

    def whole(self) -> Node:
        if self._token.kind == "end":
            raise self._fault(self._token, "the expression is empty")
        root = self._expression()
        if self._token.kind != "end":
            raise self._unexpected("an operator or the end")
        return root

    def _expression(self) -> Node:
        # Everything that nests comes through here or through _unary, so this bounds our own recursion.
        self._depth += 1
        if self._depth > MAX_HEIGHT:
            raise self._fault(self._token, _TOO_DEEP)
        node = self._binary(0)
        if self._token.kind == "?":
            column = self._take().column
            then = self._expression()
            self._expect(":")
            node = self._made(syntax.Conditional(node, then, self._expression(), column))
        self._depth -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        left = self._unary()
        while (level := _LEVELS.get(self._token.kind, -1)) >= lowest:
            terms, signs = [left], []
            while _LEVELS.get(self._token.kind) == level:
                signs.append(self._take())
                terms.append(self._binary(level + 1))
            left = self._made(self._joined(level, terms, signs))
        return left

    def _joined(self, level: int, terms: list[Node], signs: list[Token]) -> Node:
        column = signs[0].column
        if level == _LEVELS["??"]:
            return syntax.Default(tuple(terms), column)
        if level == _LEVELS["||"]:
            return syntax.Or(tuple(terms), column)
        if level == _LEVELS["&&"]:
            return syntax.And(tuple(terms), column)
        if level == _LEVELS["=="]:
            if len(signs) > 1:
                raise self._fault(signs[1], "comparisons cannot be chained; write a < b && b < c")
            sign = cast("syntax.ComparisonSign", signs[0].kind)
            return syntax.Comparison(sign, terms[0], terms[1], column)
        rest = tuple(
            syntax.Operation(cast("syntax.ArithmeticSign", sign.kind), term, sign.column)
            for sign, term in zip(signs, terms[1:], strict=True)
        )
        return syntax.Arithmetic(terms[0], rest, column)

    def _unary(self) -> Node:
        if self._token.kind not in ("!", "-"):
            return self._postfix()
        sign = self._take()
        self._depth += 1
        if self._depth > MAX_HEIGHT:
            raise self._fault(sign, _TOO_DEEP)
        operand = self._unary()
        self._depth -= 1
        if sign.kind == "!":
            return self._made(syntax.Not(operand, sign.column))
        return self._made(syntax.Negative(operand, sign.column))

    def _postfix(self) -> Node:
        start = self._token
        base = self._primary()
        links: list[Link] = []
        while self._token.kind in (".", "["):
            links.append(self._index() if self._token.kind == "[" else self._dotted(base, links))
            self._made(base)
        return self._made(syntax.Chain(base, tuple(links), start.column)) if links else base

    def _index(self) -> Link:
        column = self._take().column
        key = self._expression()
        return syntax.Index(key, column, self._expect("]").end)

    def _dotted(self, base: Node, links: list[Link]) -> Link:
        dot = self._take()
        name = self._token
        if name.kind != "name":
            raise self._unexpected("a name after the dot")
        self._take()
        if self._token.kind != "(":
            last = links[-1] if links else base
            if isinstance(last, (syntax.Literal, syntax.ListLiteral, syntax.Method)):
                raise self._fault(dot, f"`.{name.text}`: only maps have fields, and this is never a map")
            return syntax.Member(name.text, dot.column, name.end)
        arity = _METHODS.get(name.text)
        if arity is None:
            hint = f"write {name.text}(x)" if name.text in _FUNCTIONS else f"these are: {', '.join(_METHODS)}"
            raise self._fault(name, f"there is no method `{name.text}`; {hint}")
        arguments, end = self._arguments(name, arity)
        return syntax.Method(cast("syntax.MethodName", name.text), arguments, dot.column, end)

    def _arguments(self, name: Token, arity: int) -> tuple[tuple[Node, ...], int]:
        self._expect("(")
        arguments, end = self._until(")")
        if len(arguments) != arity:
            wanted = "1 argument" if arity == 1 else f"{arity or 'no'} arguments"
            raise self._fault(name, f"{name.text}() takes {wanted}, not {len(arguments)}")
        return arguments, end

    def _until(self, closing: str) -> tuple[tuple[Node, ...], int]:
        items: list[Node] = []
        while self._token.kind != closing:
            items.append(self._expression())
            if self._token.kind != ",":
                break
            self._take()
        return tuple(items), self._expect(closing).end

    def _primary(self) -> Node:
        token = self._token
        if token.kind not in _STARTS:
            raise self._unexpected("a value")
        self._take()
        if token.kind == "(":
            inner = self._expression()
            self._expect(")")
            return inner
        if token.kind == "[":
            return self._made(syntax.ListLiteral(self._until("]")[0], token.column))
        if token.kind == "name":
            return self._called(token) if self._token.kind == "(" else self._name(token)
        return self._made(syntax.Literal(self._constant(token), token.column))

    def _name(self, token: Token) -> Node:
        if token.text == "secret":
            reason = "a secret can only stand alone as {{secret.NAME}} in a template"
            raise self._fault(token, f"{reason}, never in a condition or a larger expression")
        return self._made(syntax.Name(token.text, token.column))

    def _called(self, name: Token) -> Node:
        if name.text == "has":
            (target,), _ = self._arguments(name, 1)
            links = target.links if isinstance(target, syntax.Chain) else ()
            base = target.base if isinstance(target, syntax.Chain) else target
            if not isinstance(base, syntax.Name) or any(isinstance(link, syntax.Method) for link in links):
                raise self._fault(name, "has() asks for a path, like has(input.customer)")
            return self._made(syntax.Has(cast("syntax.Name | syntax.Chain", target), name.column))
        if name.text not in _FUNCTIONS:
            known = ", ".join(("has", *_FUNCTIONS))
            raise self._fault(name, f"there is no function `{name.text}`; these are: {known}")
        (argument,), _ = self._arguments(name, 1)
        return self._made(syntax.Call(cast("syntax.Function", name.text), argument, name.column))

    def _constant(self, token: Token) -> bool | float | str | None:
        if token.kind == "text":
            return lexer.unquote(self._source, token)
        if token.kind != "number":
            return _CONSTANTS[token.kind]
        if token.text.isdigit():
            digits = token.text.lstrip("0") or "0"
            if len(digits) > len(str(MAX_INTEGER)) or int(digits) > MAX_INTEGER:
                raise self._fault(token, "an integer beyond 64 bits; write it as text")
            return int(digits)
        number = float(token.text)
        if not math.isfinite(number):
            raise self._fault(token, "a number too large to be written in 64 bits")
        return number

    def _made(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._fault(self._token, f"more than {MAX_NODES:,} parts; do this work in a tool")
        return node

    def _take(self) -> Token:
        taken = self._token
        self._token = self._tokens[min(self._next, len(self._tokens) - 1)]
        self._next += 1
        return taken

    def _expect(self, kind: str) -> Token:
        if self._token.kind != kind:
            raise self._unexpected(f"`{kind}`")
        return self._take()

    def _unexpected(self, wanted: str) -> ExpressionError:
        found = "the end" if self._token.kind == "end" else f"`{self._token.text}`"
        return self._fault(self._token, f"expected {wanted}, found {found}")

    def _fault(self, token: Token, reason: str) -> ExpressionError:
        return ExpressionError(self._source, token.column, reason)


_TOO_DEEP: Final = f"nested deeper than {MAX_HEIGHT} levels; do this work in a tool"
_LEVELS: Final = {
    "??": 0,
    "||": 1,
    "&&": 2,
    **dict.fromkeys(get_args(syntax.ComparisonSign), 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}
_FUNCTIONS: Final[tuple[str, ...]] = get_args(syntax.Function)
_METHODS: Final[dict[str, int]] = {
    "startsWith": 1,
    "endsWith": 1,
    "contains": 1,
    "join": 1,
    "lowerAscii": 0,
    "upperAscii": 0,
    "trim": 0,
}
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_STARTS: Final = frozenset({"number", "text", "name", "(", "[", *_CONSTANTS})
