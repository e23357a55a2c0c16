"""The engine that users get: the executor on a real database, behind the same few words as the bare core."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tests.executor.desk import Desk
from tests.model.driver import RUN_ID, Seen, StepSeen, Work
from wfcelery.core import ids
from wfcelery.core.messages import (
    Cancel,
    ChildEnded,
    Principal,
    Request,
    RunMessage,
    StepBegun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReturned,
    StepSent,
    StepUnsent,
    TimerDue,
)
from wfcelery.core.state import OPEN, Error, RunStatus, StepRef, StepStatus, WaitsFor
from wfcelery.executor.messages import Define, Start
from wfcelery.store import schema

if TYPE_CHECKING:
    from tests.model.flows_strategy import Document
    from wfcelery.core.values import Json

CHILD: Document = {
    "name": "child",
    "start": "work",
    "steps": {"work": {"tool": "echo", "retry": {"max_attempts": 1}, "done": True}},
}


class ExecutorEngine:
    """One run among others on a desk. To the tests it is always called `RUN_ID`."""

    passes_on = True
    author = "starter"

    def __init__(self, desk: Desk, number: int) -> None:
        self.desk = desk
        self.number = number
        self.run_id = ids.run_id(desk.clock.now(), number.to_bytes(10))
        self.first = len(desk.out.sent)
        self.cancels = 0
        self.begins_at = desk.clock.now()

    def start(
        self,
        document: Document,
        value: Json,
        by: Principal,
        now: float,  # noqa: ARG002 - the desk has its own clock
        at: float | None = None,
    ) -> None:
        self.desk.ask(Define(f"child-{self.number}", CHILD, by))
        answer = self.desk.ask(Start(f"start-{self.number}", self.run_id, document, value, by, at=at))
        assert answer.ok, answer.reason

    def send(self, message: RunMessage, now: float) -> None:
        self.desk.clock.move_to(max(now, self.desk.clock.now()))
        match message:
            case StepSent() | TimerDue():
                self.desk.tell()  # The executor marks what it sent, and looks at the clock, by itself.
            case ChildEnded():
                self._end_child(message)
            case _ if isinstance(message, Request):
                renamed = replace(
                    message, run_id=self.run_id, command_id=f"{self.number}-{message.command_id}"
                )
                self.desk.ask(renamed)
            case (
                StepDone()
                | StepFailed()
                | StepPostponed()
                | StepBegun()
                | StepReturned()
                | StepLost()
                | StepUnsent()
            ):
                self.desk.tell(replace(message, ref=message.ref._replace(run_id=self.run_id)))

    def _end_child(self, message: ChildEnded) -> None:
        """Let the sub-run end in that way."""
        parent = message.parent
        child = ids.child_id(self.run_id, parent.step, parent.item, parent.attempt)
        ref = next(each.ref for each in self.desk.out.sent if each.ref.run_id == child)
        if message.status is RunStatus.COMPLETED:
            self.desk.tell(StepDone(ref, message.output))
        elif message.status is RunStatus.FAILED:
            self.desk.tell(StepFailed(ref, Error("ValueError", "child")))
        else:
            self.cancels += 1
            command = f"{self.number}-child-{self.cancels}"
            self.desk.ask(Cancel(command, child, Principal("starter")))

    def observe(self) -> Seen:
        table = schema.workflow_steps
        with self.desk.database.reading() as conn:
            rows = conn.execute(
                sa.select(
                    table.c.name,
                    table.c.item,
                    table.c.attempt,
                    table.c.status,
                    table.c.waits_for,
                    table.c.due_at,
                )
                .where(table.c.workflow_id == self.run_id)
                .order_by(table.c.attempt)
            ).all()
            workflow = conn.execute(
                sa.select(schema.workflows.c.held).where(schema.workflows.c.id == self.run_id)
            ).one()
        steps = {}
        for row in rows:
            status = StepStatus(row.status)
            waits = WaitsFor(row.waits_for) if row.waits_for and status in OPEN else None
            steps[row.name, row.item] = StepSeen(
                row.attempt, status, waits, row.due_at if status in OPEN else None
            )
        shown = self.desk.run(self.run_id)
        error = shown["error"]
        sent = self.desk.out.sent[self.first :]
        return Seen(
            status=RunStatus(str(shown["status"])),
            held=bool(workflow.held),
            error=str(error["type"]) if isinstance(error, dict) else None,
            output=shown["output"],
            steps=steps,
            work=tuple(
                Work(each.ref._replace(run_id=RUN_ID), each.prepared.args, each.again)
                for each in sent
                if each.ref.run_id == self.run_id
            ),
            children=self._children(),
        )

    def _children(self) -> tuple[StepRef, ...]:
        events = schema.workflow_events
        table = schema.workflow_steps
        with self.desk.database.reading() as conn:
            rows = conn.execute(
                sa.select(events.c.step, events.c.item, events.c.attempt, table.c.fence)
                .join(
                    table,
                    sa.and_(
                        table.c.workflow_id == events.c.workflow_id,
                        table.c.name == events.c.step,
                        table.c.item == events.c.item,
                        table.c.attempt == events.c.attempt,
                    ),
                )
                .where(events.c.workflow_id == self.run_id, events.c.type == "child_started")
                .order_by(events.c.seq)
            ).all()
        return tuple(StepRef(RUN_ID, *row) for row in rows)

    def restart(self) -> None:
        self.desk.restart()
