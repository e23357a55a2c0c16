"""Reading what `explain` says of a run: the tables, and how long the queues are that its steps wait in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING

from wfcelery.broker.client import connect
from wfcelery.broker.names import STEPS_QUEUE, Names
from wfcelery.core.limits import DEFAULT
from wfcelery.errors import NotFound, NotReachable
from wfcelery.executor.definitions import Definitions
from wfcelery.insight.queues import lengths
from wfcelery.insight.reasons import BrokerSeen, Reason, reasons
from wfcelery.store import explain as facts_of

if TYPE_CHECKING:
    from wfcelery.settings import Settings
    from wfcelery.store import Connection


def explain(
    settings: Settings, reading: Callable[[], AbstractContextManager[Connection]], run_id: str, now: float
) -> tuple[str, list[Reason]]:
    """Give the status of a run, and a reason for each thing that it waits for. Raises `NotFound`."""
    definitions = Definitions(None, DEFAULT)
    with reading() as conn:
        facts = facts_of.facts(conn, lambda each: definitions.get(conn, each).flow, run_id)
    if facts is None:
        raise NotFound("run", run_id, "`wfcelery ps` lists the runs")
    queues = {each.step.queue for each in facts.open if each.attempt.status in ("ready", "running")}
    found = reasons(facts, now, _broker(settings, queues), lease_s=settings.lease_s)
    return facts.run.status.value, found


def _broker(settings: Settings, queues: Iterable[str | None]) -> BrokerSeen | None:
    """Ask the broker how long its queues are; None if there is none, or nothing to ask it for."""
    wanted = {queue or STEPS_QUEUE for queue in queues}
    if settings.broker_url is None or not wanted:
        return None
    with closing(connect(settings.broker_url)) as client:
        try:
            return BrokerSeen(lengths(client, Names(settings.key_prefix), wanted))
        except NotReachable as error:
            return BrokerSeen(trouble=str(error))
