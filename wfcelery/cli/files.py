"""Flows in files: finding them, reading them, and the flows beside them that they call."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from wfcelery.core.faults import Fault
from wfcelery.core.reading import Place, read
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow, InvalidInput

if TYPE_CHECKING:
    from wfcelery.core.flow import Flow

SUFFIXES: Final = (".yaml", ".yml", ".json")


class FaultyFile(InvalidFlow):
    """The flow in a file has faults; each is told with its place in the file."""

    def __init__(self, faults: tuple[Fault, ...], file: str) -> None:
        super().__init__(faults)
        self.args = (faults, file)
        self.file = file

    def __str__(self) -> str:
        count = len(self.faults)
        head = "the flow has 1 fault" if count == 1 else f"the flow has {count} faults"
        return "\n".join([head, *(fault_line(self.file, fault) for fault in self.faults)])


class FaultyFiles(InvalidFlow):
    """Some of several files have faults; each is told with its file and place."""

    def __init__(self, faulty: tuple[FaultyFile, ...], checked: int) -> None:
        super().__init__(tuple(fault for each in faulty for fault in each.faults))
        self.args = (faulty, checked)
        self.faulty = faulty
        self.checked = checked

    def __str__(self) -> str:
        return "\n".join([tally(self.checked, self.faulty), *lines_of(self.faulty)])


def tally(checked: int, faulty: Sequence[FaultyFile]) -> str:
    """Say how many flows were looked at, and how many faults they have."""
    flows = "1 flow" if checked == 1 else f"{checked} flows"
    if not faulty:
        return f"{flows}, no faults"
    count = sum(len(each.faults) for each in faulty)
    return f"{flows}, {'1 fault' if count == 1 else f'{count} faults'} in {len(faulty)}"


def lines_of(faulty: Sequence[FaultyFile]) -> list[str]:
    """Write every fault of several files."""
    return [fault_line(each.file, fault) for each in faulty for fault in each.faults]


def fault_line(file: str, fault: Fault) -> str:
    """Write a fault as editors and people find it: `file:line:column: message [code] (hint)`."""
    if fault.line is not None:
        place = f"{file}:{fault.line}:{fault.column}"
    else:
        place = f"{file}: {fault.path}" if fault.path else file
    hint = f" ({fault.hint})" if fault.hint else ""
    return f"{place}: {fault.message} [{fault.code}]{hint}"


@dataclass(frozen=True, slots=True)
class FlowFile:
    """A flow as a file says it; `name` is the file's, used where the flow has none of its own."""

    path: Path
    data: Json
    place: Place
    name: str

    @property
    def own_name(self) -> str:
        """The name under which it will be kept."""
        if isinstance(self.data, dict) and "steps" in self.data and isinstance(self.data.get("name"), str):
            return str(self.data["name"])
        return self.name


def is_file_name(text: str) -> bool:
    """Tell whether `text` means a file rather than the name of a definition."""
    return text.endswith(SUFFIXES) or os.sep in text or Path(text).is_file()


def read_flow(path: Path) -> FlowFile:
    """Read one file, or raise `FaultyFile`; one that is not there is `InvalidInput`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise InvalidInput(str(path), "there is no such file") from error
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from error
    with faults_in(path):
        document = read(content, source=str(path))
    return FlowFile(path, cast("Json", document.data), document.place, path.name.split(".")[0])


@contextmanager
def faults_in(path: Path) -> Iterator[None]:
    """Say of faults found inside in which file they are."""
    try:
        yield
    except FaultyFile:
        raise
    except InvalidFlow as error:
        raise FaultyFile(error.faults, str(path)) from error


def flow_paths(paths: Iterable[Path]) -> Iterator[Path]:
    """Give the files themselves, and those of every folder in alphabetical order."""
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
        else:
            yield path


def beside(path: Path, name: str) -> Path | None:
    """Find the file of the flow `name` in the folder of `path`."""
    for suffix in SUFFIXES:
        candidate = path.parent / f"{name}{suffix}"
        if candidate.is_file():
            return candidate
    return None


def called(flow: Flow) -> list[tuple[str, int | None]]:
    """Name the flows that `flow` runs, in a steady order."""
    from wfcelery.core.document import flow_references

    return sorted(flow_references(flow), key=lambda each: (each[0], each[1] or 0))
