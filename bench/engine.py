"""The in-process engine: core, store, executor and two worker threads in one Python process."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.flows import chain, each
from wfcelery import Registry
from wfcelery.core.messages import Principal
from wfcelery.core.state import RunStatus
from wfcelery.core.values import Json
from wfcelery.embedded import Engine
from wfcelery.embedded.engine import new_command_id, new_run_id
from wfcelery.executor.messages import Start
from wfcelery.store.changes import RunChange

MEMORY = "sqlite://"


@contextmanager
def database(kind: str) -> Iterator[str]:
    if kind == "memory":
        yield MEMORY
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{Path(folder) / 'bench.db'}"


def run_all(url: str, flow: dict[str, Json], runs: int, given: Json) -> float:
    """Start `runs` runs at once, wait for all of them, and give the seconds it took."""
    gc.collect()  # what the round before has left is not this one's to clean up
    ended: dict[str, RunStatus] = {}

    def observe(changes: Sequence[RunChange]) -> None:
        ended.update({each.after.id: each.after.status for each in changes if not each.after.open})

    with Engine(url, Registry.with_builtins(), workers=2, observer=observe) as engine:
        began = time.perf_counter()
        ids = [new_run_id(engine.clock.now()) for _ in range(runs)]
        starts = [Start(new_command_id(), run_id, flow, given, Principal("bench")) for run_id in ids]
        engine.mailbox.push(*starts)
        while len(ended) < runs:
            engine.turn()
        took = time.perf_counter() - began
    assert set(ended.values()) == {RunStatus.COMPLETED}
    return took


def throughput(kind: str, runs: int) -> dict[str, float]:
    with database(kind) as url:
        took = run_all(url, chain(10), runs, {})
    return {"steps_per_s": runs * 10 / took}


def latency(kind: str) -> dict[str, float]:
    with database(kind) as url:
        took = run_all(url, chain(200), 1, {})
    return {"ms_per_step": took / 200 * 1000}


def fan_out(kind: str) -> dict[str, float]:
    """Time per item of 100 and of 10,000 items into one join."""
    per_item = {}
    for items, runs in ((100, 20), (10_000, 1)):
        with database(kind) as url:
            given: Json = {"items": list(range(items))}
            per_item[items] = run_all(url, each(items), runs, given) / items / runs
    return {
        "us_per_item_100": per_item[100] * 1e6,
        "us_per_item_10000": per_item[10_000] * 1e6,
        "ratio": per_item[10_000] / per_item[100],
    }


BENCHMARKS: dict[str, Callable[[], dict[str, float]]] = {
    "throughput-memory": lambda: throughput("memory", 300),
    "throughput-file": lambda: throughput("file", 300),
    "latency-memory": lambda: latency("memory"),
    "latency-file": lambda: latency("file"),
    "fan-out-memory": lambda: fan_out("memory"),
    "fan-out-file": lambda: fan_out("file"),
}
