"""YAML 1.2, and of it what JSON can say: no anchors, aliases, tags or merge keys; dates stay text.

The parser gives a stream of events; the data is built here, so that a bomb is refused where it begins, and
`on`, `yes` and `no` are the text they look like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from wfcelery.core.faults import Fault
from wfcelery.core.reading.from_json import duplicate_key
from wfcelery.core.reading.place import LineColumn, Path, Place, spell
from wfcelery.core.reading.plain import MOST_FAULTS, too_deep
from wfcelery.core.values import MAX_INTEGER
from wfcelery.errors import InvalidFlow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wfcelery.core.limits import Limits

_NULL: Final = re.compile(r"~|null|Null|NULL|")
_TRUE: Final = re.compile(r"true|True|TRUE")
_FALSE: Final = re.compile(r"false|False|FALSE")
_DECIMAL: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MOST_DIGITS: Final = 25
_FEATURE_HINT: Final = "write the value out where it is used"


def parse(text: str, limits: Limits) -> tuple[object, Place]:
    """Return the data and the way to find places in it, or raise `InvalidFlow`."""
    builder = _Builder(limits)
    try:
        for event in _events(text, limits):
            builder.take(event)
    except MarkedYAMLError as error:
        raise InvalidFlow((_syntax_fault(error),)) from None
    except ReaderError as error:
        raise InvalidFlow((_character_fault(text, error),)) from None
    except (YAMLError, ValueError, OverflowError, LookupError, AttributeError, TypeError) as error:
        # The parser's own slips on broken text; whatever they are, the text is at fault.
        reason = str(error).partition("\n")[0]
        fault = Fault("bad-syntax", f"the YAML does not parse: {reason}", hint="check quotes and indentation")
        raise InvalidFlow((fault,)) from None
    return builder.end()


class _BoundedScanner(Scanner):
    """Stops at too many open brackets: the scanner looks far ahead of the events it gives."""

    deepest = 0

    def fetch_flow_collection_start(self, token_class: object, to_push: str) -> None:
        if len(self.flow_context) >= self.deepest:
            mark = self.reader.get_mark()
            raise _TooDeep(mark.line + 1, mark.column + 1)
        super().fetch_flow_collection_start(token_class, to_push)


class _TooDeep(Exception):
    pass


def _events(text: str, limits: Limits) -> Iterator[events.Event]:
    class Bounded(_BoundedScanner):
        deepest = limits.depth

    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = Bounded
    try:
        yield from yaml.parse(text)
    except _TooDeep as error:
        line, column = error.args
        raise InvalidFlow((too_deep(limits, (), line, column),)) from None


@dataclass(slots=True)
class _Frame:
    """A list or map that is being built."""

    path: Path
    into: list[object] | dict[str, object]
    key: str | None = None
    keys: dict[str, LineColumn] = field(default_factory=dict)


class _Builder:
    """Takes events and makes plain data, with the place of each value (that of its key, within a map)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._frames: list[_Frame] = []
        self._faults: list[Fault] = []
        self._places: dict[Path, LineColumn] = {}
        self._documents = 0
        self._data: object = None

    def take(self, event: events.Event) -> None:
        match event:
            case events.DocumentStartEvent():
                self._begin(event)
            case events.AliasEvent():
                self._refuse(event, f"the alias `*{event.anchor}`")
                self._put(None, event)
            case events.ScalarEvent():
                self._refuse_extras(event)
                self._scalar(event)
            case events.SequenceStartEvent() | events.MappingStartEvent():
                self._refuse_extras(event)
                self._open(event, {} if isinstance(event, events.MappingStartEvent) else [])
            case events.SequenceEndEvent() | events.MappingEndEvent():
                self._frames.pop()
            case _:
                pass

    def end(self) -> tuple[object, Place]:
        """Give the data and its places, or raise every fault."""
        if not self._documents:
            raise InvalidFlow((empty(),))
        if self._faults:
            raise InvalidFlow(tuple(self._faults[:MOST_FAULTS]))
        places = self._places

        def place(path: Path) -> LineColumn | None:
            return next(
                (places[path[:size]] for size in range(len(path), -1, -1) if path[:size] in places), None
            )

        return self._data, place

    def _begin(self, event: events.DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            line, column = _mark(event)
            message = "a second document begins here; a flow is one document"
            hint = "put each flow in its own file"
            raise InvalidFlow((*self._faults, Fault("several-documents", message, "", line, column, hint)))
        if event.tags:
            self._refuse(event, "a %TAG directive")
        if event.version and tuple(event.version) != (1, 2):
            self._refuse(event, f"YAML {'.'.join(map(str, event.version))}")

    def _scalar(self, event: events.ScalarEvent) -> None:
        plain = event.style is None
        frame = self._frames[-1] if self._frames else None
        if frame is None or isinstance(frame.into, list) or frame.key is not None:
            self._put(_resolve(event.value) if plain else event.value, event)
            return
        value = _resolve(event.value) if plain else event.value
        if event.value == "<<" and plain:
            self._refuse(event, "the merge key `<<`")
        elif not isinstance(value, str):
            self._bad_key(frame, event, f"the key `{event.value}` is not text")
        self._name(frame, event.value, event)

    def _name(self, frame: _Frame, key: str, event: events.Event) -> None:
        path, here = (*frame.path, key), _mark(event)
        if key in frame.keys:
            self._faults.append(duplicate_key(path, frame.keys[key], here))
        frame.keys[key] = self._places[path] = here
        frame.key = key

    def _open(self, event: events.CollectionStartEvent, into: list[object] | dict[str, object]) -> None:
        if len(self._frames) >= self._limits.depth:
            line, column = _mark(event)
            raise InvalidFlow((*self._faults, too_deep(self._limits, self._frames[-1].path, line, column)))
        frame = self._frames[-1] if self._frames else None
        if frame is not None and isinstance(frame.into, dict) and frame.key is None:
            self._bad_key(frame, event, "a list or map stands where a key is expected")
            self._frames.append(_Frame(frame.path, into))
            # What is inside is read and thrown away; its value then finds a key to go to.
            frame.key = ""
            return
        self._frames.append(_Frame(self._put(into, event), into))

    def _put(self, value: object, event: events.Event) -> Path:
        """Put a value where it belongs, and give its path."""
        path: Path = ()
        if not self._frames:
            self._data = value
        else:
            frame = self._frames[-1]
            if isinstance(frame.into, list):
                path = (*frame.path, len(frame.into))
                frame.into.append(value)
            else:
                path = (*frame.path, frame.key or "")
                frame.into[frame.key or ""] = value
                frame.key = None
        self._places.setdefault(path, _mark(event))
        return path

    def _bad_key(self, frame: _Frame, event: events.Event, message: str) -> None:
        hint = 'write it in quotes, as you do with a template: "{{input.x}}"'
        self._faults.append(Fault("bad-key", message, spell(frame.path), *_mark(event), hint))

    def _refuse_extras(self, event: events.ScalarEvent | events.CollectionStartEvent) -> None:
        if event.anchor is not None:
            self._refuse(event, f"the anchor `&{event.anchor}`")
        if event.tag is not None:
            self._refuse(event, f"the tag `{event.tag}`")

    def _refuse(self, event: events.Event, what: str) -> None:
        message = f"{what} is not part of the flow language"
        line, column = _mark(event)
        path = self._frames[-1].path if self._frames else ()
        self._faults.append(Fault("yaml-feature", message, spell(path), line, column, _FEATURE_HINT))


def empty() -> Fault:
    """Say that there is nothing to read."""
    return Fault("empty", "there is no flow in it", hint="a flow is a map with `start` and its steps")


def _resolve(text: str) -> object:
    """Read a plain scalar by the core schema of YAML 1.2."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _DECIMAL.fullmatch(text):
        return int(text) if len(text) <= _MOST_DIGITS else MAX_INTEGER + 1
    if _OCTAL.fullmatch(text):
        return int(text, 0)
    if _HEX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) or _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1) if _SPECIAL.fullmatch(text) else text)
    return text


def _mark(event: events.Event) -> LineColumn:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _syntax_fault(error: MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    reason = error.problem or error.context or "it is not YAML"
    context = f"{error.context}, " if error.context and error.problem else ""
    message = f"the YAML does not parse: {context}{reason}"
    hint = "check quotes, brackets and indentation; text that begins with `{{` stands in quotes"
    return Fault("bad-syntax", message, "", line, column, hint)


def _character_fault(text: str, error: ReaderError) -> Fault:
    before = text[: error.position]
    line, column = before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1
    found = text[error.position] if error.position < len(text) else ""
    message = f"the character {found!r} may not stand in a flow"
    return Fault(
        "bad-text", message, "", line, column, "write it as an escape in double quotes, or remove it"
    )
