"""Secrets in templates: references until the last moment.

Rendering leaves the readable text `{{secret.NAME}}` in the value and notes apart, per JSON pointer, which
pieces of which text are references. Only those places are ever resolved: a user's own text that happens to
look like a reference stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wfcelery.errors import InvalidInput

if TYPE_CHECKING:
    from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A secret by its name; as text it is the placeholder."""

    name: str

    def __str__(self) -> str:
        return f"{{{{secret.{self.name}}}}}"


Secrets: TypeAlias = Mapping[str, tuple[str | SecretRef, ...]]
"""From the JSON pointer of a text to its pieces."""


def resolve_secrets(value: Json, secrets: Secrets, lookup: Callable[[str], str]) -> Json:
    """Put the secrets that `lookup` gives where `secrets` says, and touch nothing else."""
    for pointer, parts in secrets.items():
        text = "".join(lookup(part.name) if isinstance(part, SecretRef) else part for part in parts)
        keys = [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
        value = _replaced(value, keys, "".join(map(str, parts)), text, pointer)
    return value


def encode_secrets(secrets: Secrets) -> dict[str, Json]:
    """Write `secrets` as JSON: a text is itself, a reference is `{"secret": NAME}`."""
    return {
        pointer: [{"secret": part.name} if isinstance(part, SecretRef) else part for part in parts]
        for pointer, parts in secrets.items()
    }


def decode_secrets(value: Json) -> Secrets:
    """Read what `encode_secrets` wrote."""
    if not isinstance(value, Mapping):
        raise InvalidInput("secrets", "is not a map from JSON pointers to pieces of text")
    return {pointer: _decoded(pointer, parts) for pointer, parts in value.items()}


def pointer_to(parent: str, key: str | int) -> str:
    """Extend a JSON pointer by one step."""
    return f"{parent}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _replaced(value: Json, keys: list[str], before: str, after: str, pointer: str) -> Json:
    """Copy only along the way to the text, so that values shared with others stay as they are."""
    if not keys:
        if value != before:
            raise InvalidInput(pointer or "/", "is not the text that the secrets belong to")
        return after
    key, rest = keys[0], keys[1:]
    if isinstance(value, Mapping) and key in value:
        return {**value, key: _replaced(value[key], rest, before, after, pointer)}
    if isinstance(value, (list, tuple)) and key in map(str, range(len(value))):
        items = list(value)
        items[int(key)] = _replaced(items[int(key)], rest, before, after, pointer)
        return items
    raise InvalidInput(pointer, "is not there, though a secret belongs to it")


def _decoded(pointer: str, parts: Json) -> tuple[str | SecretRef, ...]:
    if not isinstance(parts, (list, tuple)):
        raise InvalidInput(f"secrets{pointer}", "is not a list of pieces of text")
    found: list[str | SecretRef] = []
    for part in parts:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, Mapping) and part.keys() == {"secret"} and isinstance(part["secret"], str):
            found.append(SecretRef(part["secret"]))
        else:
            raise InvalidInput(f"secrets{pointer}", "holds a piece that is neither text nor a secret")
    return tuple(found)
