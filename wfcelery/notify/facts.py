"""What is known of what a notice is about, read when it is sent: a gate may have been decided meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wfcelery.core import gate_clock
from wfcelery.core.effects import NoticeKind
from wfcelery.core.flow import Flow, Gate, OnTimeout
from wfcelery.core.state import NO_ITEM, Attempt, Run, StepStatus, WaitsFor
from wfcelery.core.values import Json
from wfcelery.store import runs

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from wfcelery.executor.definitions import Definitions
    from wfcelery.store.notices import Notice

ASKING = frozenset({NoticeKind.GATE_OPENED, NoticeKind.GATE_REMINDER, NoticeKind.GATE_ESCALATED})
"""Notices that ask somebody to decide: they mean nothing once that is done."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A run, its flow, and the attempt at the gate that the notice is about, if it is about one."""

    run: Run
    flow: Flow
    version: int
    attempt: Attempt | None = None
    gate: Gate | None = None
    shown: Json = None

    @property
    def is_open(self) -> bool:
        """Tell whether the gate still waits for people."""
        return (
            self.attempt is not None
            and self.run.is_live
            and self.attempt.status is StepStatus.PENDING
            and self.attempt.waits_for is WaitsFor.APPROVAL
        )

    @property
    def deadline(self) -> float | None:
        """Say when the gate acts without anybody; None: never."""
        if self.gate is None or self.attempt is None:
            return None
        return gate_clock.deadline(self.gate, self.attempt)

    @property
    def closes_at(self) -> float | None:
        """Say from when on nobody can decide: who was asked first still may when others are asked as well."""
        if self.deadline is None or self.gate is None or self.attempt is None:
            return None
        asks_again = self.gate.on_timeout is OnTimeout.ESCALATE and bool(self.gate.escalate_to)
        if asks_again and not self.attempt.escalated:
            return self.deadline + (self.gate.timeout_s or 0.0)
        return self.deadline


def read(conn: Connection, definitions: Definitions, notice: Notice) -> Facts | None:
    """Read what a notice is about; None if its run is no longer there."""
    found = runs.load(conn, lambda each: definitions.get(conn, each).flow, [notice.run_id])
    run = found.get(notice.run_id)
    if run is None:
        return None
    defined = definitions.get(conn, run.definition_id)
    if notice.step is None:
        return Facts(run, defined.flow, defined.version)
    key = (notice.step, NO_ITEM)
    attempt = run.attempts.get(key)
    if attempt is not None and attempt.attempt != notice.attempt:
        attempt = None  # A retry has opened the gate anew, and that is told in a notice of its own.
    action = defined.flow.steps[notice.step].action if notice.step in defined.flow.steps else None
    prepared = run.prepared.get(key)
    return Facts(
        run,
        defined.flow,
        defined.version,
        attempt,
        action if isinstance(action, Gate) else None,
        None if prepared is None or attempt is None else prepared.args,
    )


def is_pointless(notice: Notice, facts: Facts | None) -> bool:
    """Tell whether nothing is left to say: the run is gone, or there is nothing to decide any more."""
    return facts is None or (notice.kind in ASKING and not facts.is_open)
