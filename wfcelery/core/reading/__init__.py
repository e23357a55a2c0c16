"""From text to plain data with places: YAML and JSON, nothing else, and never an error but `InvalidFlow`."""

from __future__ import annotations

from dataclasses import dataclass

from wfcelery.core.faults import Fault
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.reading import from_json, from_yaml
from wfcelery.core.reading.place import Path, Place, nowhere, spell
from wfcelery.core.reading.plain import faults_of_values, too_large
from wfcelery.errors import InvalidFlow

__all__ = ["Document", "Path", "Place", "faults_of_values", "nowhere", "read", "spell"]


@dataclass(frozen=True, slots=True)
class Document:
    """What was read: plain JSON data, and `place`, which finds the line and column of a path in it."""

    data: object
    place: Place
    source: str = "flow"


def read(text: str | bytes, *, source: str = "flow", limits: Limits = DEFAULT) -> Document:
    """Read YAML or JSON (text that begins with `{` or `[`), or raise `InvalidFlow`."""
    plain = _decoded(text, limits)
    if not plain.strip():
        raise InvalidFlow((from_yaml.empty(),))
    reader = from_json if plain.lstrip(" \t\r\n")[:1] in ("{", "[") else from_yaml
    data, place = reader.parse(plain, limits)
    faults = faults_of_values(data, place=place, limits=limits)
    if faults:
        raise InvalidFlow(tuple(faults))
    return Document(data, place, source)


def _decoded(text: str | bytes, limits: Limits) -> str:
    """Give the text itself, without a byte order mark."""
    if isinstance(text, str):
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            before = text[: error.start]
            line, column = before.count("\n") + 1, error.start - (before.rfind("\n") + 1) + 1
            message = "the text holds a lone surrogate, which is not valid text"
            fault = Fault("bad-text", message, "", line, column, "write the whole character")
            raise InvalidFlow((fault,)) from None
        plain = text
    else:
        size = len(text)
        if size <= limits.flow_bytes:
            try:
                plain = bytes(text).decode()
            except UnicodeDecodeError as error:
                message = f"these bytes are not text in UTF-8 (byte {error.start + 1:,})"
                raise InvalidFlow((Fault("not-text", message, hint="save the file as UTF-8"),)) from None
        else:
            plain = ""
    if size > limits.flow_bytes:
        raise InvalidFlow((too_large(limits, f"{size:,} bytes"),))
    plain = plain.removeprefix("\ufeff")
    if "\x00" in plain:
        raise InvalidFlow(
            (Fault("not-text", "it holds NUL bytes, so it is not text", hint="save the file as UTF-8"),)
        )
    return plain
