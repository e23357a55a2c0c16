"""What one field of a message may hold. Each check gives the value as the engine has it, or raises."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from wfcelery.core import ids, values
from wfcelery.core.messages import Kind
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.core.values import MAX_DEPTH, MAX_INTEGER, Json
from wfcelery.errors import InvalidInput

Check: TypeAlias = Callable[[Json, str], object]
"""From what JSON holds, and the place to name in an error, to the checked value."""

SHORT: Final = 255
"""Characters of a name, an id, a key."""

LONG: Final = 65_536
"""Characters of what people and exceptions say."""

MAX_COUNT: Final = 2**31 - 1
"""What an integer column holds."""

LATEST: Final = 32_503_680_000.0
"""The year 3000: a later moment is a mistake in the unit."""

DOCUMENT_DEPTH: Final = 100
"""Far deeper than a flow may be: that it is too deep is said by the check of flows, with its own words."""

_STEP: Final = re.compile(r"(?:undo:)?[A-Za-z0-9_-]{1,64}")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REF_LENGTH: Final = len(StepRef._fields)
_SHOWN: Final = 64


def text(shortest: int, longest: int) -> Check:
    """Make the check of a text of bounded length that a database can keep."""

    def check(value: Json, path: str) -> object:
        if type(value) is not str:
            raise InvalidInput(path, f"must be text, not {values.type_name(value)}")
        if not shortest <= len(value) <= longest:
            raise InvalidInput(path, f"must have {shortest} to {longest:,} characters; it has {len(value):,}")
        if not is_storable(value):
            values.check(value, path)
        return value

    return check


def whole(least: int, most: int) -> Check:
    """Make the check of a bounded whole number."""

    def check(value: Json, path: str) -> object:
        if type(value) is not int:
            raise InvalidInput(path, f"must be a whole number, not {_kind(value)}")
        if not least <= value <= most:
            raise InvalidInput(path, f"must be from {least} to {most}")
        return value

    return check


def number(least: float, most: float) -> Check:
    """Make the check of a bounded number."""

    def check(value: Json, path: str) -> object:
        if type(value) is not float and type(value) is not int:
            raise InvalidInput(path, f"must be a number, not {values.type_name(value)}")
        if not least <= value <= most:
            raise InvalidInput(path, f"must be from {least:.0f} to {most:.0f}")
        return float(value)

    return check


def several(each: Check, most: int) -> Check:
    """Make the check of a bounded list."""

    def check(value: Json, path: str) -> object:
        if type(value) is not list:
            raise InvalidInput(path, f"must be a list, not {values.type_name(value)}")
        if len(value) > most:
            raise InvalidInput(path, f"must have at most {most:,} items; it has {len(value):,}")
        return tuple([each(item, f"{path}[{index}]") for index, item in enumerate(value)])

    return check


def or_null(check: Check) -> Check:
    """Let a field be null as well."""
    return lambda value, path: None if value is None else check(value, path)


def truth(value: Json, path: str) -> object:
    """Check that it is true or false."""
    if value is not True and value is not False:
        raise InvalidInput(path, f"must be true or false, not {values.type_name(value)}")
    return value


def kind(value: Json, path: str) -> object:
    """Check the kind of a principal."""
    try:
        return Kind(value)  # type: ignore[arg-type] # whatever is not one is refused by the enumeration
    except ValueError:
        raise InvalidInput(path, f"must be one of {', '.join(Kind)}") from None


def never(value: Json, path: str) -> object:
    """Refuse what is true of a process and its terminal only: it must not come from elsewhere."""
    if value is not False:
        raise InvalidInput(path, "never travels: it is for runs in the process of the person")
    return value


def ref(value: Json, path: str) -> object:
    """Check a step's reference: a list of run, step, item, attempt and fence."""
    if type(value) is list and len(value) == _REF_LENGTH and not faults_of_ref(*value):
        return StepRef._make(value)
    if type(value) is not list or len(value) != _REF_LENGTH:
        raise InvalidInput(path, f"must be a list of {', '.join(StepRef._fields)}")
    raise InvalidInput(path, faults_of_ref(*value))


