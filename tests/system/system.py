"""A whole system of real processes, with a broker of its own that can be flushed, stopped and started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import redis
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.proof import problems
from tests.services import places, valkey
from tests.system.ledger import LEDGER, Ledger
from wfcelery import Workflows
from wfcelery.broker.names import Names
from wfcelery.broker.sender import Sender
from wfcelery.core.values import Json
from wfcelery.wire.keys import worker_keys

ROOT = Path(__file__).resolve().parents[2]
SECRET = "a secret of thirty-two characters"  # noqa: S105 - for tests
TOOLS = "tests.system.ledger"
STOP_S = 20.0
ENDED = ("completed", "failed", "cancelled")

T = TypeVar("T")


@dataclass(slots=True)
class Process:
    """One process of ours, in a group of its own, with its log."""

    role: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def children(self) -> list[int]:
        """The pool's processes."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def kill(self) -> None:
        """SIGKILL to the main process and everything it has started."""
        self.signal(signal.SIGKILL)
        self.popen.wait(STOP_S)

    def signal(self, number: signal.Signals) -> None:
        """Send to the whole group: a pool's children, too."""
        os.killpg(self.pid, number)

    def terminate(self, timeout_s: float = STOP_S) -> int:
        """Stop in good order; give the exit code."""
        if self.popen.poll() is None:
            self.popen.terminate()
        return self.popen.wait(timeout_s)


