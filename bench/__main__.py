"""Measure the engine in one process and as a system; one JSON line per figure. `python -m bench --help`."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from bench import engine, system
from bench.figures import Figure, print_rounds, print_table, say
from wfcelery.embedded.process import own_process

SYSTEMS = {"system": "prefork", "system-solo": "solo"}


def main() -> int:
    names = [*engine.BENCHMARKS, *SYSTEMS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(names)}; all by default")
    parser.add_argument(
        "--rounds", type=int, help="each figure is the median of so many rounds; 5, or 3 of the system"
    )
    parser.add_argument("--quick", action="store_true", help="a third of the work, in the system's rounds")
    parser.add_argument("--long", action="store_true", help="also a fan-out of 10,000 through the system")
    parser.add_argument(
        "--part", action="append", choices=system.PARTS, help="only this part of the system's rounds"
    )
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in names]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}")
    wanted = chosen.names or names
    # So that whoever ends us ends what we have started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    say(f"{os.cpu_count()} cores, load {' '.join(f'{load:.1f}' for load in os.getloadavg())}")
    _measure_engine([name for name in wanted if name in engine.BENCHMARKS], chosen.rounds or 5)
    base = system.QUICK if chosen.quick else system.Size()
    size = system.Size(base.chains, base.latency_chains, base.width, long=chosen.long)
    pools = [SYSTEMS[name] for name in wanted if name in SYSTEMS]
    if pools:
        _measure_system(pools, chosen.rounds or 3, size, chosen.part)
    return 0


def _measure_engine(names: list[str], rounds: int) -> None:
    if names:
        own_process()
    for name in names:
        print_rounds(name, [engine.BENCHMARKS[name]() for _ in range(rounds)])


def _measure_system(pools: list[str], rounds: int, size: system.Size, chosen: list[str] | None) -> None:
    shown: list[Figure] = []
    with system.services() as held:
        for pool in pools:
            parts = chosen or (system.PARTS if pool == "prefork" else system.BRIEF)
            figures = system.measure(held, pool=pool, rounds=rounds, size=size, parts=parts)
            for figure in figures:
                print(figure.line(), flush=True)
            shown += figures
    say("")
    print_table(shown)


if __name__ == "__main__":
    sys.exit(main())
