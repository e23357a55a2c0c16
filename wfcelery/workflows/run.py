"""What the facade hands out: a handle of a run, and the address of a definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wfcelery.core.values import Json

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.workflows.facade import Workflows


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of a flow."""

    id: str
    name: str
    version: int

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run by its id. `created`: this start began it; None where that is not known.

    Two handles of one run are equal.
    """

    id: str
    created: bool | None = field(default=None, compare=False)
    _workflows: Workflows | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.id

    @property
    def status(self) -> str:
        """Read how the run stands now: running, paused, completed, failed or cancelled."""
        return self._facade.status(self.id)

    def get(self) -> dict[str, Json]:
        """Read the run as the documented object."""
        return self._facade.get(self.id)

    def wait(self, timeout_s: float | None = None) -> dict[str, Json]:
        """Wait until the run has ended, and read it."""
        return self._facade.wait(self.id, timeout_s)

    def cancel(self, reason: str = "", *, by: str | Principal | None = None) -> None:
        """Stop the run for good."""
        self._facade.cancel(self.id, reason, by=by)

    def signal(self, name: str, payload: Json = None, *, by: str | Principal | None = None) -> None:
        """Tell the run something that it may wait for."""
        self._facade.signal(self.id, name, payload, by=by)

    @property
    def _facade(self) -> Workflows:
        if self._workflows is None:
            message = f"the handle of run {self.id} was made by hand; get one from Workflows.run()"
            raise TypeError(message)
        return self._workflows
