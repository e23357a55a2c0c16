"""The metrics of a system: from the tables, from the broker, and from what the executor tells of itself.

What is away is left out, and said to be: a scrape never fails because a part of the system does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wfcelery.broker.client import connect
from wfcelery.broker.figures import Figures
from wfcelery.broker.names import EXECUTOR_QUEUE, NOTIFY_QUEUE, STEPS_QUEUE, Names
from wfcelery.broker.sender import Sender
from wfcelery.core.state import LIVE, OPEN, RunStatus, StepStatus
from wfcelery.errors import WfceleryError
from wfcelery.executor.tally import MESSAGES, SECONDS
from wfcelery.insight.exposition import Family, counter, counters, gauge, gauges, histogram
from wfcelery.insight.queues import lengths
from wfcelery.store import health, metrics, workers

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.settings import Settings
    from wfcelery.store import Connection
    from wfcelery.store.metrics import Counts

_ENDED_RUNS: Final = tuple(status.value for status in RunStatus if status not in LIVE)
_ENDED_STEPS: Final = tuple(status.value for status in StepStatus if status not in OPEN)
_HISTOGRAMS: Final = (
    ("step_wait_seconds", "From when a step was ready until its tool was called.", "waited", SECONDS),
    ("step_run_seconds", "From when a tool was called until its end was written.", "ran", SECONDS),
    ("executor_batch_messages", "Messages in a batch of the executor.", "batch_messages", MESSAGES),
    (
        "executor_batch_seconds",
        "How long a batch took, from the mailbox to the tables.",
        "batch_seconds",
        SECONDS,
    ),
)


@dataclass(frozen=True, slots=True)
class Tables:
    """What the tables tell. `workers`: those alive, by queue."""

    counts: Counts
    executor_up: bool
    epoch: int
    workers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broker:
    """What the broker tells."""

    mailbox: int
    queues: Mapping[str, int]
    figures: Mapping[str, Json]


def gather(
    settings: Settings, reading: Callable[[], AbstractContextManager[Connection]], now: float | None = None
) -> Iterator[Family]:
    """Ask tables and broker, and give everything that there is to tell; `reading` opens the tables."""
    now = time.time() if now is None else now
    tables, broker = _tables(settings, reading, now), None
    queues = {STEPS_QUEUE, EXECUTOR_QUEUE, NOTIFY_QUEUE, *(tables.workers if tables else ())}
    if settings.broker_url is not None:
        broker = _broker(settings.broker_url, Names(settings.key_prefix), queues)
    reached = {"database": float(tables is not None), "broker": float(broker is not None)}
    yield gauges("up", "Whether this part of the system was reached for this answer.", "part", reached)
    if tables is not None:
        yield from _of_tables(tables)
    if broker is not None:
        yield from _of_broker(broker, now)
        yield from _of_executor(broker.figures)


def _tables(
    settings: Settings, reading: Callable[[], AbstractContextManager[Connection]], now: float
) -> Tables | None:
    try:
        with reading() as conn:
            seen = health.executor_seen(conn)
            known = workers.known(conn)
            counts = metrics.counts(conn, now)
    except WfceleryError:
        return None
    alive: dict[str, int] = {}
    for worker in known:
        for queue in worker.queues if now - worker.seen_at <= settings.lease_s else ():
            alive[queue] = alive.get(queue, 0) + 1
    return Tables(
        counts,
        seen is not None and seen.is_alive(now),
        0 if seen is None else seen.epoch,
        dict(sorted(alive.items())),
    )


def _broker(url: str, names: Names, queues: Iterable[str]) -> Broker | None:
    try:
        with closing(connect(url)) as client:
            return Broker(
                Sender(client, names).length(), lengths(client, names, queues), Figures(client, names).read()
            )
    except WfceleryError:
        return None


def _of_tables(tables: Tables) -> Iterator[Family]:
    counts = tables.counts
    yield gauge("executor_up", "Whether an executor holds the lease.", tables.executor_up)
    yield gauge("executor_lease_epoch", "How many executors have taken the lease so far.", tables.epoch)
    yield gauges("runs", "Runs that have not ended, by status.", "status", counts.runs)
    yield gauge("runs_held", "Runs that somebody has paused.", counts.held)
    yield gauges("steps", "Steps that have not ended, by status.", "status", counts.steps)
    yield gauges("steps_pending", "Pending steps, by what they wait for.", "waits_for", counts.waiting)
    yield gauge("timers", "Steps that go on at a moment: delays, retries, deadlines.", counts.timers)
    yield gauge("timers_due", "Those whose moment has come, and that have not gone on.", counts.timers_due)
    yield gauges("notices", "Notices that wait to be sent, and those given up.", "status", counts.notices)
    yield gauge("dead_letters", "Messages that were set aside.", counts.dead_letters)
    yield gauges("workers", "Workers heard within the lease, by queue.", "queue", tables.workers)


def _of_broker(broker: Broker, now: float) -> Iterator[Family]:
    yield gauge("mailbox_messages", "Messages that wait for the executor.", broker.mailbox)
    yield gauges("queue_messages", "Messages that wait in a queue of Celery.", "queue", broker.queues)
    caught_up_at = _number(broker.figures, "caught_up_at")
    if caught_up_at:
        lag = max(now - caught_up_at, 0.0) if broker.mailbox else 0.0
        words = "No message has waited for the executor for longer than this."
        yield gauge("executor_lag_seconds", words, lag)


def _of_executor(figures: Mapping[str, Json]) -> Iterator[Family]:
    """Give what the executor has counted since it began; nothing if it has told nothing yet."""
    if "epoch" not in figures:
        return
    yield gauge("executor_epoch", "Which executor has counted what follows.", _number(figures, "epoch"))
    yield gauge("executor_start_time_seconds", "When it began.", _number(figures, "started_at"))
    yield gauge("executor_told_time_seconds", "When it told this.", _number(figures, "at"))
    yield counter("runs_started_total", "Runs begun.", _number(figures, "runs_started"))
    ended = _numbers(figures, "runs_ended", _ENDED_RUNS)
    yield counters("runs_ended_total", "Runs ended, by how; one that is retried ends again.", "status", ended)
    ended = _numbers(figures, "steps_ended", _ENDED_STEPS)
    yield counters("steps_ended_total", "Attempts at steps ended, by how.", "status", ended)
    yield counter("steps_retried_total", "Attempts after the first.", _number(figures, "retried"))
    yield counter("steps_lost_total", "Attempts whose worker vanished.", _number(figures, "lost"))
    events = _numbers(figures, "events")
    refused = events.get("report_refused", 0)
    yield counter("reports_refused_total", "Reports that came too late, or twice.", refused)
    yield counters("events_total", "Events written, by type.", "type", events)
    for name, words, key, bounds in _HISTOGRAMS:
        told = figures.get(key)
        counts = told.get("counts") if isinstance(told, Mapping) else None
        if isinstance(told, Mapping) and isinstance(counts, list) and len(counts) == len(bounds) + 1:
            numbers = [each if isinstance(each, int) else 0 for each in counts]
            yield histogram(name, words, bounds, numbers, _number(told, "sum"))
    yield from _of_hooks(figures.get("hooks"))


def _of_hooks(told: Json) -> Iterator[Family]:
    hooks = (
        {name: each for name, each in told.items() if isinstance(each, Mapping)}
        if isinstance(told, Mapping)
        else {}
    )
    for key, words in (
        ("called", "Events that a hook was called with."),
        ("raised", "Calls of a hook that raised."),
        ("dropped", "Events that a hook did not get, for it did not keep up."),
    ):
        if hooks:
            values = {name: _number(each, key) for name, each in hooks.items()}
            yield counters(f"hook_{key}_total", words, "hook", values)


def _number(told: Mapping[str, Json], name: str) -> float:
    """Read a number; whoever can write to the broker may have put something else there."""
    found = told.get(name)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else 0


def _numbers(told: Mapping[str, Json], name: str, always: Iterable[str] = ()) -> dict[str, float]:
    """Read numbers by name; those that are always shown are 0 until they are counted."""
    inside = told.get(name)
    found = {key: _number(inside, key) for key in sorted(inside)} if isinstance(inside, Mapping) else {}
    return {**dict.fromkeys(always, 0.0), **found}
