"""An executor on a real database, with a clock that stands still and a dispatcher that only writes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wfcelery.core.effects import Dispatch
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.messages import Principal, Report, StepDone, StepFailed
from wfcelery.core.state import Error, StepRef
from wfcelery.core.values import Json
from wfcelery.embedded import VirtualClock
from wfcelery.embedded.engine import new_command_id, new_run_id
from wfcelery.embedded.mailbox import LocalMailbox
from wfcelery.executor.executor import Executor
from wfcelery.executor.messages import Asked, Message, Start
from wfcelery.executor.notice_book import NoticeBook
from wfcelery.rights import Authority
from wfcelery.store import commands, lease, views
from wfcelery.store.commands import Command
from wfcelery.store.database import open_database
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue

ANN = Principal("ann")
BOB = Principal("bob")


@dataclass
class Recorder:
    """A dispatcher that hands nothing to anybody, and a notifier that sends nothing."""

    sent: list[Dispatch] = field(default_factory=list)
    stopped: list[StepRef] = field(default_factory=list)
    rung: list[str] = field(default_factory=list)

    def send(self, steps: Sequence[Dispatch]) -> None:
        self.sent.extend(steps)

    def stop(self, refs: Sequence[StepRef]) -> None:
        self.stopped.extend(refs)

    def ring(self, ids: Sequence[str]) -> None:
        self.rung.extend(ids)


class Desk:
    """One executor at a time; `restart` is a crash and a new start on the same tables."""

    def __init__(
        self,
        url: str,
        limits: Limits = DEFAULT,
        *,
        tools: Registry | None = None,
        authority: Authority | None = None,
        told: Sequence[str] = (),
    ) -> None:
        self.clock = VirtualClock()
        self.mailbox = LocalMailbox()
        self.out = Recorder()
        self.limits = limits
        self.tools = Catalogue(tools or Registry.with_builtins())
        self.authority = authority
        self.told = told
        self.database = open_database(url)
        self.lease: lease.Lease | None = None
        self.executor = self._new_executor()

    def restart(self) -> None:
        """Lose everything that is only in memory."""
        self.mailbox = LocalMailbox()
        self.executor = self._new_executor()

    def close(self) -> None:
        """Let go of the tables; the fixture that gave them proves them."""
        if self.lease is not None:
            self.lease.release()
        self.database.close()

    def tell(self, *messages: Message) -> None:
        """Put messages into the mailbox as one batch and let the executor take them in, marks and all."""
        self.mailbox.push(*messages)
        while self.executor.run_once():
            pass
        self.executor.run_once()

    def ask(self, request: Asked) -> Command:
        """Send a request and read its answer back."""
        self.tell(request)
        with self.database.reading() as conn:
            return commands.get_many(conn, [request.command_id])[request.command_id]

    def start(self, flow: Json, given: Json = None, by: Principal = ANN, **more: Any) -> str:  # noqa: ANN401
        """Start a run that must be accepted."""
        run_id = new_run_id(self.clock.now())
        request = Start(new_command_id(), run_id, flow, {} if given is None else given, by, **more)
        answer = self.ask(request)
        assert answer.ok, answer.reason
        return str(answer.data["run_id"])

    def take(self, step: str, item: int = -1) -> Dispatch:
        """Take the step that was handed over last under this name."""
        return next(
            each for each in reversed(self.out.sent) if (each.ref.step, each.ref.item) == (step, item)
        )

    def done(self, step: str, result: Json = None, item: int = -1, event: str | None = None) -> Report:
        """Report that a step went well."""
        report = StepDone(self.take(step, item).ref, result, event, worker="w1", started_at=self.clock.now())
        self.tell(report)
        return report

    def failed(self, step: str, message: str = "no", item: int = -1, *, retry: bool = True) -> Report:
        """Report that a step failed."""
        ref = self.take(step, item).ref
        report = StepFailed(ref, Error("ValueError", message), ("ValueError",), retry=retry, worker="w1")
        self.tell(report)
        return report

    def run(self, run_id: str) -> dict[str, Any]:
        """Read the run as people see it."""
        with self.database.reading() as conn:
            found = views.run(conn, run_id)
        assert found is not None
        return found

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """Read the run's history."""
        with self.database.reading() as conn:
            return views.events(conn, run_id, limit=100_000)

    def faults(self, answer: Command) -> list[dict[str, Any]]:
        """Read the faults of a flow that was refused."""
        faults = answer.data["faults"]
        assert isinstance(faults, list)
        return faults

    def states(self, run_id: str) -> dict[str, str]:
        """Read the newest status of each step."""
        return {str(step["name"]): str(step["status"]) for step in self.run(run_id)["steps"]}

    def _new_executor(self) -> Executor:
        if self.lease is not None:
            self.lease.release()
        self.lease = lease.acquire(self.database, "desk", ttl_s=30.0, now=self.clock.now())
        assert self.lease is not None
        return Executor(
            self.database,
            self.lease,
            self.mailbox,
            self.out,
            self.clock,
            tools=self.tools,
            limits=self.limits,
            authority=self.authority,
            notices=NoticeBook(self.out, self.told),
        )
