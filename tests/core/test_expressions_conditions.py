"""Conditions: the old patterns first, then the language, and true or false in the end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfcelery.core.expressions import Reference, Verdict, parse_condition
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError


def holding(source: str) -> list[Json]:
    return [result for result in RESULTS if parse_condition(source).holds({"result": result})]


RESULTS: list[Json] = [
    True,
    False,
    "true",
    "false",
    None,
    "",
    "nil",
    "null",
    0,
    1,
    1.0,
    [],
    {},
    "ok",
    "input",
    [True],
]


@pytest.mark.parametrize(
    ("right", "equals"),
    [
        ("true", [True, "true"]),
        ("false", [False, "false"]),
        ("nil", [None, "", "nil"]),
        ("null", [None, "", "nil"]),
        ("ok", ["ok"]),
        ("input", ["input"]),
        ("in", []),
        ('"true"', ["true"]),
        ("'ok'", ["ok"]),
        ('""', [""]),
        ("'nil'", ["nil"]),
    ],
)
@pytest.mark.parametrize("spaces", ["result {0} {1}", "result{0}{1}", "  result\t{0}  {1}\n"])
def test_the_old_patterns_hold(right: str, equals: list[Json], spaces: str) -> None:
    wanted = [repr(each) for each in equals]
    assert [repr(result) for result in holding(spaces.format("==", right))] == wanted
    others = [repr(result) for result in RESULTS if repr(result) not in wanted]
    assert [repr(result) for result in holding(spaces.format("!=", right))] == others


def test_a_result_that_is_not_there_is_nil_and_nothing_else() -> None:
    sources = [
        "result == nil",
        "result != nil",
        "result == true",
        "result != true",
        "result == ok",
        "result != 'ok'",
    ]
    assert [parse_condition(source).holds({}) for source in sources] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]


@given(
    st.sampled_from(["true", "false", "nil", "null", "word", '"quoted"', "'quoted'"]),
    st.sampled_from(["==", "!="]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
)
@settings(max_examples=50)
def test_the_old_patterns_never_fail(right: str, sign: str, result: Json) -> None:
    assert parse_condition(f"result {sign} {right}").holds({"result": result}) in (True, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("result == 1", True),
        ("result > 0 && input.vip", True),
        ("result == 1 and not input.vip", False),
        ("input.gone ?? false", False),
        ("(result) == true", False),
    ],
)
def test_everything_else_is_the_expression_language(source: str, expected: bool) -> None:
    assert parse_condition(source).holds({"result": 1, "input": {"vip": True}}) is expected


@pytest.mark.parametrize(
    ("source", "kind", "column"),
    [
        ("1 + 1", "a number", 3),
        ("'true'", "a text", 1),
        ("null", "null", 1),
        ("[true]", "a list", 1),
        ("input", "a map", 1),
    ],
)
def test_a_condition_gives_true_or_false_or_an_error(source: str, kind: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_condition(source).holds({"input": {}})
    expected = f"the condition gave {kind}, it must give true or false (in `{source}`, column {column})"
    assert str(caught.value) == expected


def test_a_secret_is_never_part_of_a_condition() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_condition("secret.KEY == 'x'")
    assert str(caught.value) == (
        "a secret can only stand alone as {{secret.NAME}} in a template, never in a condition or a larger"
        " expression (in `secret.KEY == 'x'`, column 1)"
    )


def test_the_lenient_form_tells_what_it_took_as_empty() -> None:
    condition = parse_condition("input.a == '' && input.b.c != 'x'")
    assert condition.judge({"input": {}}, lenient_input=True) == Verdict(True, ("input.a", "input.b"))
    assert condition.holds({"input": {}}, lenient_input=True) is True
    assert parse_condition("result == nil").judge({}, lenient_input=True) == Verdict(True)


def test_references_of_a_condition() -> None:
    assert parse_condition(" result == ok").references == (Reference("result", (), optional=True, column=2),)
    assert parse_condition("result.ok == true").references == (
        Reference("result", ("ok",), optional=False, column=1),
    )
    assert parse_condition("steps.a.result ?? false").references == (
        Reference("steps", ("a", "result"), optional=True, column=1),
    )


def test_a_pattern_is_bound_by_the_same_length() -> None:
    with pytest.raises(ExpressionError, match="longer than 4,096 characters"):
        parse_condition("result == '" + "a" * 5_000 + "'")
