"""What the operators do with JSON values.

A value that does not fit raises `Unfit` with the reason; the evaluator knows the place and says it.
`true` is never 1, `1 == 1.0`, and nothing is converted silently.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from wfcelery.core.values import MAX_DEPTH, MAX_INTEGER, Json

if TYPE_CHECKING:
    from wfcelery.core.expressions.syntax import ArithmeticSign, ComparisonSign

MAX_TEXT: Final = 2**20
MAX_ITEMS: Final = 100_000


class Unfit(Exception):
    """The values do not fit the operation; the one argument says why."""


class Spend(Protocol):
    """Take note of `amount` elements looked at; raises `Unfit` when that is too much for one evaluation."""

    def __call__(self, amount: int, /) -> None:
        """Count the work."""


def kind(value: object) -> str:
    """Name the kind of `value` as messages do."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "a map"
    return f"a Python {type(value).__name__}"


def is_number(value: object) -> bool:
    """Tell numbers from everything else; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(left: Json, right: Json, spend: Spend, depth: int = MAX_DEPTH) -> bool:
    """Compare by value; values of different kinds are never equal."""
    if isinstance(left, (str, bool)) or left is None:
        return type(left) is type(right) and left == right
    if isinstance(left, (int, float)):
        return is_number(right) and left == right
    if depth <= 0:
        raise Unfit(f"the values are nested deeper than {MAX_DEPTH} levels")
    if isinstance(left, Mapping):
        if not isinstance(right, Mapping) or len(left) != len(right):
            return False
        spend(len(left))
        return all(key in right and equal(left[key], right[key], spend, depth - 1) for key in left)
    if not isinstance(left, (list, tuple)) or not isinstance(right, (list, tuple)) or len(left) != len(right):
        return False
    spend(len(left))
    return all(equal(a, b, spend, depth - 1) for a, b in zip(left, right, strict=True))


def compare(sign: ComparisonSign, left: Json, right: Json, spend: Spend) -> bool:
    """Decide `left sign right`."""
    if sign == "==":
        return equal(left, right, spend)
    if sign == "!=":
        return not equal(left, right, spend)
    if sign == "in":
        return within(left, right, spend)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and not _any_bool(left, right):
        return _ordered(sign, left < right, left == right)
    if isinstance(left, str) and isinstance(right, str):
        return _ordered(sign, left < right, left == right)
    raise Unfit(f"`{sign}` compares two numbers or two texts, not {kind(left)} with {kind(right)}")


def arithmetic(sign: ArithmeticSign, left: Json, right: Json) -> Json:
    """Compute `left sign right`; `+` also joins two texts or two lists."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)) and not _any_bool(left, right):
        return checked(_computed(sign, left, right))
    if sign == "+" and isinstance(left, str) and isinstance(right, str):
        fits(len(left) + len(right), MAX_TEXT, "characters")
        return left + right
    if sign == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        fits(len(left) + len(right), MAX_ITEMS, "elements")
        return [*left, *right]
    takes = "two numbers, two texts or two lists" if sign == "+" else "two numbers"
    raise Unfit(f"`{sign}` takes {takes}, not {kind(left)} and {kind(right)}")


def checked(number: float) -> float:
    """Pass a number that JSON and 64 bits can hold."""
    if isinstance(number, int):
        if -MAX_INTEGER <= number <= MAX_INTEGER:
            return number
        raise Unfit("the integer does not fit into 64 bits")
    if math.isfinite(number):
        return number
    raise Unfit(f"the number is {number}, which JSON does not have")


def within(needle: Json, where: Json, spend: Spend) -> bool:
    """Look for an element of a list or a key of a map."""
    if isinstance(where, Mapping):
        return isinstance(needle, str) and needle in where
    if isinstance(where, (list, tuple)):
        spend(len(where))
        if not isinstance(needle, (list, tuple, Mapping)) and needle not in where:
            return False  # the quick way: what Python finds unequal is unequal to us
        return any(equal(needle, item, spend) for item in where)
    hint = "; for a text write text.contains(part)" if isinstance(where, str) else ""
    raise Unfit(f"`in` looks into a list or the keys of a map, not {kind(where)}{hint}")


def _computed(sign: ArithmeticSign, left: float, right: float) -> float:
    try:
        return _ARITHMETIC[sign](left, right)
    except ZeroDivisionError:
        raise Unfit(f"`{sign}` by zero") from None
    except OverflowError:
        raise Unfit("the number does not fit into 64 bits") from None


def _divided(left: float, right: float) -> float:
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def _remainder(left: float, right: float) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return left - right * int(_divided(left, right))
    if right == 0 or not math.isfinite(left):
        raise ZeroDivisionError
    return math.fmod(left, right)


def _any_bool(left: object, right: object) -> bool:
    return isinstance(left, bool) or isinstance(right, bool)


def fits(size: int, limit: int, unit: str) -> None:
    """Refuse a result that would be too large, before it is made."""
    if size > limit:
        raise Unfit(f"the result would have {size:,} {unit}; at most {limit:,} are allowed")


def _ordered(sign: ComparisonSign, less: bool, same: bool) -> bool:  # noqa: FBT001 (the two outcomes)
    match sign:
        case "<":
            return less
        case "<=":
            return less or same
        case ">":
            return not (less or same)
        case _:
            return not less


_ARITHMETIC: Final[dict[ArithmeticSign, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _remainder,
}
