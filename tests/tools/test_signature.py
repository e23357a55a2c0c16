from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import pickle
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
import pytest

from wfcelery.tools import Context, Registry, tool
from wfcelery.tools.failures import BadArguments
from wfcelery.tools.signature import bind, check_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfcelery.tools.declare import AnyTool


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class User(pydantic.BaseModel):
    name: str
    age: int | None = None


def explode(value: int) -> int:
    raise LookupError(value)


class Opaque:
    pass


class Counting:
    def __call__(self, ctx: Context, count: int) -> int:
        return ctx.attempt * count


def take(**hints: object) -> AnyTool:
    """Make a tool `t` with one required argument for each hint."""
    names = ", ".join(hints)
    space: dict[str, Any] = {}
    exec(f"def t({names}): return dict({', '.join(f'{n}={n}' for n in hints)})", space)  # noqa: S102
    space["t"].__annotations__ = hints
    return tool(space["t"])


def wrong(given: AnyTool | Callable[..., object], **args: object) -> list[tuple[str, str]]:
    return check_arguments(
        Registry().add(given), args, lambda value: not (isinstance(value, str) and "{{" in value)
    )


FITTING: list[tuple[object, object]] = [
    (int, 3),
    (float, 3),
    (float, 3.5),
    (str, "3"),
    (bool, True),
    (None, None),
    (list, [1, "a"]),
    (list[int], [1, 2]),
    (dict, {"a": 1}),
    (dict[str, int], {"a": 1}),
    (tuple[int, str], [1, "a"]),
    (int | None, None),
    (int | str, "a"),
    (Literal["a", 1], 1),
    (Any, {"a": [None]}),
    (object, 3),
    (Point, {"x": 1}),
    (User, {"name": "Ann"}),
    (list[Point], [{"x": 1, "y": 2}]),
    (Color, "red"),
    (dt.datetime, "2026-01-31T10:00:00Z"),
    (Annotated[int, pydantic.Field(ge=0)], 0),
    ("Unknown", 3),
    ("list[Unknown]", 3),
    ("not a type", 3),
    (Opaque, 3),
    (dict[str, Opaque], 3),
    (3, 4),
    (int, "{{input.x}}"),
]


@pytest.mark.parametrize(("hint", "value"), FITTING)
def test_a_value_that_fits_its_hint_passes(hint: object, value: object) -> None:
    assert wrong(take(it=hint), it=value) == []


MISFITS: list[tuple[object, object, list[tuple[str, str]]]] = [
    (int, "3", [("it", "should be a valid integer, but is text")]),
    (int, True, [("it", "should be a valid integer, but is true or false")]),
    (int, 3.0, [("it", "should be a valid integer, but is a fraction")]),
    (int, None, [("it", "should be a valid integer, but is null")]),
    (float, "1", [("it", "should be a valid number, but is text")]),
    (float, False, [("it", "should be a valid number, but is true or false")]),
    (str, 3, [("it", "should be a valid string, but is an integer")]),
    (bool, 1, [("it", "should be a valid boolean, but is an integer")]),
    (bool, "true", [("it", "should be a valid boolean, but is text")]),
    (list[int], {"a": 1}, [("it", "should be a valid array, but is a map")]),
    (
        list[int],
        [1, "2", True],
        [
            ("it[1]", "should be a valid integer, but is text"),
            ("it[2]", "should be a valid integer, but is true or false"),
        ],
    ),
    (dict[str, list[int]], {"a": ["b"]}, [("it.a[0]", "should be a valid integer, but is text")]),
    (int | None, "x", [("it", "should be a valid integer, but is text")]),
    (
        int | str,
        [],
        [("it", "should be a valid integer or should be a valid string, but is a list")],
    ),
    (Literal["a", "b"], "c", [("it", "should be 'a' or 'b', but is text")]),
    (Literal[1], True, [("it", "should be 1, but is true or false")]),
    (Point, {"x": "1"}, [("it.x", "should be a valid integer, but is text")]),
    (Point, {"y": 1}, [("it.x", "is missing")]),
    (User, {}, [("it.name", "is missing")]),
    (Color, "blue", [("it", "should be 'red', but is text")]),
    (
        Annotated[int, pydantic.Field(ge=0)],
        -1,
        [("it", "should be greater than or equal to 0, but is an integer")],
    ),
    (Annotated[int, pydantic.AfterValidator(explode)], 1, [("it", "cannot be checked: LookupError: 1")]),
    (float, float("nan"), [("it", "is nan, which JSON does not have")]),
    (list[str], ["\x00"], [("it[0]", "holds a NUL character")]),
]


@pytest.mark.parametrize(("hint", "value", "misfits"), MISFITS)
def test_a_value_that_does_not_fit_its_hint_is_named(
    hint: object, value: object, misfits: list[tuple[str, str]]
) -> None:
    assert wrong(take(it=hint), it=value) == misfits


