"""What arguments may hold, and how much an answer: an agent reads every byte of it."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from wfcelery.core import ids, values
from wfcelery.core.limits import DEFAULT
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput

LONGEST_TEXT: Final = 200
LONGEST_COMMENT: Final = 10_000
LONGEST_MESSAGE: Final = 2_000
MOST_TAGS: Final = 20
PAGE_BYTES: Final = 64 * 1024
"""Of payloads on one page; one thing is on it at least."""
VALUE_BYTES: Final = 8 * 1024
_BEGINS: Final = 1_000


def _plain(value: JsonValue) -> JsonValue:
    try:
        values.check(value, "", max_bytes=DEFAULT.payload_bytes)
    except InvalidInput as error:
        message = f"{error.path}: {error.reason}" if error.path else error.reason
        raise ValueError(message) from None
    return value


def _text(text: str) -> str:
    _plain(text)
    return text


Line = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(_text)]
Prose = Annotated[str, Field(max_length=LONGEST_COMMENT), AfterValidator(_text)]
Plain = Annotated[JsonValue, AfterValidator(_plain)]
RunId = Annotated[str, Field(pattern=f"^[{ids.ALPHABET}]{{{ids.LENGTH}}}$")]
Limit = Annotated[int, Field(ge=1, le=100)]
Cursor = Annotated[str, Field(min_length=1, max_length=4_096)]
Next = Annotated[
    str | None, Field(description="Give it as `cursor` to get the next page; null: there is none.")
]


class Asked(BaseModel):
    """What a tool is given: strict, and nothing that is not known."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """What a tool gives."""

    model_config = ConfigDict(extra="forbid")


def bounded(value: Json, most: int = VALUE_BYTES) -> Json:
    """Give a value, or of a large one its beginning and how large it is."""
    text = values.canonical(value)
    size = len(text.encode())
    if size <= most:
        return value
    return {"cut": True, "bytes": size, "begins": text[:_BEGINS]}


def bounded_text(text: str, most: int = LONGEST_MESSAGE) -> str:
    """Give a text, or the beginning of a long one."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
