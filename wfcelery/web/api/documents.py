"""Flows that are sent: as data, or as text in YAML or JSON."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from wfcelery.core.limits import DEFAULT
from wfcelery.core.reading import Place, read
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow, InvalidInput
from wfcelery.executor.definitions import Definitions
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow
    from wfcelery.settings import Settings
    from wfcelery.store import Connection
    from wfcelery.web.desk import Desk

LONGEST_NAME: Final = 200
_lock: Final = threading.Lock()
_tools: dict[tuple[str, ...], Catalogue] = {}


@dataclass(frozen=True, slots=True)
class Sent:
    """A flow as data, and where its parts stand in the text, if it was text."""

    data: Json
    place: Place | None = None


def name_or_document(flow: Json) -> str | Sent:
    """Tell the name of a flow from a document: text of one line is a name."""
    if isinstance(flow, str) and "\n" not in flow:
        if not 0 < len(flow) <= LONGEST_NAME or not flow.isprintable():
            reason = f"must be a document, or a name of 1 to {LONGEST_NAME} printable characters"
            raise InvalidInput("flow", reason)
        return flow
    return document(flow)


def document(flow: Json) -> Sent:
    """Give a document. Raises `InvalidFlow` if it is no text that can be read."""
    if isinstance(flow, str):
        found = read(flow)
        return Sent(cast("Json", found.data), found.place)
    if not isinstance(flow, dict):
        raise InvalidInput("flow", "must be a map, or text in YAML or JSON")
    return Sent(flow)


def checked_name(desk: Desk, conn: Connection, flow: Sent, name: str | None) -> str:
    """Give the name of a flow, for rights depend on it. Raises `InvalidFlow` with every fault.

    Tools are for the executor to judge: this process may know fewer of them.
    """
    try:
        return desk.definitions.check(conn, flow.data, name, flow.place).name
    except InvalidFlow:
        if desk.settings.tools:
            checked(desk.settings, conn, flow, name)
        raise


def checked(settings: Settings, conn: Connection, flow: Sent, name: str | None) -> Flow:
    """Say of a flow what defining it would say. Raises `InvalidFlow` with every fault."""
    return Definitions(_catalogue(settings), DEFAULT).check(conn, flow.data, name, flow.place)


def _catalogue(settings: Settings) -> Catalogue:
    """Give the tools that flows may call; their modules are imported once, when first wanted."""
    wanted = tuple(settings.tools)
    with _lock:
        if wanted not in _tools:
            _tools[wanted] = Catalogue(Registry.load(settings.tools))
        return _tools[wanted]
