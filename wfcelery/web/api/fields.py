"""What the fields of requests may hold: text that every table takes, whole numbers, moments, JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from wfcelery.core import values
from wfcelery.core.limits import DEFAULT
from wfcelery.errors import InvalidInput

LONGEST_TEXT: Final = 200
LONGEST_COMMENT: Final = 10_000
MOST_TAGS: Final = 100
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _writable(text: str) -> str:
    if "\x00" in text:
        message = "holds a NUL character"
        raise ValueError(message)
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "holds a lone surrogate, which is not valid text"
        raise ValueError(message) from None
    return text


def _whole(value: object) -> object:
    """Read a number of a query; anything that only looks like one is left as it is, and refused."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _flag(value: object) -> object:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = "is no moment; write it like 2030-01-31T12:00:00Z"
        raise ValueError(message) from None
    if moment.tzinfo is None:
        message = "has no time zone; write Z for UTC, or +02:00, at its end"
        raise ValueError(message)
    try:
        fits = moment.astimezone(UTC) >= _EARLIEST
    except OverflowError:
        fits = False
    if not fits:
        message = "lies outside of the years 1970 to 9999"
        raise ValueError(message)
    return text


def _plain(value: JsonValue) -> JsonValue:
    try:
        values.check(value, "", max_bytes=DEFAULT.payload_bytes)
    except InvalidInput as error:
        message = f"{error.path}: {error.reason}" if error.path else error.reason
        raise ValueError(message) from None
    return value


Line = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(_writable)]
Prose = Annotated[str, Field(max_length=LONGEST_COMMENT), AfterValidator(_writable)]
Moment = Annotated[
    str,
    Field(max_length=64),
    AfterValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 64}),
]
"""ISO 8601 with its time zone; `datetime.fromisoformat` reads it."""

Plain = Annotated[JsonValue, AfterValidator(_plain)]
"""Any JSON, up to 1 MiB and 32 levels."""

Document = JsonValue
"""A flow: what is wrong with it is said as faults of the flow, all at once."""

AfterSeq = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=2**53)]
Version = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=999_999_999)]
Attempt = Annotated[int, Field(ge=1, le=2**31 - 1)]
Limit = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=200)]
LongLimit = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=1_000)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Cursor = Annotated[str, Field(min_length=1, max_length=4_096)]


def number(text: str) -> int | None:
    """Read a whole number of ordinary digits, of at most 15 of them; None if it is none."""
    return int(text) if _NUMBER.fullmatch(text) else None


def seconds(moment: str | None) -> float | None:
    """Give a moment in seconds since 1970."""
    return None if moment is None else datetime.fromisoformat(moment).timestamp()


class Asked(BaseModel):
    """What a client sends: strict, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """What a client gets; for the OpenAPI document, and for the tests, which hold every answer to it."""

    model_config = ConfigDict(extra="forbid")


class Nothing(Asked):
    """No fields at all."""
