"""The whole system beside plain Celery and canvas, in the same rounds, on one broker."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from bench.figures import Figure, ratio, say
from bench.rivals import LENGTH, Celery, Ours, celery, ours
from tests.services import postgres, valkey

PARTS = ("throughput", "latency", "fan-out")
BRIEF = ("throughput", "latency")
UNITS = {
    "throughput": "steps_per_s",
    "latency": "ms_per_step",
    "fan-out": "s",
    "branch-growth": "ratio",
    "load": "load",
}
COMPARED = (
    ("postgresql", "canvas"),
    ("sqlite", "canvas"),
    ("postgresql", "celery tasks"),
    ("sqlite", "celery tasks"),
)
LATENCY_STEPS = 40

Samples = dict[tuple[str, str], list[float]]


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything a round does."""

    chains: int = 300
    latency_chains: int = 5
    width: int = 1_000
    long: bool = False


QUICK = Size(chains=100, latency_chains=3, width=300)


@dataclass(frozen=True, slots=True)
class Services:
    """A broker and a PostgreSQL with fsync on, of our own."""

    folder: Path
    broker: valkey.Process
    databases: postgres.Server

    @property
    def broker_url(self) -> str:
        return self.broker.url.replace("unix://", "redis+socket://")

    def flush(self) -> None:
        with redis.Redis.from_url(self.broker.url) as client:
            client.flushall()


@contextmanager
def services() -> Iterator[Services]:
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        broker = valkey.start()
        held.callback(broker.stop)
        databases = held.enter_context(postgres.server(folder / "postgres", durable=True))
        yield Services(folder, broker, databases)


def measure(
    held: Services, *, pool: str, rounds: int, size: Size, parts: Sequence[str] = PARTS
) -> list[Figure]:
    """Let each contender have its turn in each round; who begins changes from round to round."""
    name = "system" if pool == "prefork" else f"system-{pool}"
    samples: Samples = defaultdict(list)
    turns = list(_TURNS.items())
    for number in range(rounds):
        begin = number % len(turns)
        for turn, play in turns[begin:] + turns[:begin]:
            began = time.monotonic()
            held.flush()
            with tempfile.TemporaryDirectory(dir=held.folder) as folder:
                for who, figures in play(held, Path(folder), pool, size, parts).items():
                    for what, figure in figures.items():
                        samples[what, who].append(figure)
            load = os.getloadavg()[0]
            samples["load", "all of the machine"].append(load)
            took = time.monotonic() - began
            say(f"{name}: round {number + 1} of {rounds}, {turn}: {took:.1f} s, load {load:.1f}")
    return [*_figures(name, samples), *_ratios(name, samples)]


def _figures(name: str, samples: Samples) -> list[Figure]:
    return [
        Figure(f"{name}-{what}", who, UNITS[what], tuple(found)) for (what, who), found in samples.items()
    ]


def _ratios(name: str, samples: Samples) -> list[Figure]:
    return [
        ratio(f"{name}-{what}", (one, samples[what, one]), (other, samples[what, other]))
        for what in PARTS
        for one, other in COMPARED
        if (what, one) in samples and (what, other) in samples
    ]


Told = dict[str, float]
Play = Callable[[Services, Path, str, Size, Sequence[str]], Mapping[str, Told]]


def _play_celery(
    held: Services, folder: Path, pool: str, size: Size, parts: Sequence[str]
) -> Mapping[str, Told]:
    tasks: Told = {}
    canvas: Told = {}
    with celery(held.folder, folder, held.broker_url, pool) as rival:
        if "throughput" in parts:
            rival.tasks(10)
            tasks["throughput"] = size.chains * LENGTH / rival.tasks(size.chains)
        canvas |= _ask(rival, size, [part for part in parts if part != "fan-out"])
    if "fan-out" in parts:
        with celery(held.folder, folder, held.broker_url, pool, results=True) as rival:
            canvas |= _ask(rival, size, ["fan-out"])
    return {"celery tasks": tasks, "canvas": canvas}


def _play_postgresql(
    held: Services, folder: Path, pool: str, size: Size, parts: Sequence[str]
) -> Mapping[str, Told]:
    with (
        held.databases.database() as url,
        ours(folder, held.broker_url, url, pool) as rival,
    ):
        return {"postgresql": _ask(rival, size, parts)}


def _play_sqlite(
    held: Services, folder: Path, pool: str, size: Size, parts: Sequence[str]
) -> Mapping[str, Told]:
    with ours(folder, held.broker_url, f"sqlite:///{folder / 'bench.db'}", pool) as rival:
        return {"sqlite": _ask(rival, size, parts)}


_TURNS: Mapping[str, Play] = {
    "celery tasks and canvas": _play_celery,
    "postgresql": _play_postgresql,
    "sqlite": _play_sqlite,
}


def _ask(rival: Celery | Ours, size: Size, parts: Sequence[str]) -> Told:
    """Ask a contender everything, after a little to warm up."""
    told: Told = {}
    rival.chains(10)
    if "throughput" in parts:
        told["throughput"] = size.chains * LENGTH / rival.chains(size.chains)
    if "latency" in parts:
        chains = [rival.latency(LATENCY_STEPS) for _ in range(size.latency_chains)]
        told["latency"] = statistics.median(chains) / LATENCY_STEPS * 1000
    if "fan-out" in parts:
        told["fan-out"] = rival.fan_out(size.width)
        if size.long and isinstance(rival, Ours):
            few = statistics.median(rival.fan_out(100) for _ in range(5)) / 100
            told["branch-growth"] = rival.fan_out(10_000) / 10_000 / few
    return told