def test_names_that_are_missing_or_unknown_are_all_listed() -> None:
    assert wrong(take(count=int, city=str), cuont=1, zzz="{{input.x}}") == [
        ("cuont", "is not an argument of the tool `t`; did you mean `count`?"),
        ("zzz", "is not an argument of the tool `t`; it takes `count`, `city`"),
        ("count", "is missing; the tool `t` requires it"),
        ("city", "is missing; the tool `t` requires it"),
    ]


def test_a_tool_without_arguments_says_so() -> None:
    assert wrong(take(), a=1) == [("a", "is not an argument of the tool `t`; it takes none")]


def with_ctx(ctx: Context, a: int, b: int = 2) -> list[object]:
    return [ctx.run_id, a, b]


def with_other_name(a: int, *, about: Context) -> list[object]:
    return [about.run_id, a]


def with_hidden_name(about: nowhere.Context, a: int) -> list[object]:  # type: ignore[name-defined]  # noqa: F821
    return [about.run_id, a]


def with_front(ctx: Context, a: int, b: int = 2, c: int = 3, /, d: int = 4, **rest: int) -> list[object]:
    return [ctx.run_id, a, b, c, d, rest]


def with_stars(*items: int, **rest: int) -> list[object]:
    return [items, rest]


@pytest.mark.parametrize("function", [with_ctx, with_other_name, with_hidden_name])
def test_the_context_is_no_argument(function: Callable[..., object]) -> None:
    name = "ctx" if function is with_ctx else "about"
    given = Registry().add(function)
    reason = f"is not an argument of the tool `{given.name}`: the engine fills it in"
    assert wrong(given, a=1) == []
    assert wrong(given, a=1, **{name: 2}) == [(name, reason)]


def called(function: Callable[..., object], **args: object) -> object:
    given = Registry().add(function)
    positional, named = bind(given, args, Context(run_id="r1"))
    return given.function(*positional, **named)


def test_arguments_and_context_reach_the_function() -> None:
    assert called(with_ctx, a=1) == ["r1", 1, 2]
    assert called(with_other_name, a=1) == ["r1", 1]
    assert called(with_hidden_name, a=1) == ["r1", 1]


def test_positional_only_arguments_are_given_by_name_and_may_leave_gaps() -> None:
    assert called(with_front, a=1, c=30, d=40, e=50) == ["r1", 1, 2, 30, 40, {"e": 50}]
    assert wrong(with_front, b=1) == [("a", "is missing; the tool `with_front` requires it")]


def test_any_other_names_are_checked_by_the_hint_of_the_rest() -> None:
    assert called(with_stars, a=1, items=2) == [(), {"a": 1, "items": 2}]
    assert wrong(with_stars, a="1") == [("a", "should be a valid integer, but is text")]


def test_partial_functions_and_callable_objects_are_read_too() -> None:
    partial = tool(name="part")(functools.partial(with_ctx, b=7))
    assert wrong(partial, a="1") == [("a", "should be a valid integer, but is text")]
    counting = tool(name="counting")(Counting())
    assert wrong(counting, count="1") == [("count", "should be a valid integer, but is text")]


def test_a_callable_that_hides_its_signature_takes_anything() -> None:
    assert wrong(tool(name="dict")(dict), anything=1) == []


def test_hints_beyond_json_are_built_from_it() -> None:
    given = take(point=Point, user=User, color=Color, at=dt.date, pair=tuple[int, str])
    args = {
        "point": {"x": 1},
        "user": {"name": "Ann"},
        "color": "red",
        "at": "2026-01-31",
        "pair": [1, "a"],
    }
    assert bind(given, args, Context())[1] == {
        "point": Point(1),
        "user": User(name="Ann"),
        "color": Color.RED,
        "at": dt.date(2026, 1, 31),
        "pair": (1, "a"),
    }


def test_the_tool_gets_data_of_its_own() -> None:
    args = {"items": [{"a": 1}]}
    _, named = bind(take(items=Any), args, Context())
    assert named == args
    named["items"][0]["a"] = 2  # type: ignore[index]
    assert args == {"items": [{"a": 1}]}


def test_all_misfits_of_a_call_are_one_error_that_pickles() -> None:
    with pytest.raises(BadArguments) as caught:
        bind(take(count=int, city=str), {"count": "3", "town": "Bern"}, Context())
    message = (
        "the arguments do not fit the tool `t`: "
        "town: is not an argument of the tool `t`; it takes `count`, `city`; "
        "city: is missing; the tool `t` requires it; "
        "count: should be a valid integer, but is text"
    )
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message  # noqa: S301


def test_arguments_that_are_not_json_do_not_reach_the_tool() -> None:
    with pytest.raises(BadArguments) as caught:
        bind(take(it=Any), {"it": b"x"}, Context())
    reason = "arguments.it: is of type bytes, which is not JSON"
    assert str(caught.value) == f"the arguments do not fit the tool `t`: {reason}"
