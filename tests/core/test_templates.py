"""Templates: types kept, one pass, secrets apart, missing values named with their place."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.core.expressions import (
    Reference,
    Rendered,
    SecretRef,
    TemplateError,
    decode_secrets,
    encode_secrets,
    parse_template,
    resolve_secrets,
)
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError, InvalidInput

SCOPE: dict[str, Json] = {
    "input": {
        "name": "Ada",
        "age": 36,
        "vip": True,
        "none": None,
        "ratio": 1.0,
        "tags": ["a", "é"],
        "map": {"b": 1, "a": {"c": None}},
        "hostile": "{{input.name}} {{secret.KEY}} {% x %}",
    },
}


def rendered(value: Json, **options: bool) -> Json:
    return parse_template(value).render(SCOPE, **options).value


def fault(value: Json, path: str = "") -> str:
    with pytest.raises(TemplateError) as caught:
        parse_template(value, path).render(SCOPE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{input.name}}", "Ada"),
        ("{{ input.age }}", 36),
        ("{{\n input.vip \n}}", True),
        ("{{input.none}}", None),
        ("{{input.ratio}}", 1.0),
        ("{{input.tags}}", ["a", "é"]),
        ("{{input.map}}", {"b": 1, "a": {"c": None}}),
        ("{{ 7*7 }}", 49),
        (" {{input.age}}", " 36"),
        ("{{input.age}}{{input.age}}", "3636"),
        ("{{input.vip}}/{{input.none}}/{{input.ratio}}", "true/null/1.0"),
        ("x={{input.tags}}", 'x=["a","é"]'),
        ("x={{input.map}}", 'x={"a":{"c":null},"b":1}'),
        ("{{ '{{' }}", "{{"),
        ('{{ "}}" }}', "}}"),
        ("a }} b", "a }} b"),
        ("{ {x} }", "{ {x} }"),
        ("{% for x in y %}", "{% for x in y %}"),
        ("${{ input.age }}", "$36"),
        ("{0.__class__}", "{0.__class__}"),
        ("{{input.gone ?? 'none'}}", "none"),
        ("{{ [input.age, 1] }}", [36, 1]),
        ("", ""),
        (3, 3),
        (None, None),
        ({"{{input.name}}": "{{input.age}}"}, {"{{input.name}}": 36}),
        ([["{{input.age}}", 1], {"a": ["x{{input.age}}"]}], [[36, 1], {"a": ["x36"]}]),
    ],
)
def test_a_template_gives_its_value(template: Json, expected: Json) -> None:
    found = rendered(template)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{", "`{{` is never closed; add `}}` (in `{{`, column 1)"),
        ("ab {{ input.x", "`{{` is never closed; add `}}` (in `ab {{ input.x`, column 4)"),
        ("{{ input.x }", "unexpected `}`; close a template with `}}` (in `{{ input.x }`, column 12)"),
        ("{{}}", "the expression is empty (in `{{}}`, column 3)"),
        (
            "{{ {{ }} }}",
            (
                "unexpected `{`; there are no maps and no nested templates in an expression"
                " (in `{{ {{ }} }}`, column 4)"
            ),
        ),
        (
            "{{ ''.__class__.__mro__ }}",
            (
                "`.__class__`: only maps have fields, and this is never a map"
                " (in `{{ ''.__class__.__mro__ }}`, column 6)"
            ),
        ),
        (
            "{{ x|attr('format') }}",
            "unexpected `|`; write || or or; there are no filters (in `{{ x|attr('format') }}`, column 5)",
        ),
        ("ok {{ 1 / 0 }}", "`/` by zero (in `ok {{ 1 / 0 }}`, column 9)"),
        ("{{ 'a }}", "the text is never closed; add ' (in `{{ 'a }}`, column 4)"),
        (
            "hi {{input.customer}}",
            (
                "input.customer is missing; give a default with `??` or ask with `has(input.customer)`"
                " (in `hi {{input.customer}}`, column 6)"
            ),
        ),
    ],
)
def test_a_bad_text_is_named_with_path_and_column(template: str, expected: str) -> None:
    assert fault(template) == expected
    assert fault({"list": [1, {"query": template}]}, "args") == f"args.list[1].query: {expected}"


def test_a_long_expression_in_a_template_is_refused() -> None:
    expected = "the expression is longer than 4,096 characters; do this work in a tool"
    for source in ("{{ " + "a" * 5_000 + " }}", "{{ '" + "a" * 5_000 + "' }}"):
        with pytest.raises(TemplateError) as caught:
            parse_template(source)
        assert caught.value.reason == expected
    assert rendered("x" * 10_000 + "{{input.age}}") == "x" * 10_000 + "36"


def test_a_template_error_survives_pickling_and_is_an_expression_error() -> None:
    error = TemplateError("{{x}}", 3, "x is missing", "args.query")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert isinstance(copy, ExpressionError)
    assert str(copy) == "args.query: x is missing (in `{{x}}`, column 3)"


def test_a_value_is_never_rendered_again() -> None:
    hostile = "{{input.name}} {{secret.KEY}} {% x %}"
    assert parse_template("{{input.hostile}}").render(SCOPE) == Rendered(hostile)
    assert parse_template("<{{input.hostile}}>").render(SCOPE) == Rendered(f"<{hostile}>")


def test_secrets_stay_references_and_their_places_are_noted() -> None:
    template = parse_template(
        {
            "header": "Bearer {{secret.TOKEN}} for {{input.name}}",
            "list": ["{{ secret.A }}{{secret.B}}", "{{input.hostile}}"],
            "a/b~c": "{{secret.A}}",
        }
    )
    found = template.render(SCOPE)
    assert found.value == {
        "header": "Bearer {{secret.TOKEN}} for Ada",
        "list": ["{{secret.A}}{{secret.B}}", SCOPE["input"]["hostile"]],  # type: ignore[index, call-overload]
        "a/b~c": "{{secret.A}}",
    }
    assert found.secrets == {
        "/header": ("Bearer ", SecretRef("TOKEN"), " for Ada"),
        "/list/0": (SecretRef("A"), SecretRef("B")),
        "/a~1b~0c": (SecretRef("A"),),
    }
    assert [each for each in template.references if each.root == "secret"] == [
        Reference("secret", ("TOKEN",), column=10),
        Reference("secret", ("A",), column=4),
        Reference("secret", ("B",), column=17),
        Reference("secret", ("A",), column=3),
    ]


def test_only_the_noted_places_are_resolved() -> None:
    template = parse_template(
        {"h": "{{secret.KEY}}:{{input.hostile}}", "u": ["{{input.hostile}}", "{{secret.KEY}}"]}
    )
    found = template.render(SCOPE)
    before = str(found.value)
    assert resolve_secrets(found.value, found.secrets, lambda name: f"<{name}>{{{{secret.KEY}}}}") == {
        "h": "<KEY>{{secret.KEY}}:{{input.name}} {{secret.KEY}} {% x %}",
        "u": ["{{input.name}} {{secret.KEY}} {% x %}", "<KEY>{{secret.KEY}}"],
    }
    assert str(found.value) == before


def test_a_template_that_is_one_secret_resolves_at_the_root() -> None:
    found = parse_template("{{secret.KEY}}").render({})
    assert found == Rendered("{{secret.KEY}}", {"": (SecretRef("KEY"),)})
    assert resolve_secrets(found.value, found.secrets, str.lower) == "key"


def test_secrets_travel_as_json() -> None:
    secrets = {"/h": ("Bearer ", SecretRef("KEY"))}
    assert encode_secrets(secrets) == {"/h": ["Bearer ", {"secret": "KEY"}]}
    assert decode_secrets(encode_secrets(secrets)) == secrets


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        ([], "secrets: is not a map from JSON pointers to pieces of text"),
        ({"/h": "x"}, "secrets/h: is not a list of pieces of text"),
        ({"/h": [{"secret": 1}]}, "secrets/h: holds a piece that is neither text nor a secret"),
    ],
)
def test_secrets_that_are_not_ours_are_refused(encoded: Json, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_secrets(encoded)
    assert str(caught.value) == expected


def test_secrets_of_another_value_are_refused() -> None:
    secrets = {"/a/0": (SecretRef("KEY"),)}
    cases: list[tuple[Json, str]] = [
        ({"a": []}, "/a/0: is not there, though a secret belongs to it"),
        ({"a": ["changed"]}, "/a/0: is not the text that the secrets belong to"),
    ]
    for value, expected in cases:
        with pytest.raises(InvalidInput) as caught:
            resolve_secrets(value, secrets, str.lower)
        assert str(caught.value) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{secret.A + 'x'}}",
        "{{secret['A']}}",
        "{{secret}}",
        "{{secret.A.B}}",
        "{{secret.A ?? 1}}",
        "{{(secret.A)}}",
    ],
)
def test_a_secret_stands_alone(template: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(template)
    assert caught.value.reason == (
        "a secret can only stand alone as {{secret.NAME}} in a template, "
        "never in a condition or a larger expression"
    )


def test_a_missing_input_is_empty_and_reported_where_old_flows_ask_for_it() -> None:
    template = parse_template({"id": "{{input.doc_id}}", "text": "a{{input.x.y}}b", "d": "{{input.z ?? 1}}"})
    assert template.render({"input": {}}, lenient_input=True) == Rendered(
        {"id": "", "text": "ab", "d": 1}, {}, ("input.doc_id", "input.x")
    )


def test_constants_come_back_as_they_are() -> None:
    value: Json = {"a": [1, {"b": "x } } y"}], "c": None}
    template = parse_template(value)
    assert template.is_constant
    assert template.render({}).value is value
    assert not parse_template({"a": "{{1}}"}).is_constant


def test_references_of_a_template_come_in_order() -> None:
    template = parse_template({"a": "{{input.x}} {{steps.s.result ?? 1}}", "b": ["{{item}}"]})
    assert template.references == (
        Reference("input", ("x",), optional=False, column=3),
        Reference("steps", ("s", "result"), optional=True, column=15),
        Reference("item", (), optional=False, column=3),
    )


def nested(levels: int, core: Json) -> Json:
    for _ in range(levels):
        core = [core]
    return core


def test_depth_is_bounded() -> None:
    assert rendered(nested(32, "{{1}}")) == nested(32, 1)
    path = "[0]" * 32
    assert fault(nested(33, "{{1}}"), "args") == f"args{path}: nested deeper than 32 levels"
    assert fault(nested(100_000, 1), "args") == f"args{path}: nested deeper than 32 levels"
    scope: dict[str, Json] = {"input": nested(30, 1)}
    assert parse_template(["{{input}}"]).render(scope).value == nested(31, 1)
    with pytest.raises(TemplateError) as caught:
        parse_template(nested(3, "{{input}}"), "args").render(scope)
    assert str(caught.value) == (
        "args[0][0][0]: the value is nested deeper than 32 levels (in `{{input}}`, column 1)"
    )


def test_size_is_bounded_over_the_whole_template() -> None:
    scope: dict[str, Json] = {"input": {"t": "x" * 400_000}}
    words = (
        "the rendered template is larger than 1,048,576 characters of JSON;"
        " store large data elsewhere and pass a reference"
    )
    for template in ({"a": ["{{input.t}}"] * 3}, {"a": ["{{input.t}}{{input.t}}", "<{{input.t}}>"]}):
        with pytest.raises(TemplateError) as caught:
            parse_template(template, "args").render(scope)
        assert caught.value.reason == words
    with pytest.raises(TemplateError) as caught:
        parse_template({"a": "{{1}}", "b": "y" * 100}, "args").render({}, max_size=50)
    assert str(caught.value) == f"args.b: {words.replace('1,048,576', '50')}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(float("nan"), "args: the number is nan, which JSON does not have", id="nan"),
        pytest.param([10**5000], "args[0]: the integer does not fit into 64 bits", id="huge"),
        pytest.param({"a": b"x"}, "args.a: the value holds a Python bytes, which is not JSON", id="bytes"),
    ],
)
def test_what_is_not_json_is_refused(value: Json, expected: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(value, "args")
    assert str(caught.value) == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_a_template_without_braces_is_itself(value: Json) -> None:
    if "{{" not in repr(value):
        assert parse_template(value).render({}) == Rendered(value)


@given(JSON)
def test_one_placeholder_keeps_any_value(value: Json) -> None:
    assert repr(parse_template("{{ input.x }}").render({"input": {"x": value}}).value) == repr(value)


@given(st.text(alphabet="{}%$'\" secretinpuKEY.x", max_size=40))
def test_hostile_text_is_never_read_as_a_template(text: str) -> None:
    found = parse_template(["{{input.x}}", "<{{input.x}}>"]).render({"input": {"x": text}})
    assert found == Rendered([text, f"<{text}>"])


@given(st.text(alphabet="{}'\" ab.?[]1+!secrt\\", max_size=60))
def test_any_text_renders_or_raises_the_one_error(text: str) -> None:
    faults: list[TemplateError] = []
    try:
        parse_template({"k": text}).render({"a": {"b": [1]}, "b": "x"})
    except TemplateError as error:
        faults.append(error)
    assert all(error.path == "k" and 1 <= error.column <= len(text) + 1 for error in faults)
