"""How each step of a run stands, from the run as JSON: its status, its sign, and the tally of a foreach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wfcelery.core.flow import Call, Flow, Foreach, Gate, Step, SubFlow, Wait
from wfcelery.core.values import Json

_OF_STATUS: Final = {
    "pending": "waiting",
    "ready": "running",
    "running": "running",
    "done": "done",
    "completed": "done",
    "failed": "failed",
    "skipped": "skipped",
    "cancelled": "cancelled",
    "paused": "gate",
}


def kind_of_status(status: str) -> str:
    """Name the sign of a step's or run's status."""
    return _OF_STATUS[status]


@dataclass(frozen=True, slots=True)
class Standing:
    """By step: the status of its newest attempt, the kind of its sign, how many items are done."""

    statuses: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    tallies: dict[str, str] = field(default_factory=dict)

    @property
    def drawn(self) -> dict[str, str]:
        """Give the statuses for a picture: a pending step may wait for somebody, or for its items."""
        told = {"gate": "waiting", "running": "running"}
        return {
            name: told.get(self.kinds[name], status) if status == "pending" else status
            for name, status in self.statuses.items()
        }


def standing(flow: Flow, run: Mapping[str, Json]) -> Standing:
    """Say how the steps of `run` stand; those that have no row are left out."""
    found = Standing()
    done: dict[str, int] = {}
    totals: dict[str, int] = {}
    steps: Any = run["steps"]
    for row in steps:
        name = row["name"]
        if row["item"] is None:
            found.statuses[name] = row["status"]
            found.kinds[name] = _kind(flow.steps[name], row)
            if isinstance(flow.steps[name].action, Foreach) and isinstance(row["args"], Mapping):
                totals[name] = len(row["args"].get("items", ()))
        elif row["status"] == "done":
            done[name] = done.get(name, 0) + 1
    found.tallies.update({name: f"{done.get(name, 0)}/{total}" for name, total in totals.items()})
    return found


def _kind(step: Step, row: Mapping[str, Json]) -> str:
    """Name the sign of a row. A pending one without arguments has not begun: it is a join that counts."""
    if row["status"] != "pending":
        return kind_of_status(str(row["status"]))
    if row["due_at"] is not None and not isinstance(step.action, (Gate, Wait)):
        return "timer"
    match step.action:
        case _ if row["args"] is None:
            return "waiting"
        case Gate() | Wait() | Call():
            return "gate"
        case Foreach() | SubFlow():
            return "running"
        case _:
            return "waiting"
