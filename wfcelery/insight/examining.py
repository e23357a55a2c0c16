"""Reading what `doctor` judges: settings, broker, tables, tools. What is away is a finding, not an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING

from wfcelery.broker.client import check_server, connect, reaching
from wfcelery.broker.names import STEPS_QUEUE, Names
from wfcelery.broker.pulse import Pulse
from wfcelery.broker.sender import Sender
from wfcelery.core.flow import Call, Foreach
from wfcelery.core.limits import DEFAULT
from wfcelery.errors import InvalidSettings, NotFound, NotReachable, WfceleryError
from wfcelery.executor.definitions import Definitions
from wfcelery.insight import findings
from wfcelery.insight.findings import BrokerState, Finding, Level, TablesState
from wfcelery.store import health, migrations, notices, workers
from wfcelery.tools import Registry

if TYPE_CHECKING:
    import redis

    from wfcelery.core.flow import Flow, Step
    from wfcelery.settings import Settings
    from wfcelery.store import Connection


def examine(
    settings: Settings, reading: Callable[[], AbstractContextManager[Connection]]
) -> Iterator[Finding]:
    """Look at everything, one thing after the other; `reading` opens the tables."""
    yield from findings.of_settings(settings)
    broker = None
    if settings.broker_url is not None:
        try:
            broker = _broker(settings.broker_url, Names(settings.key_prefix))
            yield from findings.of_broker(broker, time.time())
        except WfceleryError as error:
            yield Finding("broker", Level.FAIL, str(error), "start it, or correct WFCELERY_BROKER_URL")
    try:
        with reading() as conn:
            flows = _flows(conn)
            tables = _tables(conn, flows)
    except WfceleryError as error:
        advice = "start it, or correct WFCELERY_DATABASE_URL; an executor makes the tables when it starts"
        yield Finding("database", Level.FAIL, str(error), advice)
        return
    now = time.time()
    yield from findings.of_tables(tables, now, settings.lease_s)
    if broker is not None:
        yield from findings.of_pulses(tables, broker, now)
    yield from _tools(settings, flows)


def _broker(url: str, names: Names) -> BrokerState:
    with closing(connect(url)) as client:
        with reaching(client):
            client.ping()  # The first round trip is a connection, too.
            began = time.monotonic()
            client.ping()
            took = time.monotonic() - began
            seconds, micros = client.time()
        return BrokerState(
            took_s=took,
            clock=int(seconds) + int(micros) / 1e6,
            complaints=check_server(client),
            pulses=Pulse(client, names).pulses(),
            mailbox=Sender(client, names).length(),
            version=_version(client),
        )


def _version(client: redis.Redis) -> str:
    from redis.exceptions import ResponseError  # noqa: PLC0415 - most callers ask for nothing of it

    with reaching(client):
        try:
            told = client.info("server")
        except ResponseError:
            return ""
    return str(told.get("valkey_version") or told.get("redis_version") or "")


def _tables(conn: Connection, flows: dict[str, Flow]) -> TablesState:
    definitions = Definitions(None, DEFAULT)
    return TablesState(
        version=migrations.version(conn) or "none",
        executor=health.executor_seen(conn),
        workers=tuple(workers.known(conn)),
        waiting=health.waiting(conn, lambda each: flows.get(each) or definitions.get(conn, each).flow),
        dead_letters=health.count_dead_letters(conn),
        time_limits=frozenset(
            step.queue or STEPS_QUEUE
            for flow in flows.values()
            for step in flow.steps.values()
            if step.timeout_s is not None and _tool(step) is not None
        ),
        untold=notices.untold(conn, time.time() - findings.TOLD_WITHIN_S),
    )


def _flows(conn: Connection) -> dict[str, Flow]:
    """Read the flows in use; one that this version cannot read is left to `check`."""
    definitions = Definitions(None, DEFAULT)
    found = {}
    for definition_id in health.definitions_in_use(conn):
        try:
            found[definition_id] = definitions.get(conn, definition_id).flow
        except (NotFound, NotReachable):
            raise
        except WfceleryError:
            continue
    return found


def _tools(settings: Settings, flows: dict[str, Flow]) -> Iterator[Finding]:
    try:
        registry = Registry.load(settings.tools)
    except InvalidSettings as error:
        yield Finding("tools", Level.FAIL, str(error), "correct WFCELERY_TOOLS, or the module")
        return
    wanted = {tool for flow in flows.values() for step in flow.steps.values() if (tool := _tool(step))}
    yield from findings.of_tools(settings.tools, {tool for tool in wanted if tool not in registry})


def _tool(step: Step) -> str | None:
    action = step.action.body if isinstance(step.action, Foreach) else step.action
    return action.tool if isinstance(action, Call) else None
