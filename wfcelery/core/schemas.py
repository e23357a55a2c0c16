"""JSON Schema for inputs and forms: checked when a flow is defined, applied when a value comes in.

Whoever writes a schema and whoever sends a value are strangers to who applies it: the work is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from wfcelery.core.patterns import pattern
from wfcelery.core.values import Json

if TYPE_CHECKING:
    from jsonschema import ValidationError

MOST_WORK: Final = 5_000_000
_OF_A_KEYWORD: Final = 20
MOST_PROBLEMS: Final = 100
"""How much is listed at most: nobody reads more, and each may repeat what it is about."""
TOO_MUCH: Final = "is too much work to be checked by this schema"

_Keyword = Callable[..., Iterable["ValidationError"] | None]
_left: ContextVar[int] = ContextVar("left", default=MOST_WORK)


class _TooMuch(Exception):
    """All the work that may be done was done."""


def problems(schema: Mapping[str, Json], value: Json) -> list[str]:
    """List what is wrong with `value`, each with its place; empty if nothing is."""
    try:
        return [
            f"{error.json_path.removeprefix('$').lstrip('.') or 'input'}: {error.message}"
            for error in _errors(schema, value)
        ]
    except (_TooMuch, RecursionError):
        return [f"input: {TOO_MUCH}"]


def complaints(schema: Mapping[str, Json], value: Json) -> list[tuple[tuple[str | int, ...], str]]:
    """List what is wrong with `value` as (path inside of it, what is wrong)."""
    try:
        return [(tuple(error.absolute_path), error.message) for error in _errors(schema, value)]
    except (_TooMuch, RecursionError):
        return [((), TOO_MUCH)]


def _errors(schema: Mapping[str, Json], value: Json) -> Iterable[ValidationError]:
    # With its dialect named, a schema would be given to the validator of that name, and not to ours.
    plain = {name: each for name, each in schema.items() if name != "$schema"}
    _left.set(MOST_WORK)
    return islice(_validator()(plain).iter_errors(value), MOST_PROBLEMS)


@cache
def _validator() -> Any:  # noqa: ANN401 - jsonschema makes this class
    # jsonschema takes a fifth of a second to import, and most flows have no schema.
    from jsonschema import Draft202012Validator, ValidationError, validators  # noqa: PLC0415

    known = dict(Draft202012Validator.VALIDATORS)
    additional = known["additionalProperties"]

    def matching(validator: Any, source: str, value: Json, _: object) -> Iterator[ValidationError]:  # noqa: ANN401
        if validator.is_type(value, "string") and not pattern(source).is_in(str(value), _charge):
            yield ValidationError(f"{value!r} does not match {source!r}")

    def named(validator: Any, sources: Any, value: Any, _: object) -> Iterator[ValidationError]:  # noqa: ANN401
        if validator.is_type(value, "object"):
            for source, inner in sources.items():
                for name in value:
                    if pattern(source).is_in(name, _charge):
                        yield from validator.descend(value[name], inner, path=name, schema_path=source)

    def others(validator: Any, rest: Any, value: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        if validator.is_type(value, "object"):
            own, sources = schema.get("properties", {}), schema.get("patternProperties", {})
            extra = {
                name: each
                for name, each in value.items()
                if name not in own and not any(pattern(source).is_in(name, _charge) for source in sources)
            }
            yield from additional(validator, rest, extra, {}) or ()

    def differing(validator: Any, wanted: Any, value: Any, _: object) -> Iterator[ValidationError]:  # noqa: ANN401
        if wanted and validator.is_type(value, "array") and len(set(map(_same, value))) < len(value):
            yield ValidationError(f"{value!r} has non-unique elements")

    own = {
        "pattern": matching,
        "patternProperties": named,
        "additionalProperties": others,
        "uniqueItems": differing,
    }
    counted = {name: _counted(keyword) for name, keyword in {**known, **own}.items()}
    return validators.extend(Draft202012Validator, counted)  # type: ignore[no-untyped-call]


def _counted(keyword: _Keyword) -> _Keyword:
    def applied(*told: Any) -> Iterator[ValidationError]:  # noqa: ANN401 - as jsonschema calls it
        _charge(_OF_A_KEYWORD)
        for error in keyword(*told) or ():
            _charge(len(error.message))  # It may repeat a megabyte.
            yield error

    return applied


def _charge(work: int) -> None:
    left = _left.get() - work
    if left < 0:
        raise _TooMuch
    _left.set(left)


def _same(value: Json) -> object:
    """Give what is equal for values that JSON Schema holds to be equal: 1 is 1.0, and not true."""
    if isinstance(value, Mapping):
        return "map", frozenset((name, _same(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(map(_same, value))
    return ("truth", value) if isinstance(value, bool) else value
