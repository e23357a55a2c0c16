"""What doctor says, from what was read: each thing is well, worth a warning, or broken, with what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wfcelery.insight import findings
from wfcelery.insight.findings import BrokerState, Finding, Level, TablesState
from wfcelery.settings import Settings
from wfcelery.store.health import ExecutorSeen, Waiting
from wfcelery.store.workers import WorkerRow

NOW = 1_700_000_000.0
GOOD = "a secret of some length"
BROKER = BrokerState(0.001, NOW - 0.1, (), {"executor": NOW - 1, "beat": NOW - 1}, 3, "9.0")
WORKER = WorkerRow("w1@host", "boot", NOW - 2, ("wfcelery.steps", "gpu"), "prefork", NOW - 2.1, 0, (), ())
TABLES = TablesState("0001", ExecutorSeen("e1", 3, NOW - 1, NOW + 14), (WORKER,))


def ok(check: str, message: str) -> Finding:
    return Finding(check, Level.OK, message)


def test_a_system_that_is_well_has_nothing_but_good_findings() -> None:
    settings = Settings(secret_key=(GOOD,), broker_url="redis://")
    found = [
        *findings.of_settings(settings),
        *findings.of_broker(BROKER, NOW),
        *findings.of_tables(TABLES, NOW, 30.0),
        *findings.of_pulses(TABLES, BROKER, NOW),
        *findings.of_tools((), ()),
    ]
    assert found == [
        ok("secret-key", "the secret key is set"),
        ok("broker", "the broker answers in 1.0 ms (version 9.0)"),
        ok("broker-settings", "the broker keeps what it is given (noeviction)"),
        ok("broker-clock", "the clock of the broker agrees to 0.1 s"),
        ok("mailbox", "3 messages wait in the mailbox"),
        ok("database", "the database answers, its tables are at version 0001"),
        ok("executor", "one executor is alive: e1 (epoch 3, seen 1 s ago)"),
        ok("workers", "1 worker consumes gpu"),
        ok("workers", "1 worker consumes wfcelery.steps"),
        ok("dead-letters", "no dead letters"),
        ok("beat", "beat was seen 1 s ago"),
        ok("tools", "every tool that flows call is there"),
    ]


@pytest.mark.parametrize(
    ("settings", "broken"),
    [
        (
            Settings(broker_url="redis://"),
            Finding(
                "secret-key",
                Level.FAIL,
                "no secret key is set",
                "set WFCELERY_SECRET_KEY; `wfcelery keys --new` prints a good one",
            ),
        ),
        (
            Settings(secret_key=(GOOD, "short"), broker_url="redis://"),
            Finding(
                "secret-key",
                Level.FAIL,
                "a secret key has 5 characters",
                "use 16 at least; `wfcelery keys --new` prints a good one",
            ),
        ),
        (
            Settings(secret_key=(GOOD,)),
            Finding(
                "broker",
                Level.FAIL,
                "no broker is set",
                "set WFCELERY_BROKER_URL, or start a whole system with `wfcelery up`",
            ),
        ),
    ],
)
def test_settings_that_are_missing_are_told(settings: Settings, broken: Finding) -> None:
    assert [each for each in findings.of_settings(settings) if each.level is not Level.OK] == [broken]


def test_a_broker_that_is_slow_lossy_wrong_and_full_is_told() -> None:
    bad = BrokerState(
        0.25, NOW + 7, ["it may forget (maxmemory-policy is x); set it to noeviction"], {}, 5_000
    )
    assert list(findings.of_broker(bad, NOW)) == [
        Finding(
            "broker",
            Level.WARN,
            "the broker answers in 250.0 ms",
            "every step costs several round trips: move it nearer",
        ),
        Finding(
            "broker-settings", Level.FAIL, "it may forget (maxmemory-policy is x)", "set it to noeviction"
        ),
        Finding(
            "broker-clock",
            Level.WARN,
            "the clock of the broker is 7.0 s ahead",
            "synchronise the clocks (NTP)",
        ),
        Finding(
            "mailbox",
            Level.WARN,
            "5,000 messages wait in the mailbox",
            "see that an executor is alive and its database is quick",
        ),
    ]


def bad(tables: TablesState) -> list[Finding]:
    return [each for each in findings.of_tables(tables, NOW, 30.0) if each.level is not Level.OK]


def test_an_executor_that_is_gone_is_told() -> None:
    gone = ExecutorSeen("e1", 3, NOW - 100, NOW - 85)
    start = "start `wfcelery executor`"
    heard = replace(WORKER, seen_at=NOW - 101, at=NOW - 101)
    assert bad(replace(TABLES, executor=gone, workers=(heard,))) == [
        Finding("executor", Level.FAIL, "no executor is alive; the last was alive 1 min 40 s ago", start)
    ]
    assert bad(replace(TABLES, executor=None)) == [
        Finding("executor", Level.FAIL, "no executor is alive; none was ever here", start)
    ]


def test_workers_that_are_gone_and_queues_that_nobody_consumes_are_told() -> None:
    silent = replace(WORKER, seen_at=NOW - 100)
    waiting = (Waiting(None, 1, NOW - 60), Waiting("gpu", 1_900, None))
    assert bad(replace(TABLES, workers=(silent,), waiting=waiting)) == [
        Finding("workers", Level.FAIL, "no worker is alive", "start `wfcelery worker`"),
        Finding(
            "workers",
            Level.WARN,
            "worker w1@host was last heard 1 min 40 s ago",
            "if it was not stopped on purpose, look at its log",
        ),
        Finding(
            "queues",
            Level.FAIL,
            "1 step waits in wfcelery.steps, the oldest since 1 min, and no worker consumes it",
            "start `wfcelery worker --queues wfcelery.steps`",
        ),
        Finding(
            "queues",
            Level.FAIL,
            "1,900 steps wait in gpu, and no worker consumes it",
            "start `wfcelery worker --queues gpu`",
        ),
    ]
    consumed = findings.of_tables(replace(TABLES, waiting=waiting), NOW, 30.0)
    assert [each.message for each in consumed if each.check == "queues"] == [
        "1 step waits in wfcelery.steps, the oldest since 1 min",
        "1,900 steps wait in gpu",
    ]


def test_clocks_pools_and_dead_letters_are_told() -> None:
    worker = replace(WORKER, at=NOW - 12, pool="threads")
    found = bad(replace(TABLES, workers=(worker,), dead_letters=2, time_limits=frozenset({"gpu", "other"})))
    assert found == [
        Finding(
            "worker-clock",
            Level.WARN,
            "the clock of worker w1@host is 10.0 s behind",
            "synchronise the clocks (NTP)",
        ),
        Finding(
            "time-limits",
            Level.WARN,
            "worker w1@host (threads) gets steps with a time limit from gpu",
            "it cannot stop a step: their failure is recorded, the tool goes on; use --pool prefork",
        ),
        Finding(
            "dead-letters",
            Level.WARN,
            "2 messages could not be handled",
            "`wfcelery dead-letters` lists them",
        ),
    ]


def test_a_beat_that_is_silent_is_a_warning_and_an_executor_elsewhere_is_broken() -> None:
    old = replace(BROKER, pulses={"beat": NOW - 60})
    assert list(findings.of_pulses(TABLES, old, NOW)) == [
        Finding(
            "beat",
            Level.WARN,
            "beat was last seen 1 min ago",
            "start `wfcelery beat`; the executor ticks without it",
        ),
        Finding(
            "executor-pulse",
            Level.FAIL,
            "the executor was never heard on this broker",
            "see that it has this WFCELERY_BROKER_URL and consumes wfcelery.executor",
        ),
    ]


def test_tools_that_are_not_there_are_told() -> None:
    names = [f"t{n}" for n in range(12)]
    assert list(findings.of_tools(("shop",), names)) == [
        Finding(
            "tools",
            Level.WARN,
            "flows call tools that are not there: t0, t1, t10, t11, t2, t3, t4, t5, t6, t7 and 2 more",
            "WFCELERY_TOOLS is shop; workers need the modules that have them",
        )
    ]
