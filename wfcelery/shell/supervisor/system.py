"""Which programs make a whole system, and what each of them is told: no more than it must know."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wfcelery.broker.names import STEPS_QUEUE
from wfcelery.errors import NotReachable
from wfcelery.notify.post import is_installed
from wfcelery.settings import HOOK_PREFIX, NAMES, PREFIX, Settings
from wfcelery.shell.supervisor.process import Program
from wfcelery.wire.keys import worker_keys

WORKER_STOP_S: Final = 30.0
WEB_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workforce:
    """How steps are done."""

    concurrency: int
    pool: str = "prefork"
    queues: tuple[str, ...] = ()
    """Besides `wfcelery.steps`."""


def programs(
    settings: Settings, workforce: Workforce, environ: Mapping[str, str], *, web_port: int | None = None
) -> tuple[Program, ...]:
    """Describe executor, worker, beat and, where there is apprise, notifier, in the order of their start.

    With `web_port` the web too, for this machine.
    """
    common = without_settings(environ) | {
        "PYTHONUNBUFFERED": "1",
        "WFCELERY_BROKER_URL": settings.broker_url or "",
        "WFCELERY_KEY_PREFIX": settings.key_prefix,
        "WFCELERY_TOOLS": ",".join(settings.tools),
        "WFCELERY_LEASE_S": f"{settings.lease_s:g}",
        "WFCELERY_LOG_FORMAT": settings.log_format,
    }
    trusted = common | {
        "WFCELERY_DATABASE_URL": settings.database_url,
        "WFCELERY_SECRET_KEY": ",".join(settings.secret_key),
        "WFCELERY_BASE_URL": settings.base_url or "",
        "WFCELERY_POLICY": settings.policy or "",
        "WFCELERY_AUTHORIZE": settings.authorize or "",
        "WFCELERY_NOTIFY": " ".join(settings.notify),
        "WFCELERY_LINK_DAYS": f"{settings.link_days:g}",
        "WFCELERY_LINK_LOGIN": "yes" if settings.link_login else "no",
        "WFCELERY_HOOKS": ",".join(settings.hooks),
    }
    # A worker runs other people's code: it can neither read the tables nor speak for an app or a person.
    worker = common | {"WFCELERY_WORKER_KEY": ",".join(worker_keys(settings.secret_key))}
    queues = ",".join(dict.fromkeys((STEPS_QUEUE, *workforce.queues)))
    hands = ("--concurrency", str(workforce.concurrency), "--pool", workforce.pool, "--queues", queues)
    found: tuple[Program, ...] = (
        Program(name="executor", command=_ours("executor"), environ=trusted),
        Program(name="worker", command=_ours("worker", *hands), environ=worker, stop_s=WORKER_STOP_S),
        Program(name="beat", command=_ours("beat"), environ=trusted),
    )
    if is_installed():
        found += (Program(name="notifier", command=_ours("notifier"), environ=trusted),)
    if web_port is not None:
        served = _ours("web", "--host", WEB_HOST, "--port", str(web_port), "--loglevel", "WARNING")
        hooks = {name: value for name, value in environ.items() if name.startswith(HOOK_PREFIX)}
        found += (Program(name="web", command=served, environ=trusted | hooks),)
    return found


def is_web_installed() -> bool:
    """Tell whether what the web needs is there."""
    return all(importlib.util.find_spec(each) is not None for each in ("starlette", "uvicorn", "jinja2"))


def web_port(wanted: int | None, usual: int) -> int:
    """Give the port of the web: the one that is wanted, else the usual one, else any that is free.

    Raises `NotReachable` if the one that is wanted is taken.
    """
    trouble = None
    for port in (usual, 0) if wanted is None else (wanted,):
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((WEB_HOST, port))
            except OSError as error:
                trouble = error.strerror
            else:
                return int(attempt.getsockname()[1])
    said = f"port {wanted or usual} cannot be used ({trouble})"
    raise NotReachable("the web", f"{said}; choose another with --web-port, or leave it out with --no-web")


def default_concurrency() -> int:
    """Give the number of cores that we may use, at most 4."""
    return max(
        1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    )


def _ours(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "wfcelery", *words)


def without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out every setting of ours, and the secrets of webhooks."""
    ours = {f"{PREFIX}{name.upper()}" for name in NAMES}
    return {
        name: value
        for name, value in environ.items()
        if name not in ours and not name.startswith(HOOK_PREFIX)
    }
