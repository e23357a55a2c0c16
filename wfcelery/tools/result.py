"""What a tool returned, as plain JSON data or as a clear refusal."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from types import GeneratorType

from wfcelery.core.values import MAX_DEPTH, Json, canonical, check
from wfcelery.errors import InvalidInput
from wfcelery.tools.context import Later, Outcome
from wfcelery.tools.failures import BadResult, ResultTooLarge


def plain(value: object, max_bytes: int) -> Json:
    """Return `value` as JSON data of its own, or raise `BadResult` or `ResultTooLarge`."""
    copied = _Copy(max_bytes).of(value)
    try:
        data = check(copied, "result")
    except InvalidInput as error:
        raise BadResult(str(error)) from None
    if len(canonical(data).encode()) > max_bytes:
        raise ResultTooLarge(max_bytes)
    return data


class _Copy:
    """Copies a value once, and gives up when it is endless.

    A few nested lists that share their items can stand for more data than any memory holds, so the
    copy counts what it writes (each value is at least one byte of JSON) and watches for cycles.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.left = max_bytes
        self.open: set[int] = set()
        self.path: list[str | int] = []

    def of(self, value: object) -> object:
        self._spend(1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value)
        # The base types' own methods: a subclass (an Enum, say) may override int(), float(), str().
        if isinstance(value, int):
            return int.__index__(value)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, (Mapping, list, tuple)):
            return self._container(value)
        raise self._refused(f"is of type {type(value).__name__}, which is not JSON; {_advice(value)}")

    def _container(self, value: Mapping[object, object] | list[object] | tuple[object, ...]) -> object:
        if id(value) in self.open:
            raise self._refused("contains itself, which JSON cannot say")
        if len(self.open) >= MAX_DEPTH:
            raise self._refused(f"is nested deeper than {MAX_DEPTH} levels")
        self.open.add(id(value))
        copied: object
        if isinstance(value, Mapping):
            copied = {(text := self._key(key)): self._part(text, part) for key, part in value.items()}
        else:
            copied = [self._part(index, part) for index, part in enumerate(value)]
        self.open.discard(id(value))
        return copied

    def _part(self, place: str | int, value: object) -> object:
        self.path.append(place)
        copied = self.of(value)
        self.path.pop()
        return copied

    def _key(self, key: object) -> str:
        if not isinstance(key, str):
            kind = type(key).__name__
            raise self._refused(f"has a key of type {kind}; the keys of JSON objects are text")
        return self._text(key)

    def _text(self, value: str) -> str:
        text = str.__str__(value)
        self._spend(len(text))
        return text

    def _spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise ResultTooLarge(self.max_bytes)

    def _refused(self, reason: str) -> BadResult:
        parts = (f"[{part}]" if isinstance(part, int) else f".{part[:64]}" for part in self.path)
        return BadResult(f"result{''.join(parts)}: {reason}")


def _advice(value: object) -> str:
    if isinstance(value, (Outcome, Later)):
        return f"return the {type(value).__name__} itself, not inside other data"
    if hasattr(type(value), "model_dump"):
        return 'return value.model_dump(mode="json")'
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "return dataclasses.asdict(value)"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "decode it, or encode it with base64"
    if isinstance(value, AbstractSet):
        return "return sorted(value)"
    if isinstance(value, (dt.date, dt.time)):
        return "return value.isoformat()"
    if isinstance(value, Decimal):
        return "return str(value)"
    if isinstance(value, (GeneratorType, Iterator)):
        return "return list(value)"
    return "convert it to dict, list, text, number, bool or None"
