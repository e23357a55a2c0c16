"""Whether the flow in a file can work, with your tools and with the flows it may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfcelery.cli.database import is_there, reading
from wfcelery.cli.files import FlowFile, faults_in
from wfcelery.cli.siblings import Beside, in_order
from wfcelery.core.validate import check_flow

if TYPE_CHECKING:
    from wfcelery.core.catalogue import ToolCatalogue
    from wfcelery.core.flow import Flow
    from wfcelery.settings import Settings


def check_file(file: FlowFile, tools: ToolCatalogue, settings: Settings) -> Flow:
    """Make the file's flow, or raise `FaultyFile` with every fault and its line."""
    in_order(file)

    def kept(name: str, version: int | None) -> tuple[str, int] | None:
        if not is_there(settings):
            return None
        from wfcelery.store import definitions

        with reading(settings) as conn:
            row = definitions.find(conn, name, version)
        return None if row is None else (row.id, row.depth)

    with faults_in(file.path):
        return check_flow(file.data, place=file.place, name=file.name, tools=tools, flows=Beside(file, kept))