class System:
    """Starts executors, workers and beat on one database and one broker."""

    def __init__(self, folder: Path, database_url: str, *, lease_s: float = 4.0) -> None:
        self.folder = folder
        self.database_url = database_url
        self.lease_s = lease_s
        self.ledger = Ledger(folder / "ledger")
        self.broker = valkey.start()
        self.processes: list[Process] = []
        self.workflows = Workflows(
            None, database_url, broker_url=self.broker_url, secret_key=SECRET, user="ann", timeout_s=20.0
        )
        self._engine = create_engine(database_url)

    # -- processes

    @property
    def broker_url(self) -> str:
        return self.broker.url.replace("unix://", "redis+socket://")

    def environment(self, role: str = "executor") -> dict[str, str]:
        """What the processes of a role are given: workers know neither the database nor the secret."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WFCELERY_")}
        common = {
            "WFCELERY_BROKER_URL": self.broker_url,
            "WFCELERY_TOOLS": TOOLS,
            "WFCELERY_LEASE_S": str(self.lease_s),
            "PYTHONPATH": str(ROOT),
            LEDGER: str(self.ledger.path),
        }
        if role == "worker":
            return inherited | common | {"WFCELERY_WORKER_KEY": worker_keys((SECRET,))[0]}
        return (
            inherited | common | {"WFCELERY_DATABASE_URL": self.database_url, "WFCELERY_SECRET_KEY": SECRET}
        )

    def spawn(self, role: str, *arguments: str, ready: str | None = "ready.", **environment: str) -> Process:
        """Start a process of ours and wait until it says that it is ready."""
        log = self.folder / f"{role}-{len(self.processes)}.log"
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "wfcelery", role, *arguments],
                cwd=self.folder,
                env=self.environment(role) | environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        process = Process(role, popen, log)
        self.processes.append(process)
        if ready is not None:
            self.until(lambda: ready in process.said() or popen.poll() is not None, f"{role} to be {ready}")
            assert popen.poll() is None, process.said()
        return process

    def ready(self, *processes: Process, word: str = "ready.") -> None:
        """Wait for processes that were spawned without waiting: so they start beside each other."""

        def there() -> bool:
            return all(word in each.said() or each.popen.poll() is not None for each in processes)

        self.until(there, f"{', '.join(each.role for each in processes)} to be {word}")
        for process in processes:
            assert process.popen.poll() is None, process.said()

    def pair(self, **options: int) -> tuple[Process, Process]:
        """An executor and a worker."""
        both = self.executor(ready=None), self.worker(ready=None, **options)  # type: ignore[arg-type]
        self.ready(*both)
        return both

    def executor(self, *, ready: str | None = "ready.", **environment: str) -> Process:
        return self.spawn("executor", ready=ready, **environment)

    def worker(
        self,
        *,
        concurrency: int = 2,
        pool: str = "prefork",
        queues: Sequence[str] = ("wfcelery.steps",),
        ready: str | None = "ready.",
        **environment: str,
    ) -> Process:
        options = ("--concurrency", str(concurrency), "--pool", pool, "--queues", ",".join(queues))
        return self.spawn("worker", *options, ready=ready, **environment)

    def beat(self) -> Process:
        return self.spawn("beat", ready=None)

    # -- the broker

    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.broker.url, socket_timeout=5)

    def flush(self) -> None:
        with self.redis() as client:
            client.flushall()

    def push(self, *payloads: bytes) -> None:
        """Put into the mailbox whatever this is, as anybody could who reaches the broker."""
        with self.redis() as client:
            Sender(client, Names()).push(payloads)

    def cut_connections(self) -> int:
        """Drop the connections of everybody else; tell how many there were."""
        with self.redis() as client:
            return int(client.client_kill_filter(_type="normal", skipme=True))

    def stop_broker(self) -> None:
        self.broker.process.kill()
        self.broker.process.wait(STOP_S)

    def start_broker(self) -> None:
        """An empty one, at the same address."""
        self.broker = valkey.start(self.broker.home)

    # -- runs

    def start(self, flow: Json, given: Json = None, **options: object) -> str:
        return self.workflows.start(flow, given or {}, **options).id  # type: ignore[arg-type]

    def start_many(self, flow: Json, count: int, given: Json = None) -> list[str]:
        """Start many runs of one flow, without waiting for more than the answers."""
        return [run.id for run in self.workflows.start_many([(flow, given or {})] * count)]

    def query(self, statement: str) -> list[tuple[object, ...]]:
        try:
            with self._engine.connect() as conn:
                return [tuple(row) for row in conn.execute(text(statement))]
        except DBAPIError:
            return []

    def statuses(self) -> dict[str, int]:
        """How many runs have which status."""
        rows = self.query("SELECT status, count(*) FROM workflows GROUP BY status")
        return {str(row[0]): int(str(row[1])) for row in rows}

    def finish(self, runs: Iterable[str], timeout_s: float = 60.0) -> None:
        """Wait until all these runs have ended, and nothing of them is open any more."""
        wanted = set(runs)

        def ended() -> bool:
            rows = self.query(
                "SELECT id FROM workflows WHERE status IN ('completed', 'failed', 'cancelled') "
                "AND NOT EXISTS (SELECT 1 FROM workflow_steps s WHERE s.workflow_id = workflows.id "
                "AND s.status IN ('pending', 'ready', 'running'))"
            )
            return wanted <= {str(row[0]) for row in rows}

        self.until(ended, "all runs to end", timeout_s)

    def events(self, run: str, kind: str | None = None) -> list[dict[str, Json]]:
        found = self.workflows.events(run)
        return [event for event in found if kind is None or event["type"] == kind]

    def count_events(self, kind: str) -> int:
        rows = self.query(f"SELECT count(*) FROM workflow_events WHERE type = '{kind}'")  # noqa: S608
        return int(str(rows[0][0])) if rows else 0

    # -- what must hold whatever happened

    def unexplained(self) -> dict[tuple[str, str, int, int], int]:
        """The attempts that were begun more often than there is a recorded reason for."""
        rows = self.query(
            "SELECT workflow_id, step, item, attempt, count(*) FROM workflow_events "
            "WHERE type IN ('step_resent', 'step_returned') GROUP BY workflow_id, step, item, attempt"
        )
        reasons = {
            (str(row[0]), str(row[1]), int(str(row[2])), int(str(row[3]))): int(str(row[4])) for row in rows
        }
        repeated = self.ledger.repeated()
        return {key: count for key, count in repeated.items() if count > 1 + reasons.get(key, 0)}

    def out(self) -> int:
        """How many steps are with workers, or on their way."""
        rows = self.query("SELECT count(*) FROM workflow_steps WHERE status IN ('ready', 'running')")
        return int(str(rows[0][0])) if rows else 0

    def joins(self, step: str) -> Counter[str]:
        """How often the join of this name was made ready in each run."""
        rows = self.query(
            "SELECT workflow_id, count(*) FROM workflow_events "  # noqa: S608
            f"WHERE type = 'step_ready' AND attempt = 1 AND step = '{step}' GROUP BY workflow_id"
        )
        return Counter({str(row[0]): int(str(row[1])) for row in rows})

    # -- waiting

    def until(self, holds: Callable[[], T], what: str, timeout_s: float = 60.0) -> T:
        """Look again and again until it holds; the one place where a test of the system waits."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = holds()
            if found:
                return found
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {timeout_s:g} s for {what}\n{self.report()}")
            time.sleep(0.02)

    def report(self) -> str:
        """What a person would look at: states, open steps, the ends of the logs."""
        open_steps = self.query(
            "SELECT workflow_id, name, item, attempt, status, waits_for, worker FROM workflow_steps "
            "WHERE status IN ('pending', 'ready', 'running') LIMIT 10"
        )
        parts = [f"runs: {self.statuses()}", *(f"open: {tuple(row)}" for row in open_steps)]
        parts += [f"ledger: {line}" for line in self.ledger.lines()[-6:]]
        parts += [
            f"--- {process.log.name} (exit {process.popen.poll()})\n{process.said()[-1500:]}"
            for process in self.processes
        ]
        return "\n".join(parts)

    def close(self) -> None:
        for process in self.processes:
            if process.popen.poll() is None:
                process.signal(signal.SIGCONT)
                process.kill()
        self.workflows.close()
        self._engine.dispose()
        self.broker.process.kill()
        self.broker.process.wait(STOP_S)
        places.remove(self.broker.home)

    def check(self) -> None:
        """`wfcelery check` finds nothing."""
        assert problems(self.database_url) == []
