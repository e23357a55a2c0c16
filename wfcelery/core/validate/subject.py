"""A flow under examination, with what is needed to say where a fault is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wfcelery.core.faults import Fault
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.reading.place import Path, Place, nowhere, spell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfcelery.core.flow import Flow


@dataclass(frozen=True, slots=True)
class Subject:
    """The flow, where its steps are written, and the faults found so far."""

    flow: Flow
    place: Place = nowhere
    paths: Mapping[str, Path] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()
    limits: Limits = DEFAULT
    faults: list[Fault] = field(default_factory=list)

    def add(self, code: str, step: str | None, inner: Path, message: str, hint: str = "") -> None:
        """Note a fault of a step, or (`step` is None) of the header."""
        path = inner if step is None else (*self._path(step), *inner)
        line, column = self.place(path) or (None, None)
        self.faults.append(Fault(code, message, spell(path), line, column, hint))

    def _path(self, step: str) -> Path:
        return self.paths.get(step, (step,) if self.flow.lenient else ("steps", step))
