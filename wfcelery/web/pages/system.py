"""The system: who is at work, what waits, and what is not well, in the words of `wfcelery doctor`."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from wfcelery.broker.client import connect
from wfcelery.broker.names import EXECUTOR_QUEUE, STEPS_QUEUE, Names
from wfcelery.errors import WfceleryError
from wfcelery.insight.examining import examine
from wfcelery.insight.findings import Level
from wfcelery.insight.queues import lengths
from wfcelery.rights import Permission, Resource
from wfcelery.store import dead_letters, health, migrations, notices, workers
from wfcelery.web.doors import Door
from wfcelery.web.guard import desk_of, visitor_of
from wfcelery.web.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.insight.findings import Finding
    from wfcelery.settings import Settings
    from wfcelery.store.dead_letters import DeadLetter
    from wfcelery.store.health import ExecutorSeen, Waiting
    from wfcelery.store.notices import Notice
    from wfcelery.store.workers import WorkerRow
    from wfcelery.web.desk import Desk

ALL: Final = Resource()
"""What is not about one flow: only a permission for all flows covers it."""
LETTERS: Final = 20
NOTICES: Final = 20
PARTS: Final = ("wfcelery", "celery", "sqlalchemy", "starlette", "uvicorn", "redis")
_SIGNS: Final = {Level.OK: "done", Level.WARN: "waiting", Level.FAIL: "failed"}


@dataclass(frozen=True, slots=True)
class Tables:
    """What the tables tell; empty while they are away."""

    executor: ExecutorSeen | None = None
    workers: tuple[WorkerRow, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    letters: tuple[DeadLetter, ...] = ()
    notices: tuple[Notice, ...] = ()
    version: str = ""


def show(request: Request) -> Response:
    """Show how the system is. What is away is a finding, and never an error."""
    desk, who = desk_of(request), visitor_of(request).who
    now = time.time()
    found = _findings(desk)
    is_admin, reads_all = (desk.may(who, each, ALL) for each in (Permission.ADMIN, Permission.READ))
    tables = _tables(desk, is_admin=is_admin, reads_all=reads_all)
    known = tables.workers
    waiting = {each.queue or STEPS_QUEUE: each for each in tables.waiting}
    queues = {queue for each in known for queue in each.queues} | set(waiting) | {STEPS_QUEUE, EXECUTOR_QUEUE}
    counted, trouble = _lengths(desk.settings, queues)
    alive = [each for each in known if now - each.seen_at <= desk.settings.lease_s]
    return render(
        request,
        "system.html",
        findings=sorted(found, key=lambda each: list(Level)[::-1].index(each.level)),
        worst=max((each.level for each in found), key=list(Level).index, default=Level.OK),
        signs=_SIGNS,
        alive={each.name for each in alive},
        queues=[
            (queue, counted.get(queue), waiting.get(queue), sum(queue in each.queues for each in alive))
            for queue in sorted(queues)
        ],
        trouble=trouble,
        is_admin=is_admin,
        reads_all=reads_all,
        tables=tables,
        parts=[(part, version(part)) for part in PARTS],
    )


def _findings(desk: Desk) -> list[Finding]:
    """Ask `doctor`. Which tools there are is for workers to know: nothing of theirs is loaded here."""
    settings = replace(desk.settings, tools=())
    return [each for each in examine(settings, desk.reading) if each.check != "tools"]


def _tables(desk: Desk, *, is_admin: bool, reads_all: bool) -> Tables:
    try:
        with desk.reading() as conn:
            return Tables(
                executor=health.executor_seen(conn),
                workers=tuple(workers.known(conn)),
                waiting=tuple(health.waiting(conn, lambda each: desk.flow_of(conn, each))),
                letters=tuple(dead_letters.listing(conn, LETTERS)) if is_admin else (),
                notices=tuple(notices.failed(conn, NOTICES)) if reads_all else (),
                version=migrations.version(conn) or "",
            )
    except WfceleryError:
        return Tables()  # A finding says why.


def _lengths(settings: Settings, queues: Iterable[str]) -> tuple[dict[str, int], str]:
    if settings.broker_url is None:
        return {}, "no broker is set"
    try:
        with closing(connect(settings.broker_url)) as client:
            return lengths(client, Names(settings.key_prefix), queues), ""
    except WfceleryError as error:
        return {}, str(error)


DOORS: Final = (Door("GET", "/system", show, "system", Permission.READ),)
