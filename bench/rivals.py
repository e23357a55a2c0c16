"""What is compared: Celery, and this engine, asked the same questions.

Each answers in seconds, after it has checked that everything ran, and once only: `chains` runs chains of ten
steps, all begun at once; `latency` one chain with nothing else to do; `fan_out` one step, then many beside
each other, then one with all their results.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

from sqlalchemy import Engine, create_engine, func, select

from bench.flows import chain, spread
from bench.marks import Marks
from bench.processes import NotMeasured, pool_options, running, wait_until
from wfcelery import Workflows
from wfcelery.core.values import Json
from wfcelery.store.schema import workflow_steps, workflows
from wfcelery.wire.keys import worker_keys

SECRET = "a secret of thirty-two characters"  # noqa: S105 - of a system that lives for seconds
TIMEOUT_S = 120.0
QUIET = ("--without-gossip", "--without-mingle", "--loglevel", "WARNING")
LENGTH = 10


class Celery:
    """Celery without us: tasks without any order, and its own workflows of chain and chord.

    The last task's mark tells when all has ended, and not a result.
    """

    def __init__(self, peers: ModuleType) -> None:
        self._peers = peers
        self._marks: Marks = peers.marks

    def tasks(self, count: int) -> float:
        """Send as many tasks as there would be steps, one message each."""
        self._marks.clear()
        began = time.time()
        for _ in range(count * LENGTH):
            self._peers.no_op.apply_async()
        return self._ended(count * LENGTH) - began

    def chains(self, count: int) -> float:
        self._marks.clear()
        began = time.time()
        for _ in range(count):
            self._chain(LENGTH)
        return self._ended(count * LENGTH) - began

    def latency(self, length: int) -> float:
        self._marks.clear()
        began = time.time()
        self._chain(length)
        return self._ended(length) - began

    def fan_out(self, width: int) -> float:
        from celery import Celery as App  # noqa: PLC0415 - loads much
        from celery import chain as in_order  # noqa: PLC0415 - same
        from celery import group  # noqa: PLC0415 - same

        # Nobody may send a chord without a result backend; that of the workers is the one that is used.
        url = os.environ["BENCH_BROKER_URL"]
        app = App("bench", broker=url, backend="cache+memory://", set_as_current=False)
        member = "bench.peers.member"
        members = group([app.signature(member, (index,), immutable=True) for index in range(width)])
        first = app.signature("bench.peers.no_op", immutable=True)
        last = app.signature("bench.peers.total", (width,))
        self._marks.clear()
        began = time.time()
        in_order(first, members, last).apply_async()
        ended = self._ended(2)
        app.close()
        return ended - began

    def _chain(self, length: int) -> None:
        from celery import chain as in_order  # noqa: PLC0415 - same

        in_order(self._peers.no_op.si() for _ in range(length)).apply_async()

    def _ended(self, count: int) -> float:
        wait_until(lambda: self._marks.count >= count, "all tasks to end", TIMEOUT_S)
        if self._marks.count != count:
            raise NotMeasured(f"{self._marks.count} tasks ran instead of {count}")
        return self._marks.last


class Ours:
    """An executor and workers; what happened is read from the tables."""

    def __init__(self, workflows_: Workflows, engine: Engine) -> None:
        self._workflows = workflows_
        self._engine = engine

    def chains(self, count: int) -> float:
        began = time.time()
        runs = self._workflows.start_many([(chain(LENGTH), {})] * count)
        return self._completed([run.id for run in runs], count * LENGTH) - began

    def latency(self, length: int) -> float:
        run = self._workflows.start(chain(length), {})
        ended = self._completed([run.id], length)
        steps = workflow_steps.c
        with self._engine.connect() as conn:
            first = select(func.min(steps.ready_at)).where(steps.workflow_id == run.id)
            return ended - float(conn.execute(first).scalar_one())

    def fan_out(self, width: int) -> float:
        items: list[Json] = list(range(width))
        began = time.time()
        run = self._workflows.start(spread(), {"items": items})
        ended = self._completed([run.id], width + 2)
        if self._workflows.get(run.id)["output"] != width:
            raise NotMeasured("the last step did not have all the results")
        return ended - began

    def _completed(self, ids: Sequence[str], steps: int) -> float:
        """Wait for the end of these runs, which are the newest; give the moment of the last one's."""
        runs = workflows.c
        open_runs = select(func.count()).where(runs.id >= min(ids), runs.completed_at.is_(None))
        ended = select(func.count(), func.max(runs.completed_at)).where(
            runs.id >= min(ids), runs.status == "completed"
        )
        done = select(func.count()).where(
            workflow_steps.c.workflow_id >= min(ids),
            workflow_steps.c.status == "done",
            workflow_steps.c.tool.is_not(None),
        )
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            wait_until(lambda: conn.execute(open_runs).scalar() == 0, "all runs to end", TIMEOUT_S, 0.05)
            completed, last = conn.execute(ended).one()
            ran = conn.execute(done).scalar()
        if (completed, ran) != (len(ids), steps):
            raise NotMeasured(f"{completed} of {len(ids)} runs completed, with {ran} of {steps} steps")
        return float(last)


@contextmanager
def celery(
    home: Path, folder: Path, broker_url: str, pool: str, *, results: bool = False
) -> Iterator[Celery]:
    """Workers with a stock app; `results` gives them a result backend."""
    # The app reads them when it is imported: here once, and in its workers.
    os.environ.setdefault("BENCH_BROKER_URL", broker_url)
    os.environ.setdefault("BENCH_MARKS", str(home / "marks"))
    from bench import peers  # noqa: PLC0415 - see above

    commands = [
        ("celery", "-A", "bench.peers", "worker", "--hostname", f"peer{place}@bench", *options, *QUIET)
        for place, options in enumerate(pool_options(pool))
    ]
    environment = {"BENCH_BACKEND_URL": broker_url} if results else {}
    with running(folder, commands, [environment] * len(commands)):
        yield Celery(peers)


@contextmanager
def ours(folder: Path, broker_url: str, database_url: str, pool: str) -> Iterator[Ours]:
    """An executor and workers on a new database."""
    executor = {"WFCELERY_DATABASE_URL": database_url, "WFCELERY_SECRET_KEY": SECRET}
    worker = {"WFCELERY_WORKER_KEY": worker_keys((SECRET,))[0]}
    workers = [("wfcelery", "worker", *options) for options in pool_options(pool)]
    broker = {"WFCELERY_BROKER_URL": broker_url}
    environments = [executor | broker, *[worker | broker] * len(workers)]
    with ExitStack() as held:
        held.enter_context(running(folder, [("wfcelery", "executor"), *workers], environments))
        engine = create_engine(database_url)
        held.callback(engine.dispose)
        asking = Workflows(
            None, database_url, broker_url=broker_url, secret_key=SECRET, user="bench", timeout_s=TIMEOUT_S
        )
        held.callback(asking.close)
        yield Ours(asking, engine)
