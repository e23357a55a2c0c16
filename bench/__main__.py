"""Measure the in-process engine; one JSON line per figure. `python -m bench --help`."""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wfcelery import Registry
from wfcelery.core.messages import Principal
from wfcelery.core.state import RunStatus
from wfcelery.core.values import Json
from wfcelery.embedded import Engine
from wfcelery.embedded.engine import new_command_id, new_run_id
from wfcelery.embedded.process import own_process
from wfcelery.executor.messages import Start
from wfcelery.store.changes import RunChange

MEMORY = "sqlite://"


def chain(length: int) -> dict[str, Json]:
    """A flow of `length` no-op steps, one after the other."""
    steps: dict[str, Json] = {}
    for place in range(length):
        way: dict[str, Json] = {"done": True} if place == length - 1 else {"next": f"s{place + 1}"}
        steps[f"s{place}"] = {"tool": "echo", "args": {"value": place}, **way}
    return {"name": f"chain{length}", "start": "s0", "steps": steps}


def each(items: int) -> dict[str, Json]:
    """A foreach over `items` items, then one step with all the results."""
    return {
        "name": f"each{items}",
        "start": "work",
        "steps": {
            "work": {
                "foreach": {"items": "{{input.items}}", "tool": "echo", "args": {"value": "{{index}}"}},
                "next": "sum",
            },
            "sum": {"tool": "echo", "args": {"value": "{{size(result)}}"}, "done": True},
        },
    }


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="each figure is the median of so many rounds")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}")
    own_process()
    for name in chosen.names or BENCHMARKS:
        rounds = [BENCHMARKS[name]() for _ in range(chosen.rounds)]
        figures = {key: round(statistics.median(each[key] for each in rounds), 3) for key in rounds[0]}
        spread = {
            key: [round(pick(each[key] for each in rounds), 3) for pick in (min, max)] for key in rounds[0]
        }
        print(json.dumps({"bench": name, **figures, "spread": spread, "rounds": chosen.rounds}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
