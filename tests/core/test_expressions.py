"""The expression language: values, types, bounds and the words of its errors."""

import pickle
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from wfcelery.core.expressions import MissingValue, Reference, parse
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError

SCOPE: dict[str, Json] = {
    "input": {
        "name": "Ada",
        "age": 36,
        "none": None,
        "items": ["a", "b", "c"],
        "map": {"k": 1, "in": 2, "true": 3},
        "big": 2**63 - 1,
        "x": True,
    },
    "steps": {"fetch-data": {"result": {"id": 12}}},
    "result": 5,
    "index": 1,
}


def value(source: str, scope: Mapping[str, Json] = SCOPE) -> Json:
    return parse(source).evaluate(scope)


def reason(source: str, scope: Mapping[str, Json] = SCOPE) -> str:
    with pytest.raises(ExpressionError) as caught:
        value(source, scope)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("007", 7),
        ("1e3", 1000.0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
        (r"'\u00e9\U0001F600\'\"\\\n\r\t\b\f'", "é😀'\"\\\n\r\t\b\f"),
        ('"{{ }} it\'s"', "{{ }} it's"),
        ("[]", []),
        ("[1, 2,]", [1, 2]),
        ("[[1, 2], [3]][0][1]", 2),
        ("input.map.in + input.map.true", 5),
        ("input . name", "Ada"),
        ("(input).name", "Ada"),
        ("\n input\t.name\r\n", "Ada"),
        ('steps["fetch-data"].result.id', 12),
        ("input.items[index + 1]", "c"),
        ("not not true", True),
        ("!!!true", False),
        ("- - 3", 3),
        ("-2 - -3", 1),
        ("10 - 3 - 2", 5),
        ("2 * 3 % 4", 2),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-7.5 % 2", -1.5),
        ("1 / 2.0", 0.5),
        ("true ? 1 : false ? 2 : 3", 1),
        ("false ? 1 : false ? 2 : 3", 3),
        ("true || 1", True),
        ("false && 1", False),
        ("null ?? null", None),
        ("(input.gone + 1) ?? 'default'", "default"),
        ("input.none ?? input.gone ?? 3", 3),
        ("0 ?? 1", 0),
        ("has(input)", True),
        ("has(nosuch)", False),
        ("has(input.items[9])", False),
        ("has(input.name.x)", False),
        ("true == 1", False),
        ("1 == true", False),
        ("0 == false", False),
        ("null == false", False),
        ("'1' == 1", False),
        ("1 != '1'", True),
        ("[1, [2]] == [1.0, [2.0]]", True),
        ("[1] == [true]", False),
        ("input == input", True),
        ("'a' < 'b'", True),
        ("1 <= 1.0", True),
        ("2 > 1.5", True),
        ("2 >= 3", False),
        ("true in [1, 'true']", False),
        ("1 in [1.0]", True),
        ("1 in input", False),
        ("[1] in [[1]]", True),
        ("'ÄB'.lowerAscii()", "Äb"),
        ("'äb'.upperAscii()", "äB"),
        ("' a '.trim().upperAscii().startsWith('A')", True),
        ("[].join('-')", ""),
        ("[1, 2].contains(2.0)", True),
        ("string(1.0)", "1.0"),
        ("string(null) + string(true) + string('x')", "nulltruex"),
        ("string([1, 'é', null])", '[1,"é",null]'),
        ("int(-1.9)", -1),
        ("int('+7')", 7),
        ("double(1)", 1.0),
        ("double('1e2')", 100.0),
    ],
)
def test_an_expression_has_its_value(source: str, expected: Json) -> None:
    found = value(source)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("source", "column", "expected"),
    [
        ("", 1, "the expression is empty"),
        ("1 2", 3, "expected an operator or the end, found `2`"),
        ("a.", 3, "expected a name after the dot, found the end"),
        (".5", 1, "expected a value, found `.`"),
        ("[1, 2", 6, "expected `]`, found the end"),
        ("(1", 3, "expected `)`, found the end"),
        ("true ? 1", 9, "expected `:`, found the end"),
        ("'abc", 1, "the text is never closed; add '"),
        (
            "'\\q'",
            2,
            ("`\\q` is not an escape; these are: \\\\ \\\" \\' \\n \\r \\t \\b \\f \\uXXXX \\UXXXXXXXX"),
        ),
        ("'\\ud800'", 2, "`\\ud800` is not a character that text may hold"),
        ("'a\x00'", 3, "U+0000 is not a character that text may hold"),
        ("1abc", 2, "the number 1 runs into `a`; put a space or an operator between"),
        ("9223372036854775808", 1, "an integer beyond 64 bits; write it as text"),
        ("1e400", 1, "a number too large to be written in 64 bits"),
        ("result = 1", 8, "unexpected `=`; compare with =="),
        ("a & b", 3, "unexpected `&`; write && or and"),
        ("1 ≤ 2", 3, "unexpected `≤` (U+2264 LESS-THAN OR EQUAL TO); write <="),
        ("a\xa0", 2, "unexpected character (U+00A0 NO-BREAK SPACE); write a plain space"),
        ("\u0430", 1, "unexpected `\u0430` (U+0430 CYRILLIC SMALL LETTER A)"),
        ("a }}", 3, "`}}` closes a template, and none is open here"),
        ("foo(1)", 1, "there is no function `foo`; these are: has, size, string, int, double"),
        ("a.size()", 3, "there is no method `size`; write size(x)"),
        ("size()", 1, "size() takes 1 argument, not 0"),
        ("'a'.trim('b')", 5, "trim() takes no arguments, not 1"),
        ("has(1)", 1, "has() asks for a path, like has(input.customer)"),
        ("has(a.trim())", 1, "has() asks for a path, like has(input.customer)"),
        ("1 < 2 < 3", 7, "comparisons cannot be chained; write a < b && b < c"),
        (
            "a.map(x, x)",
            3,
            (
                "there is no method `map`; these are: startsWith, endsWith, contains, join,"
                " lowerAscii, upperAscii, trim"
            ),
        ),
        (
            "has(secret.KEY)",
            5,
            (
                "a secret can only stand alone as {{secret.NAME}} in a template, never in a"
                " condition or a larger expression"
            ),
        ),
    ],
)
def test_what_does_not_parse_says_why_and_where(source: str, column: int, expected: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    assert str(caught.value) == f"{expected} (in `{source}`, column {column})"


@pytest.mark.parametrize(
    ("source", "column", "expected"),
    [
        ("true + 1", 6, "`+` takes two numbers, two texts or two lists, not a boolean and a number"),
        ("'a' * 3", 5, "`*` takes two numbers, not a text and a number"),
        ("null < 1", 6, "`<` compares two numbers or two texts, not null with a number"),
        ("true < false", 6, "`<` compares two numbers or two texts, not a boolean with a boolean"),
        ("!1", 1, "`!` takes true or false, not a number"),
        ("'' || true", 4, "`||` takes true or false, not a text"),
        ("null ? 1 : 2", 6, "`?` takes true or false, not null"),
        ("-'a'", 1, "`-` takes a number, not a text"),
        ("-true", 1, "`-` takes a number, not a boolean"),
        ("1 % 0", 3, "`%` by zero"),
        ("1.0 / 0", 5, "`/` by zero"),
        ("1.5 % 0.0", 5, "`%` by zero"),
        ("1e308 * 10", 7, "the number is inf, which JSON does not have"),
        ("0 - input.big - 1", 15, "the integer does not fit into 64 bits"),
        ("int(1e30)", 1, "the integer does not fit into 64 bits"),
        ("int('1_0')", 1, 'int() takes a number or a text of digits, not the text "1_0"'),
        ("int(true)", 1, "int() takes a number or a text of digits, not a boolean"),
        ("double('nan')", 1, 'double() takes a number or a text like 1.5, not the text "nan"'),
        ("size(1)", 1, "size() takes a text, a list or a map, not a number"),
        (
            "'a' in 'abc'",
            5,
            ("`in` looks into a list or the keys of a map, not a text; for a text write text.contains(part)"),
        ),
        ("1 in 1", 3, "`in` looks into a list or the keys of a map, not a number"),
        ("input.age.trim()", 10, "trim() is for a text, not a number"),
        ("input.age.contains(1)", 10, "contains() is for a text or a list, not a number"),
        ("'a'.startsWith(1)", 4, "startsWith() takes a text, not a number"),
        ("'a'.join(',')", 4, "join() is for a list, not a text"),
        ("[1].join(',')", 4, "join() is for a list of texts, and this one holds a number"),
        ("['a'].join(1)", 6, "join() takes a text, not a number"),
        ("input[1]", 6, "the index of a map is a text, not a number"),
        ("input.items[1.0]", 12, "the index of a list is a whole number, not a fraction"),
        ("input.items[true]", 12, "the index of a list is a whole number, not a boolean"),
    ],
)
def test_what_has_no_value_says_why_and_where(source: str, column: int, expected: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(source)
    assert str(caught.value) == f"{expected} (in `{source}`, column {column})"


@pytest.mark.parametrize(
    ("source", "path", "because"),
    [
        ("input.customer", "input.customer", ""),
        ("input.customer.name.first", "input.customer", ""),
        ("input.name.first", "input.name.first", " (input.name is a text, not a map)"),
        ("input.none.x", "input.none.x", " (input.none is null, not a map)"),
        ("input.items.length", "input.items.length", " (input.items is a list, not a map)"),
        ("input.items['0']", "input.items['0']", " (input.items is a list, not a map)"),
        ("input.name[0]", "input.name[0]", " (input.name is a text, not a list)"),
        ("input.items[-1]", "input.items[-1]", " (input.items has 3 elements, counted from 0)"),
        (
            "input.items[1000000000]",
            "input.items[1000000000]",
            " (input.items has 3 elements, counted from 0)",
        ),
        ("input.items[index + 5]", "input.items[index + 5]", " (input.items has 3 elements, counted from 0)"),
        ("input.__class__", "input.__class__", ""),
        ("input['__proto__']", "input['__proto__']", ""),
        ("nosuch", "nosuch", ""),
    ],
)
def test_a_missing_path_is_named_with_the_way_out(source: str, path: str, because: str) -> None:
    way_out = f"give a default with `??` or ask with `has({path})`"
    assert reason(source) == f"{path} is missing{because}; {way_out} (in `{source}`, column 1)"


def test_a_missing_element_of_a_written_list_only_offers_a_default() -> None:
    missing = "[1][5] is missing ([1] has 1 element, counted from 0); give a default with `??`"
    assert reason("[1][5]") == f"{missing} (in `[1][5]`, column 1)"


def test_missing_values_are_errors_of_their_own_kind_and_survive_pickling() -> None:
    with pytest.raises(MissingValue) as caught:
        value("input.gone")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (our own bytes)
    assert (type(copy), str(copy)) == (MissingValue, str(caught.value))


def test_other_errors_are_not_hidden_by_a_default() -> None:
    assert reason("(1 / 0) ?? 2") == "`/` by zero (in `(1 / 0) ?? 2`, column 4)"


def test_a_missing_input_is_empty_text_where_old_flows_ask_for_it() -> None:
    scope: dict[str, Json] = {"input": {}}
    assert parse("input.a.b + input['c'].trim() + 'x'").evaluate(scope, lenient_input=True) == "x"
    assert parse("input.a ?? 'default'").evaluate(scope, lenient_input=True) == "default"
    assert parse("has(input.a)").evaluate(scope, lenient_input=True) is False
    assert parse("input.a").evaluate({}, lenient_input=True) == ""
    with pytest.raises(MissingValue):
        parse("steps.a").evaluate(scope, lenient_input=True)


TOO_DEEP = "nested deeper than 32 levels; do this work in a tool"
TOO_LONG = "the expression is longer than 4,096 characters; do this work in a tool"
NO_FIELDS = "`.__class__`: only maps have fields, and this is never a map"
NO_FILTERS = "unexpected `|`; write || or or; there are no filters"
NO_MATCHES = "there is no function `matches`; these are: has, size, string, int, double"
TOO_MANY = "more than 1,000 parts; do this work in a tool"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("!" * 4_000 + "true", TOO_DEEP, id="not"),
        pytest.param("not " * 1_000 + "true", TOO_DEEP, id="not as a word"),
        pytest.param("-" * 4_000 + "1", TOO_DEEP, id="minus"),
        pytest.param("(" * 2_000 + "1" + ")" * 2_000, TOO_DEEP, id="parentheses"),
        pytest.param("[" * 4_000, TOO_DEEP, id="lists"),
        pytest.param("a[" * 2_000, TOO_DEEP, id="indexes"),
        pytest.param("size(" * 800, TOO_DEEP, id="calls"),
        pytest.param("true ? " * 500, TOO_DEEP, id="half a conditional"),
        pytest.param("true ? 1 : " * 300 + "2", TOO_DEEP, id="conditionals"),
        pytest.param("(" * 8 + "1" + "*1+1==1&&1||1??1)" * 8, TOO_DEEP, id="mixed, too high"),
        pytest.param("a" + ".b" * 2_000, TOO_MANY, id="a long path"),
        pytest.param("a" + ".b" * 10_000, TOO_LONG, id="a very long path"),
        pytest.param("true" + " and true" * 10_000, TOO_LONG, id="10,000 and"),
        pytest.param("1" + "+1" * 1_500, TOO_MANY, id="1,500 plus"),
        pytest.param("1 in [" + "1," * 1_500 + "1]", TOO_MANY, id="a very long in"),
        pytest.param("'" + "a" * 5_000 + "'", TOO_LONG, id="a long text"),
        pytest.param("9**9**9", "expected a value, found `*`", id="powers"),
        pytest.param("x|attr('format')", NO_FILTERS, id="filters"),
        pytest.param("''.__class__.__mro__", NO_FIELDS, id="class"),
        pytest.param("matches('aaaa', '(a+)+$')", NO_MATCHES, id="regex"),
    ],
)
def test_hostile_sources_are_refused_when_parsed(source: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    assert caught.value.reason == expected


def test_32_levels_are_fine() -> None:
    assert value("(" * 31 + "1" + ")" * 31) == 1
    assert value("!" * 31 + "true") is False
    assert parse("(" * 4 + "1" + "*1+1==1||true&&true??1)" * 4 + " == 1").references == ()


def test_400_terms_in_a_row_are_fine() -> None:
    assert value("true" + " and true" * 400) is True
    assert value("0" + "+1" * 400) == 400
    assert value("null" + "??1" * 400) == 1


def test_the_sizes_of_results_are_bounded() -> None:
    scope: dict[str, Json] = {"input": {"text": "x" * 600_000, "list": [0] * 60_000}}
    place = "(in `{0}`, column {1})"
    assert reason("input.text + input.text", scope) == (
        "the result would have 1,200,000 characters; at most 1,048,576 are allowed "
        + place.format("input.text + input.text", 12)
    )
    assert reason("input.list + input.list", scope) == (
        "the result would have 120,000 elements; at most 100,000 are allowed "
        + place.format("input.list + input.list", 12)
    )
    assert reason("[input.text, input.text].join('')", scope) == (
        "the result would have 1,200,000 characters; at most 1,048,576 are allowed "
        + place.format("[input.text, input.text].join('')", 25)
    )


def test_the_work_of_one_evaluation_is_bounded() -> None:
    source = "||".join(["1 in input.list"] * 100)
    with pytest.raises(ExpressionError) as caught:
        value(source, {"input": {"list": [0] * 100_000}})
    assert caught.value.reason == "more than 2,000,000 elements to look at; do this work in a tool"


def test_values_that_are_too_deep_to_compare_are_refused() -> None:
    deep: Json = []
    for _ in range(10_000):
        deep = [deep]
    scope: dict[str, Json] = {"input": {"a": deep, "n": 10**5000}}
    assert reason("input.a == input.a", scope) == (
        "the values are nested deeper than 32 levels (in `input.a == input.a`, column 9)"
    )
    assert reason("string(input.a)", scope) == (
        "the value is nested deeper than 32 levels (in `string(input.a)`, column 1)"
    )
    assert reason("string(input.n)", scope) == (
        "the integer does not fit into 64 bits (in `string(input.n)`, column 1)"
    )
    assert reason("input.n * 1.5", scope) == (
        "the number does not fit into 64 bits (in `input.n * 1.5`, column 9)"
    )


class Lazy(Mapping[str, Json]):
    def __getitem__(self, key: str) -> Json:
        if key != "a":
            raise KeyError(key)
        return MappingProxyType({"result": (1, 2)})

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


def test_any_mapping_is_a_map_and_a_tuple_is_a_list() -> None:
    scope: dict[str, Json] = {"steps": Lazy()}
    assert value("steps.a.result[1]", scope) == 2
    assert value("steps.b.result ?? 'gone'", scope) == "gone"
    assert value("'a' in steps && size(steps) == 1", scope) is True
    assert value("steps.a.result + [3] == [1, 2, 3]", scope) is True
    assert value("string(steps)", scope) == '{"a":{"result":[1,2]}}'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2", []),
        ("steps.fetch.result.id", [Reference("steps", ("fetch", "result", "id"), optional=False, column=1)]),
        (
            "steps['fetch-data'].result[0].id",
            [Reference("steps", ("fetch-data", "result", 0, "id"), column=1)],
        ),
        ("input.items[index].name", [Reference("input", ("items",)), Reference("index", (), column=13)]),
        ("input.name.trim()", [Reference("input", ("name",))]),
        ("input.name.contains(item)", [Reference("input", ("name",)), Reference("item", column=21)]),
        ("a.b ?? c.d", [Reference("a", ("b",), optional=True), Reference("c", ("d",), column=8)]),
        ("(a + 1) ?? 2", [Reference("a", (), optional=True, column=2)]),
        ("has(a.b)", [Reference("a", ("b",), optional=True, column=5)]),
        ("has(a.b) && a.b.c", [Reference("a", ("b",), True, 5), Reference("a", ("b", "c"), True, 13)]),
        ("has(a.b.c) && a.b == 1", [Reference("a", ("b", "c"), True, 5), Reference("a", ("b",), True, 15)]),
        ("has(a.b) && a.c", [Reference("a", ("b",), True, 5), Reference("a", ("c",), False, 13)]),
        ("a.b && has(a.b)", [Reference("a", ("b",), False, 1), Reference("a", ("b",), True, 12)]),
        ("has(a.b) || a.b", [Reference("a", ("b",), True, 5), Reference("a", ("b",), False, 13)]),
        ("!has(a.b) || a.b", [Reference("a", ("b",), True, 6), Reference("a", ("b",), True, 14)]),
        (
            "has(a) ? a.x : a.y",
            [
                Reference("a", (), True, 5),
                Reference("a", ("x",), True, 10),
                Reference("a", ("y",), False, 16),
            ],
        ),
        ("!has(a) ? 1 : a.y", [Reference("a", (), True, 6), Reference("a", ("y",), True, 15)]),
    ],
)
def test_references_are_known_before_anything_runs(source: str, expected: list[Reference]) -> None:
    assert parse(source).references == tuple(expected)


def test_parsing_the_same_text_again_costs_nothing() -> None:
    assert parse("input.name") is parse("input.name")
    assert parse("input.name").source == "input.name"
