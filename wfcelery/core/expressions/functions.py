"""What the functions and methods do with JSON values, and how a value becomes text or plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from wfcelery.core.expressions.operations import MAX_TEXT, Spend, Unfit, checked, fits, kind, within
from wfcelery.core.values import MAX_DEPTH, Json, canonical

if TYPE_CHECKING:
    from wfcelery.core.expressions.syntax import Function, MethodName


def call(function: Function, value: Json, spend: Spend) -> Json:
    """Apply one of the functions."""
    match function:
        case "size":
            if isinstance(value, (str, list, tuple, Mapping)):
                return len(value)
            raise Unfit(f"size() takes a text, a list or a map, not {kind(value)}")
        case "string":
            return as_text(value, spend)
        case "int":
            return _integer(value)
        case "double":
            return _double(value)


def method(name: MethodName, value: Json, arguments: list[Json], spend: Spend) -> Json:
    """Apply one of the methods."""
    if name == "join":
        return _joined(value, arguments[0], spend)
    if name == "contains" and isinstance(value, (list, tuple)):
        return within(arguments[0], value, spend)
    if not isinstance(value, str):
        takes = "a text or a list" if name == "contains" else "a text"
        raise Unfit(f"{name}() is for {takes}, not {kind(value)}")
    if not arguments:
        return _TEXT_METHODS[name](value)
    other = arguments[0]
    if not isinstance(other, str):
        raise Unfit(f"{name}() takes a text, not {kind(other)}")
    if name == "startsWith":
        return value.startswith(other)
    return value.endswith(other) if name == "endsWith" else other in value


def as_text(value: Json, spend: Spend) -> str:
    """Write `value` as it stands inside a text: texts as they are, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(checked(value))
    text = canonical(plain(value, spend, MAX_DEPTH))
    fits(len(text), MAX_TEXT, "characters")
    return text


def plain(value: Json, spend: Spend, depth: int) -> Json:
    """Copy `value` into plain dicts and lists at most `depth` deep, spending about its length as JSON."""
    if value is None or isinstance(value, bool):
        spend(5)
        return value
    if isinstance(value, str):
        spend(len(value) + 3)
        return value
    if isinstance(value, (int, float)):
        spend(len(repr(checked(value))) + 1)
        return value
    if depth <= 0:
        raise Unfit(f"the value is nested deeper than {MAX_DEPTH} levels")
    spend(2)
    if isinstance(value, Mapping):
        return {_key(key, spend): plain(item, spend, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, spend, depth - 1) for item in value]
    raise Unfit(f"the value holds {kind(value)}, which is not JSON")


def _key(key: object, spend: Spend) -> str:
    if not isinstance(key, str):
        raise Unfit(f"the value holds {kind(key)} as a key, which is not JSON")
    spend(len(key) + 3)
    return key


def _joined(value: Json, separator: Json, spend: Spend) -> str:
    if not isinstance(value, (list, tuple)):
        raise Unfit(f"join() is for a list, not {kind(value)}")
    if not isinstance(separator, str):
        raise Unfit(f"join() takes a text, not {kind(separator)}")
    spend(len(value))
    parts: list[str] = []
    for item in value:
        if not isinstance(item, str):
            raise Unfit(f"join() is for a list of texts, and this one holds {kind(item)}")
        parts.append(item)
    fits(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1), MAX_TEXT, "characters")
    return separator.join(parts)


def _integer(value: Json) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(checked(int(value)))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(checked(int(checked(value))))
    shown = f"the text {_shown(value)}" if isinstance(value, str) else kind(value)
    raise Unfit(f"int() takes a number or a text of digits, not {shown}")


def _double(value: Json) -> float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return checked(float(value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(checked(value))
    shown = f"the text {_shown(value)}" if isinstance(value, str) else kind(value)
    raise Unfit(f"double() takes a number or a text like 1.5, not {shown}")


def _shown(text: str) -> str:
    return canonical(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _ascii(change: Callable[[bytes], bytes]) -> Callable[[str], str]:
    # In UTF-8 every byte of another letter is beyond ASCII, so changing bytes touches A-Z and a-z only.
    return lambda text: change(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


_SHOWN: Final = 40
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,5})?", re.ASCII)
_TEXT_METHODS: Final[dict[str, Callable[[str], str]]] = {
    "lowerAscii": _ascii(bytes.lower),
    "upperAscii": _ascii(bytes.upper),
    "trim": str.strip,
}
