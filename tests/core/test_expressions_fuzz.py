"""Whatever is written and whatever it reads: a JSON value or `ExpressionError`, nothing else."""

import json
import string
from typing import get_args

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from wfcelery.core.expressions import parse, syntax
from wfcelery.core.expressions.syntax import MAX_SOURCE, Node
from wfcelery.core.values import Json, canonical
from wfcelery.errors import ExpressionError

NAMES = st.sampled_from(["input", "steps", "result", "a", "b", "in", "true", "x_1", "__class__"])
ROOTS = st.sampled_from(["input", "steps", "result", "a", "b"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.integers(0, 2**63 - 1)
    | st.floats(0, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
)
VALUES = st.recursive(
    SCALARS | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)
SCOPES = st.dictionaries(ROOTS, VALUES, max_size=5)


@st.composite
def trees(draw: st.DrawFn, levels: int = 4) -> Node:  # noqa: PLR0911 (one case per kind of node)
    """Draw any tree that the parser can give."""
    below = trees(levels - 1)
    kind = draw(st.integers(0, 12)) if levels else draw(st.integers(0, 1))
    match kind:
        case 0:
            return syntax.Literal(draw(SCALARS))
        case 1:
            return syntax.Name(draw(ROOTS))
        case 2 | 3:
            return draw(paths(below))
        case 4:
            name, count = draw(METHODS)
            arguments = tuple(draw(below) for _ in range(count))
            base = draw(below)
            links = base.links if isinstance(base, syntax.Chain) else ()
            base = base.base if isinstance(base, syntax.Chain) else base
            return syntax.Chain(base, (*links, syntax.Method(name, arguments)))
        case 5:
            return syntax.Has(draw(paths(below)))
        case 6:
            return syntax.Call(draw(st.sampled_from(get_args(syntax.Function))), draw(below))
        case 7:
            return syntax.Not(draw(below)) if draw(st.booleans()) else syntax.Negative(draw(below))
        case 8:
            signs = draw(st.sampled_from([SUMS, PRODUCTS]))
            rest = [syntax.Operation(draw(signs), draw(below)) for _ in range(draw(st.integers(1, 2)))]
            return syntax.Arithmetic(draw(below), tuple(rest))
        case 9:
            return syntax.Comparison(draw(COMPARISONS), draw(below), draw(below))
        case 10:
            many = tuple(draw(below) for _ in range(draw(st.integers(2, 3))))
            kinds: list[type[syntax.And | syntax.Or | syntax.Default]] = [
                syntax.And,
                syntax.Or,
                syntax.Default,
            ]
            return draw(st.sampled_from(kinds))(many)
        case 11:
            return syntax.Conditional(draw(below), draw(below), draw(below))
        case _:
            return syntax.ListLiteral(tuple(draw(below) for _ in range(draw(st.integers(0, 2)))))


@st.composite
def paths(draw: st.DrawFn, keys: st.SearchStrategy[Node]) -> syntax.Chain:
    links = [
        syntax.Member(draw(NAMES)) if draw(st.booleans()) else syntax.Index(draw(keys))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return syntax.Chain(syntax.Name(draw(ROOTS)), tuple(links))


METHODS: st.SearchStrategy[tuple[syntax.MethodName, int]] = st.sampled_from(
    [("startsWith", 1), ("endsWith", 1), ("contains", 1), ("join", 1), ("lowerAscii", 0), ("trim", 0)]
)
COMPARISONS: st.SearchStrategy[syntax.ComparisonSign] = st.sampled_from(get_args(syntax.ComparisonSign))
SUMS: st.SearchStrategy[syntax.ArithmeticSign] = st.sampled_from(["+", "-"])
PRODUCTS: st.SearchStrategy[syntax.ArithmeticSign] = st.sampled_from(["*", "/", "%"])
TREES = trees()
SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def written(node: Node) -> str:  # noqa: C901, PLR0911 (one case per kind of node)
    """Write a tree as source, with parentheses around every operand that is not a single piece."""
    match node:
        case syntax.Literal(value):
            return json.dumps(value).replace("\\/", "/") if not isinstance(value, str) else quoted(value)
        case syntax.Name(name):
            return name
        case syntax.ListLiteral(items):
            return f"[{', '.join(map(written, items))}]"
        case syntax.Chain(base, links):
            return operand(base) + "".join(map(written_link, links))
        case syntax.Has(target):
            return f"has({written(target)})"
        case syntax.Call(function, argument):
            return f"{function}({written(argument)})"
        case syntax.Not(inner):
            return f"!{operand(inner)}"
        case syntax.Negative(inner):
            return f"-{operand(inner)}"
        case syntax.Arithmetic(first, rest):
            return operand(first) + "".join(f" {each.sign} {operand(each.operand)}" for each in rest)
        case syntax.Comparison(sign, left, right):
            return f"{operand(left)} {sign} {operand(right)}"
        case syntax.And(terms):
            return " && ".join(map(operand, terms))
        case syntax.Or(terms):
            return " or ".join(map(operand, terms))
        case syntax.Default(terms):
            return " ?? ".join(map(operand, terms))
        case syntax.Conditional(test, then, otherwise):
            return f"{operand(test)} ? {operand(then)} : {operand(otherwise)}"


def operand(node: Node) -> str:
    simple = syntax.Literal | syntax.Name | syntax.ListLiteral | syntax.Has | syntax.Call
    return written(node) if isinstance(node, simple) else f"({written(node)})"


def written_link(link: syntax.Link) -> str:
    match link:
        case syntax.Member(name):
            return f".{name}"
        case syntax.Index(key):
            return f"[{written(key)}]"
        case syntax.Method(name, arguments):
            return f".{name}({', '.join(map(written, arguments))})"


def quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(each):08X}" if each in '\\"\r\n' else each for each in text) + '"'


@given(TREES)
@settings(SETTINGS, max_examples=150)
def test_a_tree_written_and_read_is_the_same_tree(tree: Node) -> None:
    source = written(tree)
    if len(source) <= MAX_SOURCE:
        found = parse(source).root
        assert found == tree
        assert written(found) == source  # 1, 1.0 and true are equal in Python, and three things here


@given(TREES, SCOPES, st.booleans())
@settings(SETTINGS, max_examples=250)
def test_any_tree_in_any_scope_gives_json_or_the_one_error(
    tree: Node, scope: dict[str, Json], lenient: bool
) -> None:
    survives(written(tree), scope, lenient=lenient)


@given(st.text(max_size=60) | st.text(string.printable, max_size=60))
@example("(" * 5_000)
@example("a" + "[a" * 2_000)
@example("\ud800")
@settings(SETTINGS, max_examples=200)
def test_any_text_parses_or_raises_the_one_error(text: str) -> None:
    survives(text, {})


PIECES = [
    *"()[].,?:!<>+-*/%'\"",
    "&&",
    "||",
    "??",
    "==",
    "in",
    "not ",
    "a",
    "has(",
    "size(",
    ".trim()",
    "1",
    "1.5",
    " ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), SCOPES)
@settings(SETTINGS, max_examples=200)
def test_any_heap_of_tokens_gives_json_or_the_one_error(text: str, scope: dict[str, Json]) -> None:
    survives(text, scope)


def survives(text: str, scope: dict[str, Json], *, lenient: bool = False) -> None:
    faults: list[ExpressionError] = []
    try:
        canonical(parse(text).evaluate(scope, lenient_input=lenient))
    except ExpressionError as error:
        faults.append(error)
    assert all(error.reason and 1 <= error.column <= max(len(text), MAX_SOURCE) + 1 for error in faults)
