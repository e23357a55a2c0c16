"""Starting runs from Django, with or after the transaction in which they are asked for."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

from django.db import router, transaction

from wfcelery.contrib.django.models import Outbox
from wfcelery.contrib.django.place import place, workflows
from wfcelery.contrib.django.relay import soon
from wfcelery.contrib.django.rights import principal_of
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.executor.answers import raise_refusal
from wfcelery.executor.messages import Start
from wfcelery.workflows import Run
from wfcelery.workflows.asking import ask
from wfcelery.workflows.outbox import entry, request_of
from wfcelery.workflows.starts import FlowLike


def start(
    flow: FlowLike,
    input: Json = None,  # noqa: A002 - the word of the flow language
    *,
    by: Any = None,  # noqa: ANN401 - a user of the project, a name, a Principal
    key: str | None = None,
    tags: Iterable[str] = (),
    run_id: str | None = None,
    at: dt.datetime | None = None,
    on_conflict: Literal["return", "error"] = "return",
    name: str | None = None,
    outbox: bool = False,
    using: str | None = None,
) -> Run:
    """Begin a run of a flow. What could never be sent raises `InvalidInput` here, and nothing is written.

    Outside of a transaction it is sent at once, and refusals are raised. Inside, it is sent on commit, and
    what goes wrong then is raised after the commit. With `outbox` it is written as a row in the transaction:
    rolled back, nothing begins; committed, the run begins exactly once, whatever is down at that moment.
    `using` names the database of the transaction. `by` is a user; without, the application itself.
    """
    row = entry(
        flow,
        input,
        by=_who(by),
        now=time.time(),
        key=key,
        tags=tags,
        run_id=run_id,
        at=at,
        on_conflict=on_conflict,
        name=name,
    )
    alias = using or router.db_for_write(Outbox)
    if outbox:
        Outbox.of(row).save(using=alias, force_insert=True)
        transaction.on_commit(partial(soon.send, row, alias), using=alias, robust=True)
        return workflows().run(row.id)
    if not transaction.get_connection(alias).in_atomic_block:
        return _sent(request_of(row))
    transaction.on_commit(partial(_sent, request_of(row)), using=alias)
    return workflows().run(row.id)


def _sent(request: Start) -> Run:
    system = workflows()
    [answer] = ask(system.links, [request], system.timeout_s)
    raise_refusal(answer)
    return Run(str(answer.data["run_id"]), bool(answer.data["created"]), system)


def _who(by: Any) -> Principal:  # noqa: ANN401 - same
    if by is None:
        return place().application
    if isinstance(by, Principal):
        return by
    return Principal(by) if isinstance(by, str) else principal_of(by)
