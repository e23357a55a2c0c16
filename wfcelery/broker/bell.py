"""Celery messages made by hand, so that a Lua script can put them on a queue."""

from __future__ import annotations

import base64
import functools
import json
import uuid
from typing import Final

_ID: Final = "00000000-0000-0000-0000-000000000000"


def envelope(task: str, queue: str) -> bytes:
    """Write a message that calls `task` without arguments, as kombu keeps it in the list of `queue`.

    Each has an id of its own: kombu files what is not acknowledged under the delivery tag, and whoever
    revokes one task must not silence all that follow.
    """
    return _template(task, queue).replace(_ID.encode(), str(uuid.uuid4()).encode())


@functools.lru_cache(maxsize=64)
def _template(task: str, queue: str) -> bytes:
    embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    body = base64.b64encode(json.dumps([[], {}, embedded]).encode()).decode()
    message = {
        "body": body,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": task,
            "id": _ID,
            "root_id": _ID,
            "parent_id": None,
            "group": None,
            "shadow": None,
            "eta": None,
            "expires": None,
            "retries": 0,
            "timelimit": [None, None],
            "argsrepr": "()",
            "kwargsrepr": "{}",
            "origin": "wfcelery",
            "ignore_result": True,
        },
        "properties": {
            "correlation_id": _ID,
            "reply_to": "",
            "delivery_mode": 2,
            # The nameless exchange leads to the queue itself: a message that is put back needs no binding.
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": _ID,
        },
    }
    return json.dumps(message).encode()
