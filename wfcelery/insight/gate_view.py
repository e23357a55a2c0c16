"""What is known of a gate when somebody looks at it, as plain values, and as the documented object."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wfcelery.core import gate_clock
from wfcelery.core.decide import gates as rules
from wfcelery.core.flow import Flow, Gate, Step
from wfcelery.core.state import Attempt, Run
from wfcelery.core.values import Json
from wfcelery.insight import gate_words
from wfcelery.insight.gate_words import Change, Past
from wfcelery.store.gates import GateVote
from wfcelery.store.times import iso

TIMEOUT: Final = "timeout"
"""Who has decided when nobody has."""


class GateState(StrEnum):
    """How a gate stands. Cancelled: its run was, or nothing needed it any more."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a gate ended: by whom (`timeout`: nobody decided in time), when, and what was said."""

    by: tuple[str, ...]
    at: float | None
    comment: str = ""

    @property
    def timed_out(self) -> bool:
        """Tell whether the clock has decided."""
        return self.by == (TIMEOUT,)


@dataclass(frozen=True, slots=True)
class Coming:
    """A step that follows an approval. `is_frozen`: exactly these arguments run; else they are yet to come.

    `kind` is `tool`, `flow`, `gate` or what else the step does; `when` the condition on which it is taken.
    """

    step: str
    kind: str
    what: str
    description: str = ""
    about_tool: str = ""
    args: Json = None
    is_frozen: bool = False
    when: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """What was shown when the same gate was last approved, as far as it differs from what is shown now."""

    run_id: str
    version: int
    at: float
    changes: tuple[Change, ...]
    others: int = 0


@dataclass(frozen=True, slots=True)
class GateView:
    """One attempt at a gate. In a list, `shown`, `coming`, `past` and `before` are left out.

    `newest` is the newest attempt: if it is another, a retry has opened the gate anew. `digest` names exactly
    what an approval lets run: the definition, the steps that follow, and their arguments.
    """

    id: str
    flow: Flow
    version: int
    run: Run
    step: Step
    gate: Gate
    attempt: Attempt
    state: GateState
    newest: int
    opened_at: float | None
    votes: tuple[GateVote, ...] = ()
    ending: Ending | None = None
    shown: Json = None
    coming: tuple[Coming, ...] = ()
    digest: str = ""
    past: tuple[Past, ...] = ()
    before: Before | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether it waits for people."""
        return self.state is GateState.OPEN

    @property
    def approvers(self) -> tuple[str, ...]:
        """Name those who may decide; nobody is named where every person with the right may."""
        return rules.approvers(self.gate, self.attempt)

    @property
    def deadline(self) -> float | None:
        """Say when the clock decides; None: never, or it is decided."""
        return gate_clock.deadline(self.gate, self.attempt) if self.is_open else None

    @property
    def on_deny(self) -> str:
        """Say in words what a denial does."""
        return gate_words.on_deny(self.step, self.run)

    @property
    def on_timeout(self) -> str:
        """Say in words what happens if nobody decides."""
        return gate_words.on_timeout(self.step, self.gate, self.attempt, self.run)

    @property
    def cursor(self) -> str:
        """Name its place in a list, for `open_gates`."""
        return f"{self.attempt.ready_at or 0.0!r}~{self.id}"

    def as_json(self) -> dict[str, Json]:
        """Write it as the documented object."""
        gate, ending = self.gate, self.ending
        return {
            "id": self.id,
            "run_id": self.run.id,
            "flow": self.flow.name,
            "version": self.version,
            "step": self.step.name,
            "attempt": self.attempt.attempt,
            "newest_attempt": self.newest,
            "state": self.state.value,
            "description": self.step.description,
            "flow_description": self.flow.description,
            "created_by": self.run.created_by,
            "author": self.flow.author,
            "key": self.run.key,
            "input": self.run.input,
            "opened_at": iso(self.opened_at),
            "deadline": iso(self.deadline),
            "approvers": list(self.approvers),
            "escalated": self.attempt.escalated,
            "quorum": gate.quorum,
            "allow_self": gate.allow_self,
            "require_comment": gate.require_comment,
            "form": None if gate.form is None else dict(gate.form),
            "votes": [
                {
                    "by": each.vote.voter,
                    "approve": each.vote.approve,
                    "comment": each.vote.comment,
                    "form": each.vote.form,
                    "at": iso(each.at),
                    "via": each.via or None,
                }
                for each in self.votes
            ],
            "decided": None
            if ending is None
            else {
                "by": list(ending.by),
                "at": iso(ending.at),
                "comment": ending.comment,
                "timed_out": ending.timed_out,
            },
            "runs_next": [
                {
                    "step": each.step,
                    "kind": each.kind,
                    "what": each.what,
                    "description": each.description,
                    "args": each.args,
                    "frozen": each.is_frozen,
                    "when": each.when or None,
                }
                for each in self.coming
            ],
            "action_hash": self.digest or None,
            "on_deny": self.on_deny,
            "on_timeout": self.on_timeout,
        }
