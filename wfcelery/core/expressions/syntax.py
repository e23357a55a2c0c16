"""The tree of an expression: a closed union of frozen values.

Operators of one level stand in one node however many there are (`a && b && c` is one `And`), so the
height of a tree says how deeply somebody nested it, not how long the text is. Columns count from 1 and
say where to point in a message; two trees are equal wherever they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as OneOf

MAX_SOURCE: Final = 4_096
MAX_NODES: Final = 1_000
MAX_HEIGHT: Final = 32

ArithmeticSign: TypeAlias = OneOf["+", "-", "*", "/", "%"]
ComparisonSign: TypeAlias = OneOf["==", "!=", "<", "<=", ">", ">=", "in"]
Function: TypeAlias = OneOf["size", "string", "int", "double"]
MethodName: TypeAlias = OneOf[
    "startsWith", "endsWith", "contains", "lowerAscii", "upperAscii", "trim", "join"
]


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, text, true, false or null."""

    value: bool | int | float | str | None
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b]`."""

    items: tuple[Node, ...]
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A root of the scope, like `input`."""

    name: str
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """`.name` after a value."""

    name: str
    column: int = field(default=1, compare=False)
    end: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Index:
    """`[key]` after a value."""

    key: Node
    column: int = field(default=1, compare=False)
    end: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Method:
    """`.name(arguments)` after a value."""

    name: MethodName
    arguments: tuple[Node, ...]
    column: int = field(default=1, compare=False)
    end: int = field(default=1, compare=False)


Link: TypeAlias = Member | Index | Method


@dataclass(frozen=True, slots=True)
class Chain:
    """A value followed by one or more links: `input.items[0].trim()`."""

    base: Node
    links: tuple[Link, ...]
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Has:
    """`has(path)`: whether there is such a path."""

    target: Name | Chain
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One of the four functions of one argument."""

    function: Function
    argument: Node
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """`!a`, `not a`."""

    operand: Node
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """`-a`."""

    operand: Node
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """One sign and its right operand within an `Arithmetic`."""

    sign: ArithmeticSign
    operand: Node
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`first + b - c` or `first * b / c % d`, from left to right."""

    first: Node
    rest: tuple[Operation, ...]
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left == right` and its kin."""

    sign: ComparisonSign
    left: Node
    right: Node
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """`a && b && …`."""

    terms: tuple[Node, ...]
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """`a || b || …`."""

    terms: tuple[Node, ...]
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Default:
    """`a ?? b ?? …`: the first that is there and is not null, else the last."""

    terms: tuple[Node, ...]
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`test ? then : otherwise`."""

    test: Node
    then: Node
    otherwise: Node
    column: int = field(default=1, compare=False)


Node: TypeAlias = (
    Chain
    | Literal
    | Name
    | Comparison
    | And
    | Or
    | Not
    | Default
    | Conditional
    | Has
    | Call
    | Arithmetic
    | Negative
    | ListLiteral
)


def children(node: Node) -> tuple[Node, ...]:
    """Give the nodes directly below `node`, from left to right."""
    match node:
        case Literal() | Name():
            return ()
        case Chain(base, links):
            return (base, *(child for link in links for child in _link_children(link)))
        case And(terms) | Or(terms) | Default(terms) | ListLiteral(terms):
            return terms
        case Comparison(_, left, right):
            return (left, right)
        case Not(operand) | Negative(operand):
            return (operand,)
        case Arithmetic(first, rest):
            return (first, *(operation.operand for operation in rest))
        case Conditional(test, then, otherwise):
            return (test, then, otherwise)
        case Has(target):
            return (target,)
        case Call(_, argument):
            return (argument,)


def height(root: Node) -> int:
    """Count the levels of the tree, without recursion: this is what makes recursion elsewhere safe."""
    level, rows = [root], 0
    while level:
        rows += 1
        level = [child for node in level for child in children(node)]
    return rows


def _link_children(link: Link) -> tuple[Node, ...]:
    match link:
        case Member():
            return ()
        case Index(key):
            return (key,)
        case Method(_, arguments):
            return arguments
