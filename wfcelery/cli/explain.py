"""`wfcelery explain`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from wfcelery.cli.options import Command, database_option, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfcelery.core.flow import Flow
    from wfcelery.insight.reasons import BrokerSeen
    from wfcelery.settings import Settings


@click.command(
    cls=Command,
    examples=(
        "wfcelery explain 01k9z3n5m8q0r2t4v6x8y0a1b2",
        "wfcelery explain 01k9z3n5m8q0r2t4v6x8y0a1b2 -o json",
    ),
)
@click.argument("run", metavar="RUN")
@database_option
@output_option("text", "json")
@debug_option
def explain(*, run: str, database: str | None, output: str) -> None:
    """Say why a run is not moving.

    One sentence for each thing that it waits for: a person, a signal, a retry, a worker, a queue, the clock.
    """
    from wfcelery.cli.database import Right, reading
    from wfcelery.cli.output import plain, print_json
    from wfcelery.core.limits import DEFAULT
    from wfcelery.errors import NotFound
    from wfcelery.executor.definitions import Definitions
    from wfcelery.insight.reasons import reasons
    from wfcelery.store import explain as explaining

    settings = settings_of(database=database)
    definitions = Definitions(None, DEFAULT)
    with reading(settings, Right(run=run)) as conn:

        def flow_of(definition_id: str) -> Flow:
            return definitions.get(conn, definition_id).flow

        facts = explaining.facts(conn, flow_of, run)
    if facts is None:
        raise NotFound("run", run, "`wfcelery ps` lists the runs")
    queues = {each.step.queue for each in facts.open if each.attempt.status in ("ready", "running")}
    found = reasons(facts, time.time(), _broker(settings, queues), lease_s=settings.lease_s)
    if output == "json":
        status = facts.run.status.value
        print_json({"run_id": run, "status": status, "reasons": [each.as_json() for each in found]})
    else:
        for each in found:
            click.echo(plain(each.message))


def _broker(settings: Settings, queues: Iterable[str | None]) -> BrokerSeen | None:
    """Ask the broker how long its queues are; None if there is none, or nothing to ask it for."""
    if settings.broker_url is None or not queues:
        return None
    from wfcelery.broker.client import connect
    from wfcelery.broker.names import STEPS_QUEUE, Names
    from wfcelery.errors import NotReachable
    from wfcelery.insight.queues import lengths
    from wfcelery.insight.reasons import BrokerSeen

    client = connect(settings.broker_url)
    try:
        return BrokerSeen(
            lengths(client, Names(settings.key_prefix), {queue or STEPS_QUEUE for queue in queues})
        )
    except NotReachable as error:
        return BrokerSeen(trouble=str(error))
    finally:
        client.close()
