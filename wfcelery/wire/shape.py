"""A dataclass as a JSON object: written field by field, read back with every field checked."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from wfcelery.core import values
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.wire import fields
from wfcelery.wire.fields import Check

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """How one class is written and read.

    A field that holds its default is left out, and one that is left out holds it: a field that a later
    version adds does not make the messages of older processes unreadable.
    """

    name: str
    make: Callable[..., T]
    checks: Mapping[str, Check]
    required: frozenset[str]
    defaults: tuple[tuple[str, object], ...]
    payloads: tuple[str, ...]

    def write(self, thing: T) -> dict[str, object]:
        """Write the fields that say something."""
        written = {}
        for name, default in self.defaults:
            value = getattr(thing, name)
            if value is not default:
                written[name] = value
        return written

    def read(self, raw: Json, path: str) -> T:
        """Make the thing from what a JSON object says; raises `InvalidInput` at the first fault."""
        if type(raw) is not dict:
            raise InvalidInput(path, f"must be a map, not {values.type_name(raw)}")
        return self.made(raw, f"{path}.")

    def made(self, raw: dict[str, Json], prefix: str) -> T:
        """Check each field and put them together; `prefix` stands before their names in errors."""
        checks = self.checks
        found = {}
        for name, value in raw.items():
            check = checks.get(name)
            if check is None:
                raise InvalidInput(f"{prefix}{fields.shown(name)}", self._unknown(name))
            found[name] = check(value, prefix + name)
        if not self.required <= found.keys():
            missing = ", ".join(sorted(self.required - found.keys()))
            raise InvalidInput(f"{prefix}{missing}", f"is missing in {self.name}")
        return self.make(**found)

    def _unknown(self, name: str) -> str:
        close = difflib.get_close_matches(name[: fields.SHORT], self.checks, n=1)
        return f"is not a field of {self.name}" + (f"; did you mean {close[0]}?" if close else "")


def shape_of(cls: type[T], checks: Mapping[str, Check]) -> Shape[T]:
    """Build the shape of a dataclass; `checks` has one for `Class.field`, or else for `field`.

    A field that says so in its type may be null. A field without a check is a mistake found at import.
    """
    found = {}
    defaults = []
    for field in dataclasses.fields(cls):  # type: ignore[arg-type] # every class given is a dataclass
        check = checks.get(f"{cls.__name__}.{field.name}") or checks[field.name]
        found[field.name] = fields.or_null(check) if str(field.type).endswith("| None") else check
        defaults.append((field.name, field.default))
    return Shape(
        name=cls.__name__,
        make=cls,
        checks=found,
        required=frozenset(name for name, default in defaults if default is dataclasses.MISSING),
        defaults=tuple(defaults),
        payloads=tuple(name for name, check in found.items() if check is fields.payload),
    )
