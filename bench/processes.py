"""Starting the processes that are measured, and ending all of them, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READY = "ready."
START_S = 60.0
LOOK_S = 0.01


class NotMeasured(Exception):
    """What was to be measured did not happen."""


def pool_options(pool: str) -> list[tuple[str, ...]]:
    """The options of the workers that run the steps: one with two processes, or two with one."""
    if pool == "solo":
        return [("--pool", "solo", "--concurrency", "1")] * 2
    return [("--pool", pool, "--concurrency", "2")]


@contextmanager
def running(
    folder: Path, commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]]
) -> Iterator[None]:
    """Start Python modules as processes, wait until each is ready, and kill them and theirs at the end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WFCELERY_")}
    started: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"{place}.log" for place in range(len(commands))]
    try:
        for command, environment, log in zip(commands, environments, logs, strict=True):
            with log.open("wb") as out:
                started.append(
                    subprocess.Popen(
                        [sys.executable, "-W", "ignore", "-m", *command],
                        cwd=folder,
                        env=inherited | {"PYTHONPATH": str(ROOT), **environment},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=out,
                        start_new_session=True,
                    )
                )
        for process, log in zip(started, logs, strict=True):
            _wait_until_ready(process, log)
        yield
    except Exception as trouble:
        for log in logs:
            trouble.add_note(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}")
        raise
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float, look_s: float = LOOK_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise NotMeasured(f"waited {timeout_s:g} s for {what}")
        time.sleep(look_s)


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    def is_ready() -> bool:
        if process.poll() is not None:
            raise NotMeasured(f"a process ended with code {process.returncode} before it was ready")
        return READY in log.read_text(errors="replace")

    wait_until(is_ready, "a process to be ready", START_S, 0.05)
