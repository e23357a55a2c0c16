"""Whether the flow in a file can work, with your tools and with the flows it may call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wfcelery.cli.database import is_there, reading
from wfcelery.cli.files import FaultyFile, FlowFile, faults_in, flow_paths, read_flow
from wfcelery.cli.siblings import Beside, in_order
from wfcelery.core.faults import Fault
from wfcelery.core.validate import check_flow
from wfcelery.errors import InvalidInput

if TYPE_CHECKING:
    from wfcelery.core.catalogue import ToolCatalogue
    from wfcelery.core.flow import Flow
    from wfcelery.settings import Settings


@dataclass(frozen=True, slots=True)
class Checked:
    """How many files were looked at, the flows that can work, and the faults of the others."""

    count: int
    good: tuple[FlowFile, ...]
    faulty: tuple[FaultyFile, ...]


def check_files(paths: Iterable[Path], tools: ToolCatalogue, settings: Settings) -> Checked:
    """Check files, and every file of folders. One that cannot be read hides the faults of no other."""
    count = 0
    good: list[FlowFile] = []
    faulty: list[FaultyFile] = []
    for path in paths:
        found = list(flow_paths([path]))
        count += len(found)
        if not found:
            fault = Fault("unreadable-file", "holds no flows", hint="they end in .yaml, .yml or .json")
            faulty.append(FaultyFile((fault,), str(path)))
        for each in found:
            try:
                file = read_flow(each)
                check_file(file, tools, settings)
            except InvalidInput as error:
                faulty.append(FaultyFile((Fault("unreadable-file", error.reason),), error.path))
            except FaultyFile as error:
                faulty.append(error)
            else:
                good.append(file)
    # A flow that others call is read with each of them, and its faults are told once.
    return Checked(count, tuple(good), tuple({each.args: each for each in faulty}.values()))


def check_file(file: FlowFile, tools: ToolCatalogue, settings: Settings) -> Flow:
    """Make the file's flow, or raise `FaultyFile` with every fault and its line."""
    in_order(file)

    def kept(name: str, version: int | None) -> tuple[str, int] | None:
        if not is_there(settings):
            return None
        from wfcelery.store import definitions

        # Tells no more than whether there is a flow of that name.
        with reading(settings, None) as conn:
            row = definitions.find(conn, name, version)
        return None if row is None else (row.id, row.depth)

    with faults_in(file.path):
        return check_flow(file.data, place=file.place, name=file.name, tools=tools, flows=Beside(file, kept))
