"""From history back to rows: folding the events of a run gives every control column of its rows.

Arguments and results live in the rows; of them the events carry the digests. The counters of a join follow
from the `took` of the steps before it and are in no event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from wfcelery.core.decide.draft import REPEATABLE, TOLD
from wfcelery.core.state import Attempt, Error, Run, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wfcelery.core.decide.draft import Event
    from wfcelery.core.values import Json

Place: TypeAlias = tuple[str, int, int]
"""One attempt within its run: step, item and attempt."""

RUN_TOLD: Final = ("status", "held", "error", "last_done", "output_digest", "completed_at", "cancelled_at")


@dataclass(slots=True)
class Folded:
    """What the history says: the run's own columns, and those of each attempt, as events write them."""

    run: dict[str, Json]
    attempts: dict[Place, dict[str, Json]] = field(default_factory=dict)
    definition_id: Json = None
    input_digest: Json = None
    created_at: float | None = None
    updated_at: float | None = None

    def take(self, event: Event) -> None:
        """Apply the next event."""
        if self.created_at is None:
            self.created_at = event.at
        self.updated_at = event.at
        if event.step is None:
            self._take_of_run(event)
        elif event.transition or event.type in REPEATABLE:
            place = (event.step, event.item, event.attempt)
            columns = self.attempts.get(place)
            if columns is None:
                columns = self.attempts[place] = dict(_NEW)
            for name, value in event.data.items():
                if name in columns:
                    columns[name] = value

    def _take_of_run(self, event: Event) -> None:
        if event.type == "run_started":
            self.definition_id = event.data.get("definition")
            self.input_digest = event.data.get("input_digest")
        for name, value in event.data.items():
            if name in self.run:
                self.run[name] = value


def empty() -> Folded:
    """Begin before the first event."""
    return Folded(run=dict(_NEW_RUN))


def fold(events: Iterable[Event]) -> Folded:
    """Apply events in their order."""
    folded = empty()
    for event in events:
        folded.take(event)
    return folded


def told_of_attempt(attempt: Attempt) -> dict[str, Json]:
    """Write the columns of a row as the fold gives them."""
    return {name: _plain(getattr(attempt, name)) for name in TOLD}


def told_of_run(run: Run) -> dict[str, Json]:
    """Write the columns of a run as the fold gives them."""
    return {name: _plain(getattr(run, name)) for name in RUN_TOLD}


def _plain(value: Json | Error) -> Json:
    return value.as_json() if isinstance(value, Error) else value


_NEW: Final[Mapping[str, Json]] = told_of_attempt(Attempt(""))
_NEW_RUN: Final[Mapping[str, Json]] = dict.fromkeys(RUN_TOLD) | {"status": RunStatus.RUNNING, "held": False}
