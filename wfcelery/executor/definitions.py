"""Defining flows: checked, pinned, and kept for ever under a digest of what they say."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from wfcelery.core import ids, values
from wfcelery.core.catalogue import ToolCatalogue
from wfcelery.core.document import canonical_document, compile_flow, flow_references, pin
from wfcelery.core.faults import Fault
from wfcelery.core.flow import Flow
from wfcelery.core.limits import Limits
from wfcelery.core.validate import check_flow, gated
from wfcelery.core.values import Json
from wfcelery.errors import NotFound
from wfcelery.store import definitions

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from wfcelery.core.reading import Place

CACHED_FLOWS: Final = 256
MAX_DIGITS: Final = 9
"""Of the number of a version: the column holds no larger ones."""


# What was accepted once stays so: a limit that is lowered later must not stop the runs that are under way.
_ACCEPTED: Final = Limits(flow_bytes=2**31, depth=2**31, steps=2**31, edges=2**31)


@dataclass(frozen=True, slots=True)
class Defined:
    """A definition that is in the tables."""

    id: str
    name: str
    version: int
    flow: Flow


class Definitions:
    """Finds and makes definitions; compiled flows are kept, for they never change."""

    def __init__(self, tools: ToolCatalogue | None, limits: Limits) -> None:
        self._tools = tools
        self._limits = limits
        self._known: OrderedDict[str, Defined] = OrderedDict()
        self._defined: dict[tuple[str | None, str], Defined] = {}

    def get(self, conn: Connection, definition_id: str) -> Defined:
        """Give the definition with that id, deleted or not: runs keep theirs for life."""
        known = self._known.pop(definition_id, None)
        if known is not None:
            self._known[definition_id] = known
            return known
        row = definitions.get(conn, definition_id)
        if row is None:
            raise NotFound("definition", definition_id)
        document = json.loads(row.document)
        flow = pin(compile_flow(document, name=row.name, limits=_ACCEPTED), _unwritten(row.pins))
        return self._keep(Defined(row.id, row.name, row.version, replace(flow, author=row.created_by)))

    def find(self, conn: Connection, flow: str) -> Defined:
        """Give the definition that a name, `name@version` or id means for a new run."""
        name, _, version = flow.partition("@")
        if version and not (version.isdecimal() and len(version) <= MAX_DIGITS):
            raise NotFound("definition", flow, "write NAME or NAME@VERSION, as in order@3")
        row = definitions.find(conn, name, int(version) if version else None)
        if row is None:
            row = definitions.get(conn, flow)
            if row is None or row.deleted_at is not None:
                raise NotFound("definition", flow, "`wfcelery definitions` lists what there is")
        return self.get(conn, row.id)

    def define(self, conn: Connection, document: Json, name: str | None, by: str, now: float) -> Defined:
        """Keep a flow; the same flow again is the same definition. Raises `InvalidFlow` with every fault."""
        asked = (name, _text(document))
        known = self._defined.get(asked)
        if known is not None:
            return known
        document = canonical_document(document, limits=self._limits)
        catalogue = _Catalogue(conn)
        flow = check_flow(document, name=name, tools=self._tools, flows=catalogue, limits=self._limits)
        text = values.canonical(gated(document, self._tools, limits=self._limits))
        pins = {each: catalogue.found[each][0] for each in flow_references(flow)}
        written = _written(pins)
        definition_id = ids.definition_id(flow.name, text, values.canonical(written))
        row = definitions.add(
            conn,
            definition_id,
            name=flow.name,
            document=text,
            pins=written,
            depth=1 + max((depth for _, depth in catalogue.found.values()), default=0),
            created_by=by,
            now=now,
        )
        authored = replace(pin(flow, pins), author=row.created_by)
        made = self._keep(Defined(row.id, row.name, row.version, authored))
        if not pins and len(self._defined) < CACHED_FLOWS:
            # What a flow with sub-flows means depends on the day; this one means the same for ever.
            self._defined[asked] = made
        return made

    def check(self, conn: Connection, document: Json, name: str | None, place: Place | None = None) -> Flow:
        """Say of a flow what `define` would say of it, with lines where `place` knows them; keep nothing."""
        plain = canonical_document(document, limits=self._limits)
        flows = _Catalogue(conn)
        return check_flow(plain, place=place, name=name, tools=self._tools, flows=flows, limits=self._limits)

    def forget(self) -> None:
        """Drop what is remembered: a definition was deleted, or one that was made was rolled back."""
        self._known.clear()
        self._defined.clear()

    def _keep(self, defined: Defined) -> Defined:
        self._known[defined.id] = defined
        while len(self._known) > CACHED_FLOWS:
            self._known.popitem(last=False)
        return defined


class _Catalogue:
    """The flows that a new flow may call: those in the tables."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.found: dict[tuple[str, int | None], tuple[str, int]] = {}

    def find(self, name: str, version: int | None) -> tuple[str, int] | None:
        row = definitions.find(self._conn, name, version)
        if row is None:
            return None
        self.found[name, version] = (row.id, row.depth)
        return row.id, row.depth


def _text(document: Json) -> str:
    """Write a document that nobody has checked yet; empty if it cannot be written."""
    try:
        return values.canonical(document)
    except (TypeError, ValueError, RecursionError):
        return ""


def _written(pins: Mapping[tuple[str, int | None], str]) -> dict[str, str]:
    return {
        name if version is None else f"{name}@{version}": found for (name, version), found in pins.items()
    }


def _unwritten(pins: Mapping[str, str]) -> dict[tuple[str, int | None], str]:
    read: dict[tuple[str, int | None], str] = {}
    for key, found in pins.items():
        name, _, version = key.partition("@")
        read[name, int(version) if version else None] = found
    return read


def fault_json(fault: Fault) -> dict[str, Json]:
    """Write a fault as the documented object."""
    return {
        "code": fault.code,
        "message": fault.message,
        "path": fault.path,
        "line": fault.line,
        "column": fault.column,
        "hint": fault.hint,
    }
