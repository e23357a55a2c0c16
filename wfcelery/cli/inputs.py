"""Input from the command line: `key=text`, `key:=json`, `@file.json`; later ones win."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from wfcelery.core import values
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput


def parse_input(given: Sequence[str], flag: str = "-i") -> dict[str, Json]:
    """Put the parts of an input together, or raise `InvalidInput` naming the first that cannot be read."""
    merged: dict[str, Json] = {}
    for part in given:
        if part.startswith("@"):
            merged |= _from_file(part, flag)
        else:
            merged |= _from_pair(part, flag)
    return merged


def parse_json(text: str, where: str) -> Json:
    """Read strict JSON: no NaN, no key twice."""
    try:
        found = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_double)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(where, f"is not JSON: {error}") from error
    return values.check(found, where)


def parse_signal(text: str) -> tuple[str, Json]:
    """Read `NAME` or `NAME=json`."""
    name, equals, payload = text.partition("=")
    if not name:
        raise InvalidInput(f"--signal {text}", "has no name; write NAME or NAME=json")
    return name, parse_json(payload, f"--signal {name}") if equals else None


def _from_pair(part: str, flag: str) -> dict[str, Json]:
    key, equals, value = part.partition("=")
    if not equals:
        raise InvalidInput(f"{flag} {part}", "is no input; write key=text, key:=json or @file.json")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not key:
        raise InvalidInput(f"{flag} {part}", "has no key; write key=text or key:=json")
    where = f"{flag} {key}"
    return {key: parse_json(value, where) if is_json else values.check(value, where)}


def _from_file(part: str, flag: str) -> Mapping[str, Json]:
    path = Path(part.removeprefix("@"))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{flag} {part}", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{flag} {part}", "is not text in UTF-8") from error
    found = parse_json(text, f"{flag} {part}")
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{flag} {part}", f"must hold a JSON object, not {values.type_name(found)}")
    return found


def _no_constant(name: str) -> NoReturn:
    message = f"{name} is not a JSON value"
    raise ValueError(message)


def _no_double(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            message = f"the key {key!r} stands twice"
            raise ValueError(message)
        found[key] = value
    return found
