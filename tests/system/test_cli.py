"""The command line beside real processes: what it says of them is so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from tests.system.flows import single
from tests.system.system import System


def cli(system: System, *args: str) -> tuple[int, str]:
    """Call a command as somebody who operates the system."""
    done = subprocess.run(
        [sys.executable, "-m", "wfcelery", *args],
        cwd=system.folder,
        env=system.environment() | {"PYTHONIOENCODING": "utf-8", "WFCELERY_USER": "ann"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def reasons(system: System, run: str) -> list[tuple[str, str]]:
    _, out = cli(system, "explain", run, "-o", "json")
    return [(each["code"], re.sub(r"since \d+ s", "since N s", each["message"])) for each in found(out)]


def found(out: str) -> Any:  # noqa: ANN401 - whatever JSON it is
    told = json.loads(out)
    return told["reasons"] if isinstance(told, dict) else told


def test_explain_and_doctor_tell_of_workers_queues_and_executors(sqlite_system: System) -> None:
    system = sqlite_system
    system.executor()
    worker = system.worker(concurrency=1)
    system.beat()
    (system.folder / "ledger.hold").touch()
    held = system.start(single("hold"))
    system.until(lambda: reasons(system, held)[0][0] == "running", "the step to be seen running")
    [(_, message)] = reasons(system, held)
    assert re.fullmatch(r"step `\w+` runs on worker worker-\d+@\S+( since N s)?", message), message
    queued = system.start(single("act"))
    gpu = system.start(single("act", queue="gpu"))
    system.until(lambda: reasons(system, queued)[0][0] == "queued", "the second step to wait behind it")
    system.until(lambda: reasons(system, gpu)[0][0] == "no-worker", "nobody to consume gpu")
    assert "no worker consumes queue `gpu`" in reasons(system, gpu)[0][1]
    code, out = cli(system, "doctor", "-o", "json")
    assert code == 1
    failed = [each["message"] for each in found(out) if each["level"] == "fail"]
    assert [re.sub(r"since \d+ s", "since N s", each) for each in failed] == [
        "1 step waits in gpu, the oldest since N s, and no worker consumes it"
    ]
    system.worker(concurrency=1, queues=("gpu",))
    (system.folder / "ledger.hold").unlink()
    for run in (held, queued, gpu):
        assert cli(system, "watch", run, "--timeout", "30")[0] == 0
    system.until(lambda: cli(system, "doctor")[0] == 0, "doctor to find nothing wrong")
    worker.kill()
    lost = system.start(single("act"))
    system.until(lambda: reasons(system, lost)[0][0] == "no-worker", "the dead worker to be missed", 30)
    assert cli(system, "cancel", lost)[0] == 0
