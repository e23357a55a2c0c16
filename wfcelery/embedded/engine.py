"""The engine in one process: opens the database, holds the lease, and turns the executor's crank."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.messages import Principal, StepLost, StepUnsent
from wfcelery.core.values import Json
from wfcelery.embedded.clock import VirtualClock
from wfcelery.embedded.mailbox import LocalMailbox
from wfcelery.embedded.pool import InlinePool, ThreadPool
from wfcelery.embedded.waiting import Waiting, describe
from wfcelery.errors import NotFound, Refused
from wfcelery.executor.answers import new_command_id, new_run_id, raise_refusal
from wfcelery.executor.clock import SystemClock
from wfcelery.executor.definitions import Definitions
from wfcelery.executor.executor import Executor
from wfcelery.executor.messages import Asked, Message, Start
from wfcelery.rights import Authority
from wfcelery.store import commands, lease, runs, steps, views
from wfcelery.store.changes import RunChange
from wfcelery.store.commands import Command
from wfcelery.store.database import Database, open_database
from wfcelery.store.runs import Standing
from wfcelery.tools import Registry
from wfcelery.tools.call import Limits as ToolLimits
from wfcelery.tools.catalogue import Catalogue

LEASE_S = 15.0
MOST_STEPS = 1_000_000
LONGEST_WAIT_S = 1.0
BRIEF_S = 0.002


class Engine:
    """Runs flows in this process. Use it in a `with` block; one engine at a time writes to a database.

    `only` restricts it to one run and its sub-runs: what else is in the database is left as it is.
    """

    def __init__(
        self,
        url: str,
        tools: Registry,
        *,
        clock: SystemClock | VirtualClock | None = None,
        workers: int = 8,
        limits: Limits = DEFAULT,
        only: str | None = None,
        observer: Callable[[Sequence[RunChange]], None] | None = None,
        authority: Authority | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.mailbox = LocalMailbox()
        self.database: Database = open_database(url)
        tool_limits = ToolLimits(result_bytes=limits.payload_bytes)
        self.pool: ThreadPool | InlinePool
        if isinstance(self.clock, VirtualClock):
            self.pool = InlinePool(tools, self.mailbox, self.clock, tool_limits)
        else:
            self.pool = ThreadPool(tools, self.mailbox, self.clock, workers, tool_limits)
        self._only = only
        try:
            self._lease = self._acquire()
        except BaseException:
            self.database.close()
            raise
        self.executor = Executor(
            self.database,
            self._lease,
            self.mailbox,
            self.pool,
            self.clock,
            tools=Catalogue(tools),
            limits=limits,
            only=only,
            observer=self._observe,
            authority=authority,
        )
        self._observer = observer
        self._definitions = Definitions(None, limits)
        self._standings: dict[str, Standing] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the lease and the database. What was under way is found again by the next engine."""
        self.pool.close()
        try:
            self._lease.release()
        finally:
            self.database.close()

    def start(
        self, flow: Json, given: Json, *, by: str, name: str | None = None, key: str | None = None
    ) -> str:
        """Begin a run of a flow (a name, `name@version`, or a document) and give its id."""
        run_id = self._only or new_run_id(self.clock.now())
        command = self.ask(Start(new_command_id(), run_id, flow, given, Principal(by), key=key, name=name))
        return str(command.data["run_id"])

    def ask(self, request: Asked) -> Command:
        """Send a request and give its answer once it is in the tables; a refusal is raised."""
        self.mailbox.push(request)
        answer = None
        while answer is None:
            self.executor.run_once()
            with self.database.reading() as conn:
                answer = commands.get_many(conn, [request.command_id]).get(request.command_id)
        raise_refusal(answer)
        return answer

    def recover(self) -> int:
        """Find what an engine that died had under way, and go on with it; tell how many steps that were.

        Its threads died with it: what was running is lost, charged to nobody; what was ready is handed over.
        """
        with self.database.reading() as conn:
            lost: list[Message] = [
                StepLost(ref, counted=False) for ref in steps.running(conn, MOST_STEPS, self._only)
            ]
            lost += [StepUnsent(ref) for ref in steps.ready(conn, MOST_STEPS, self._only)]
        self.mailbox.push(*lost)
        return len(lost)

    def turn(self, longest_wait_s: float = LONGEST_WAIT_S) -> bool:
        """Do what there is to do now, or wait a little for it; tell whether anything was done."""
        if isinstance(self.pool, ThreadPool):
            self.pool.expire()
            # Short steps end before it is worth a transaction to write down that they began.
            self.mailbox.wait(BRIEF_S if self.executor.has_marks else 0.0)
        if self.executor.run_once():
            return True
        if isinstance(self.pool, InlinePool):
            return self.pool.work() or self._let_time_pass()
        self.mailbox.wait(self._until_next(self.pool, longest_wait_s))
        return False

    def standing(self, run_id: str) -> Standing:
        """Tell how a run stands, from memory once it has been asked for."""
        known = self._standings.get(run_id)
        if known is None:
            with self.database.reading() as conn:
                known = runs.standing(conn, run_id)
            if known is None:
                raise NotFound("run", run_id)
            self._standings[run_id] = known
        return known

    def waiting(self, run_id: str) -> list[Waiting]:
        """List what waits for a person or a signal in the run and its sub-runs."""
        found = []
        with self.database.reading() as conn:
            for row in steps.waiting(conn, run_id):
                flow = self._definitions.get(conn, row.definition_id).flow
                found.append(describe(row, flow))
        return found

    def run_json(self, run_id: str) -> dict[str, Json]:
        """Give the run as the documented object."""
        with self.database.reading() as conn:
            found = views.run(conn, run_id)
        if found is None:
            raise NotFound("run", run_id)
        return found

    def events(self, run_id: str, after: int = 0) -> list[dict[str, Json]]:
        """List the events of a run after the one with that number."""
        with self.database.reading() as conn:
            return views.events(conn, run_id, after_seq=after)

    def _observe(self, changes: Sequence[RunChange]) -> None:
        for change in changes:
            run = change.after
            if run.id in self._standings:
                self._standings[run.id] = Standing(run.status, run.open)
        if self._observer is not None:
            self._observer(changes)

    def _acquire(self) -> lease.Lease:
        owner = f"in-process {os.getpid()}"
        held = lease.acquire(self.database, owner, ttl_s=LEASE_S, now=self.clock.now())
        if held is None:
            message = "another executor is at work on this database; use it, or name another with --database"
            raise Refused(message)
        return held

    def _until_next(self, pool: ThreadPool, longest: float) -> float:
        waits = [longest, self.executor.next_due - self.clock.now()]
        deadline = pool.next_deadline()
        if deadline is not None:
            waits.append(deadline)
        return max(0.0, min(waits))

    def _let_time_pass(self) -> bool:
        due = self.executor.next_due
        if due == float("inf") or not isinstance(self.clock, VirtualClock):
            return False
        self.clock.move_to(due)
        return True


__all__ = ["Engine", "new_command_id", "new_run_id"]
