"""The system and its visitor: how it is, who asks, and what can be asked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wfcelery.broker.names import STEPS_QUEUE
from wfcelery.errors import NotReachable
from wfcelery.insight.examining import examine
from wfcelery.insight.findings import Level
from wfcelery.rights import Permission
from wfcelery.store import health, workers
from wfcelery.store.times import iso
from wfcelery.web import guard, identity
from wfcelery.web.api.fields import Nothing
from wfcelery.web.api.operation import Call, Reply

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.web.desk import Desk


def system(call: Call[Nothing, None]) -> Reply:
    """Say how the system is: what `wfcelery doctor` finds, and who is at work."""
    found = list(examine(call.desk.settings, call.desk.reading))
    shown: dict[str, Json] = {
        "well": all(each.level is not Level.FAIL for each in found),
        "findings": [each.as_json() for each in found],
    }
    try:
        return Reply({**shown, **_tables(call.desk)})
    except NotReachable:
        # What is away is a finding, and not an error.
        return Reply({**shown, "executor": None, "workers": [], "queues": [], "dead_letters": None})


def me(call: Call[Nothing, None]) -> Reply:
    """Say who asks, and what they may do."""
    who, visitor = call.who, guard.visitor_of(call.request)
    by_session = not visitor.by_token and not call.desk.is_open
    return Reply(
        {
            "id": who.id,
            "kind": who.kind.value,
            "groups": list(who.groups),
            "is_open": call.desk.is_open,
            "permissions": [each.value for each in Permission if call.desk.may(who, each)],
            "csrf_token": identity.csrf_token(call.desk, visitor.session) if by_session else None,
        }
    )


def _tables(desk: Desk) -> dict[str, Json]:
    with desk.reading() as conn:
        seen = health.executor_seen(conn)
        waiting = health.waiting(conn, lambda each: desk.definitions.get(conn, each).flow)
        known = workers.known(conn)
        letters = health.count_dead_letters(conn)
    return {
        "executor": None
        if seen is None
        else {
            "alive": seen.is_alive(time.time()),
            "epoch": seen.epoch,
            "renewed_at": iso(seen.renewed_at),
        },
        "workers": [
            {
                "name": each.name,
                "queues": list(each.queues),
                "pool": each.pool,
                "seen_at": iso(each.seen_at),
                "active": len(each.active),
                "reserved": each.reserved,
            }
            for each in known
        ],
        "queues": [
            {"queue": each.queue or STEPS_QUEUE, "waiting": each.count, "oldest": iso(each.oldest)}
            for each in waiting
        ],
        "dead_letters": letters,
    }
