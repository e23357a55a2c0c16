"""JSON values: what may pass, how it is written in one way only, and its digest.

A value that comes from outside is checked once, here, so that every later layer may trust it:
no NaN, no huge number, no NUL or lone surrogate (PostgreSQL refuses them), no endless nesting.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from wfcelery.errors import InvalidInput

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
)
MAX_DEPTH: Final = 32
MAX_INTEGER: Final = 2**63 - 1


def check(value: object, path: str, *, max_bytes: int | None = None, max_depth: int = MAX_DEPTH) -> Json:
    """Return `value` as plain JSON data, or raise `InvalidInput` naming the first place that is not."""
    plain = _plain(value, path, max_depth)
    if max_bytes is not None:
        size = len(canonical(plain).encode())
        if size > max_bytes:
            reason = f"is {size:,} bytes of JSON; at most {max_bytes:,} are allowed"
            raise InvalidInput(path, f"{reason}. Store large data elsewhere and pass a reference")
    return plain


def canonical(value: Json) -> str:
    """Write `value` in the one way in which equal values are equal texts."""
    return _ENCODER.encode(value)


def digest(text: str) -> str:
    """Name a canonical text by its content: 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object, path: str, depth: int) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise InvalidInput(path, "is an integer beyond 64 bits; write it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(path, f"is {value}, which JSON does not have")
        return float(value)
    if depth <= 0:
        raise InvalidInput(path, f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {_key(key, path): _plain(item, f"{path}.{key}", depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{path}[{index}]", depth - 1) for index, item in enumerate(value)]
    raise InvalidInput(path, f"is of type {type(value).__name__}, which is not JSON")


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(path, f"has the key {key!r}, which is not text")
    return _text(key, path)


def _text(value: str, path: str) -> str:
    if "\x00" in value:
        raise InvalidInput(path, "holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(path, "holds a lone surrogate, which is not valid text") from None
    return str.__str__(value)


def type_name(value: Json) -> str:
    """Name the type of a JSON value in words people use."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a map" if isinstance(value, Mapping) else "a list"