def faults_of_ref(run_id: Json, step: Json, item: Json, attempt: Json, fence: Json) -> str:
    """Say what is wrong with the parts of a step's reference; nothing if nothing is."""
    if type(run_id) is not str or not ids.is_run_id(run_id):
        return f"{shown(run_id)} is not the id of a run"
    if type(step) is not str or _STEP.fullmatch(step) is None:
        return f"{shown(step)} is not the name of a step"
    if type(item) is not int or not NO_ITEM <= item <= MAX_COUNT:
        return f"{shown(item)} is not an item: it must be from {NO_ITEM} to {MAX_COUNT}"
    if type(attempt) is not int or not 1 <= attempt <= MAX_COUNT:
        return f"{shown(attempt)} is not an attempt: it must be from 1 to {MAX_COUNT}"
    if type(fence) is not int or not 0 <= fence <= MAX_INTEGER:
        return f"{shown(fence)} is not a fence: it must be from 0 to {MAX_INTEGER}"
    return ""


def begun(value: Json, path: str) -> object:
    """Check a step under way: a list of its reference and the moment it began."""
    if type(value) is not list or len(value) != len(("ref", "moment")):
        raise InvalidInput(path, "must be a list of a step's reference and a moment")
    return ref(value[0], f"{path}[0]"), moment(value[1], f"{path}[1]")


def payload(value: Json, path: str) -> object:
    """Check a value of the user: plain JSON that every later layer can carry."""
    if not _is_plain(value, MAX_DEPTH):
        values.check(value, path)
    return value


def document(value: Json, path: str) -> object:
    """Check only that it can be walked through: flows are checked later, with words of their own."""
    if not _is_walkable(value, DOCUMENT_DEPTH):
        raise InvalidInput(path, f"is nested deeper than {DOCUMENT_DEPTH} levels")
    return value


def mapping(value: Json, path: str) -> object:
    """Check a value of the user that must be a map."""
    if type(value) is not dict:
        raise InvalidInput(path, f"must be a map, not {values.type_name(value)}")
    return payload(value, path)


def is_storable(value: str) -> bool:
    """Tell whether every database can keep the text."""
    # `isascii` reads a flag and NUL is looked for by memchr: the pattern is for the few that need it.
    return "\x00" not in value and (value.isascii() or _UNSTORABLE.search(value) is None)


def shown(value: Json) -> str:
    """Show a hostile value in a message: short, and in printable ASCII."""
    if isinstance(value, dict | list):
        return values.type_name(value)  # However deep it is: `repr` would walk through it.
    written = ascii(value[:_SHOWN] if isinstance(value, str) else value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}..."


def _kind(value: Json) -> str:
    return "a fraction" if isinstance(value, float) else values.type_name(value)


def _is_plain(value: Json, depth: int) -> bool:
    """Say quickly what `values.check` says with a place: whether all of what `json` has read may pass."""
    if value is None or value is True or value is False:
        return True
    if type(value) is str:
        return is_storable(value)
    if type(value) is int:
        return -MAX_INTEGER <= value <= MAX_INTEGER
    if type(value) is float:
        return float("-inf") < value < float("inf")
    if type(value) is dict:
        return depth > 0 and all(
            is_storable(key) and _is_plain(each, depth - 1) for key, each in value.items()
        )
    if type(value) is list:
        return depth > 0 and all(_is_plain(each, depth - 1) for each in value)
    return False


def _is_walkable(value: Json, depth: int) -> bool:
    if type(value) is dict:
        return depth > 0 and all(_is_walkable(each, depth - 1) for each in value.values())
    if type(value) is list:
        return depth > 0 and all(_is_walkable(each, depth - 1) for each in value)
    return True


short: Final = text(1, SHORT)
free: Final = text(0, SHORT)
long: Final = text(0, LONG)
moment: Final = number(0.0, LATEST)
