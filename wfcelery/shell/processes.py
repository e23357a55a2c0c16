"""Starting our processes with the Celery options that they need."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from celery.exceptions import SecurityWarning
from celery.signals import setup_logging, worker_shutdown

from wfcelery.broker.names import EXECUTOR_QUEUE, NOTIFY_QUEUE, STEPS_QUEUE
from wfcelery.shell import logs
from wfcelery.shell.celery_app import make_app

if TYPE_CHECKING:
    from celery.worker import WorkController

    from wfcelery.settings import Settings

NOTICES_AT_ONCE: Final = 4
# A line for each bell and each step would be most of the log, and a good part of the work.
CHATTY: Final = ("celery.worker.strategy", "celery.app.trace", "celery.beat", "kombu")


def run_executor(settings: Settings, *, loglevel: str = "INFO", name: str | None = None) -> int:
    """Be the executor, or stand by for it, until told to stop; give the exit code."""
    options = ["--pool", "solo", "--concurrency", "1", "--queues", EXECUTOR_QUEUE, "--without-heartbeat"]
    return _run_worker(settings, "executor", name, loglevel, options)


def run_worker(
    settings: Settings,
    *,
    queues: Sequence[str] = (STEPS_QUEUE,),
    concurrency: int | None = None,
    pool: str = "prefork",
    loglevel: str = "INFO",
    name: str | None = None,
) -> int:
    """Run steps until told to stop; give the exit code."""
    options = ["--pool", pool, "--queues", ",".join(queues)]
    if concurrency is not None:
        options += ["--concurrency", str(concurrency)]
    return _run_worker(settings, "worker", name, loglevel, options)


def run_notifier(settings: Settings, *, loglevel: str = "INFO", name: str | None = None) -> int:
    """Send notices until told to stop; give the exit code."""
    hands = ["--pool", "threads", "--concurrency", str(NOTICES_AT_ONCE)]
    return _run_worker(settings, "notifier", name, loglevel, [*hands, "--queues", NOTIFY_QUEUE])


def run_beat(settings: Settings, *, schedule: Path | None = None, loglevel: str = "INFO") -> int:
    """Send ticks until told to stop; give the exit code."""
    _log(settings, loglevel)
    app = make_app(settings)
    where = schedule or Path(".wfcelery") / "beat-schedule"
    where.parent.mkdir(parents=True, exist_ok=True)
    return _code_of(
        lambda: app.start(
            ["--quiet", "beat", "--schedule", str(where), "--pidfile", "", "--loglevel", loglevel]
        )
    )


def _run_worker(
    settings: Settings, role: str, name: str | None, loglevel: str, options: Sequence[str]
) -> int:
    _log(settings, loglevel)
    app = make_app(settings)
    hostname = name or f"{role}-{os.getpid()}@{socket.gethostname()}"
    argv = ["worker", *options, "--hostname", hostname, "--without-gossip", "--without-mingle"]
    codes: list[int] = []

    def note(sender: WorkController, **_kwargs: object) -> None:
        # Celery's own command tells nobody with which code its worker ended.
        codes.append(sender.exitcode or 0)

    worker_shutdown.connect(note, weak=False)
    code = _code_of(lambda: app.worker_main(["--quiet", *argv, "--loglevel", loglevel]))
    return code or max(codes, default=0)


def _code_of(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0


def _log(settings: Settings, level: str) -> None:
    """Log in our own way: one line, to stderr, without Celery's news of every message."""

    def configure(**_kwargs: object) -> None:
        logs.configure(settings.log_format, level)
        if level.upper() != "DEBUG":
            for name in CHATTY:
                logging.getLogger(name).setLevel(logging.WARNING)

    setup_logging.connect(configure, weak=False)
    configure()
    # Celery says this in eight lines, each time.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    if os.geteuid() == 0:
        logging.getLogger("wfcelery").warning("running as root; a user of its own would be safer")
