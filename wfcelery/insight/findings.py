"""What `doctor` says of a system, from what was read of it: pure functions, a finding for each thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from wfcelery.broker.names import EXECUTOR_QUEUE, STEPS_QUEUE
from wfcelery.insight.reasons import about
from wfcelery.wire.keys import SHORTEST_SECRET

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.settings import Settings
    from wfcelery.store.health import ExecutorSeen, Waiting
    from wfcelery.store.notices import Notice
    from wfcelery.store.workers import WorkerRow

BEAT_WITHIN_S: Final = 10.0
SKEW_S: Final = 2.0
SLOW_S: Final = 0.1
FULL_MAILBOX: Final = 1_000
TOLD_WITHIN_S: Final = 60.0
POOLS_WITH_LIMITS: Final = ("prefork",)


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what was found, and what to do about it."""

    check: str
    level: Level
    message: str
    advice: str = ""

    def as_json(self) -> dict[str, Json]:
        """Write it as the documented object."""
        return {
            "check": self.check,
            "level": self.level.value,
            "message": self.message,
            "advice": self.advice or None,
        }


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What the broker told. `took_s` is a round trip, `clock` its own time."""

    took_s: float
    clock: float
    complaints: Sequence[str] = ()
    pulses: Mapping[str, float] = field(default_factory=dict)
    mailbox: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class TablesState:
    """What the tables told. `time_limits`: queues that get steps with a time limit.

    `untold` are notices of open gates that have failed, or that nobody has tried to send for a while.
    """

    version: str
    executor: ExecutorSeen | None = None
    workers: Sequence[WorkerRow] = ()
    waiting: Sequence[Waiting] = ()
    dead_letters: int = 0
    time_limits: frozenset[str] = frozenset()
    untold: Sequence[Notice] = ()


def of_settings(settings: Settings) -> Iterator[Finding]:
    """Look at the settings alone."""
    secrets = settings.secret_key
    new = "`wfcelery keys --new` prints a good one"
    if not secrets:
        yield Finding("secret-key", Level.FAIL, "no secret key is set", f"set WFCELERY_SECRET_KEY; {new}")
    elif min(map(len, secrets)) < SHORTEST_SECRET:
        short = f"a secret key has {min(map(len, secrets))} characters"
        yield Finding("secret-key", Level.FAIL, short, f"use {SHORTEST_SECRET} at least; {new}")
    else:
        yield Finding("secret-key", Level.OK, "the secret key is set")
    if settings.broker_url is None:
        advice = "set WFCELERY_BROKER_URL, or start a whole system with `wfcelery up`"
        yield Finding("broker", Level.FAIL, "no broker is set", advice)


def of_broker(broker: BrokerState, now: float) -> Iterator[Finding]:
    """Look at the broker: how quick it is, whether it may lose messages, what its clock says."""
    said = f"the broker answers in {broker.took_s * 1000:.1f} ms"
    said += f" (version {broker.version})" if broker.version else ""
    if broker.took_s > SLOW_S:
        yield Finding("broker", Level.WARN, said, "every step costs several round trips: move it nearer")
    else:
        yield Finding("broker", Level.OK, said)
    for complaint in broker.complaints:
        message, _, advice = complaint.rpartition("; ")
        yield Finding("broker-settings", Level.FAIL, message or complaint, advice if message else "")
    if not broker.complaints:
        yield Finding("broker-settings", Level.OK, "the broker keeps what it is given (noeviction)")
    yield _skew("broker-clock", "the broker", now - broker.clock)
    if broker.mailbox > FULL_MAILBOX:
        said = f"{broker.mailbox:,} messages wait in the mailbox"
        yield Finding("mailbox", Level.WARN, said, "see that an executor is alive and its database is quick")
    else:
        yield Finding("mailbox", Level.OK, f"{broker.mailbox:,} messages wait in the mailbox")


def of_tables(tables: TablesState, now: float, lease_s: float) -> Iterator[Finding]:
    """Look at who is at work on the database."""
    yield Finding("database", Level.OK, f"the database answers, its tables are at version {tables.version}")
    yield _executor(tables.executor, now)
    # Workers are heard by the executor: without one, those count whom the last has heard.
    seen = tables.executor
    heard = now if seen is None or seen.is_alive(now) or seen.renewed_at is None else seen.renewed_at
    alive = [each for each in tables.workers if heard - each.seen_at <= lease_s]
    yield from _workers(tables.workers, alive, now)
    yield from _queues(tables.waiting, alive, now)
    for each in alive:
        if abs(each.seen_at - each.at) > SKEW_S:
            yield _skew("worker-clock", f"worker {each.name}", each.seen_at - each.at)
        unsafe = sorted(tables.time_limits & set(each.queues))
        if unsafe and each.pool and each.pool not in POOLS_WITH_LIMITS:
            said = f"worker {each.name} ({each.pool}) gets steps with a time limit from {', '.join(unsafe)}"
            advice = "it cannot stop a step: their failure is recorded, the tool goes on; use --pool prefork"
            yield Finding("time-limits", Level.WARN, said, advice)
    count = tables.dead_letters
    if count:
        said = "1 message could not be handled" if count == 1 else f"{count:,} messages could not be handled"
        yield Finding("dead-letters", Level.WARN, said, "`wfcelery dead-letters` lists them")
    else:
        yield Finding("dead-letters", Level.OK, "no dead letters")
    yield from _notices(tables.untold)


def of_pulses(tables: TablesState, broker: BrokerState, now: float) -> Iterator[Finding]:
    """Look at the signs of life on the broker: of beat, and of the executor that the tables name."""
    beat, executor = broker.pulses.get("beat"), broker.pulses.get("executor")
    if beat is None or now - beat > BEAT_WITHIN_S:
        when = "was never seen" if beat is None else f"was last seen {about(now - beat)} ago"
        yield Finding(
            "beat", Level.WARN, f"beat {when}", "start `wfcelery beat`; the executor ticks without it"
        )
    else:
        yield Finding("beat", Level.OK, f"beat was seen {about(now - beat)} ago")
    alive = tables.executor is not None and tables.executor.is_alive(now)
    if alive and (executor is None or now - executor > BEAT_WITHIN_S):
        when = "was never heard" if executor is None else f"was last heard {about(now - executor)} ago"
        advice = f"see that it has this WFCELERY_BROKER_URL and consumes {EXECUTOR_QUEUE}"
        yield Finding("executor-pulse", Level.FAIL, f"the executor {when} on this broker", advice)


def of_tools(modules: Sequence[str], missing: Iterable[str]) -> Iterator[Finding]:
    """Look at the tools: those that flows in use call, and this machine does not have."""
    names = sorted(missing)
    if names:
        said = f"flows call tools that are not there: {', '.join(names[:10])}"
        said += f" and {len(names) - 10} more" if len(names) > 10 else ""  # noqa: PLR2004 - as many as shown
        where = f"WFCELERY_TOOLS is {','.join(modules)}" if modules else "WFCELERY_TOOLS is not set"
        yield Finding("tools", Level.WARN, said, f"{where}; workers need the modules that have them")
    else:
        yield Finding("tools", Level.OK, "every tool that flows call is there")


def _executor(seen: ExecutorSeen | None, now: float) -> Finding:
    if seen is not None and seen.is_alive(now):
        renewed = "" if seen.renewed_at is None else f", seen {about(now - seen.renewed_at)} ago"
        return Finding(
            "executor", Level.OK, f"one executor is alive: {seen.owner} (epoch {seen.epoch}{renewed})"
        )
    last = "none was ever here" if seen is None else "none holds the lease"
    if seen is not None and seen.renewed_at is not None:
        last = f"the last was alive {about(now - seen.renewed_at)} ago"
    return Finding("executor", Level.FAIL, f"no executor is alive; {last}", "start `wfcelery executor`")


def _workers(known: Sequence[WorkerRow], alive: Sequence[WorkerRow], now: float) -> Iterator[Finding]:
    if not alive:
        yield Finding("workers", Level.FAIL, "no worker is alive", "start `wfcelery worker`")
    counts: dict[str, int] = {}
    for each in alive:
        for queue in each.queues:
            counts[queue] = counts.get(queue, 0) + 1
    for queue, count in sorted(counts.items()):
        many = "1 worker consumes" if count == 1 else f"{count} workers consume"
        yield Finding("workers", Level.OK, f"{many} {queue}")
    for each in known:
        if each not in alive:
            said = f"worker {each.name} was last heard {about(now - each.seen_at)} ago"
            yield Finding("workers", Level.WARN, said, "if it was not stopped on purpose, look at its log")


def _queues(waiting: Sequence[Waiting], alive: Sequence[WorkerRow], now: float) -> Iterator[Finding]:
    consumed = {queue for each in alive for queue in each.queues}
    for each in waiting:
        queue = each.queue or STEPS_QUEUE
        steps = "1 step waits" if each.count == 1 else f"{each.count:,} steps wait"
        since = "" if each.oldest is None else f", the oldest since {about(now - each.oldest)}"
        if queue not in consumed:
            advice = f"start `wfcelery worker --queues {queue}`"
            yield Finding(
                "queues", Level.FAIL, f"{steps} in {queue}{since}, and no worker consumes it", advice
            )
        else:
            yield Finding("queues", Level.OK, f"{steps} in {queue}{since}")


def _notices(untold: Sequence[Notice]) -> Iterator[Finding]:
    """Tell of open gates that wait for people who do not know of them."""
    failed = sum(each.error is not None for each in untold)
    if failed:
        said = f"{_notices_of_gates(failed)} reached nobody"
        advice = (
            "the page of the run in the console says who and why; addresses of people stand in the policy"
        )
        yield Finding("notices", Level.WARN, said, advice)
    waiting = len(untold) - failed
    if waiting:
        said = f"{_notices_of_gates(waiting)} not sent for a minute"
        yield Finding("notices", Level.WARN, said, "start `wfcelery notifier`; it takes `wfcelery[notify]`")


def _notices_of_gates(count: int) -> str:
    return "1 notice of an open gate" if count == 1 else f"{count:,} notices of open gates"


def _skew(check: str, who: str, seconds: float) -> Finding:
    if abs(seconds) <= SKEW_S:
        return Finding(check, Level.OK, f"the clock of {who} agrees to {abs(seconds):.1f} s")
    way = "behind" if seconds > 0 else "ahead"
    said = f"the clock of {who} is {abs(seconds):.1f} s {way}"
    return Finding(check, Level.WARN, said, "synchronise the clocks (NTP)")
