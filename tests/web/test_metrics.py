"""`/metrics`: read by Prometheus' own parser, and held against the tables after a known set of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.system.flows import QUICK_RETRY, chain, single
from tests.system.system import SECRET, System
from tests.web.server import STARTER, TOKENS, House, Site, gate_flow
from wfcelery.core.messages import Principal, StepDone
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.executor.tally import SECONDS, Histogram
from wfcelery.insight import exposition
from wfcelery.insight.metrics import _of_executor
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

WAITING: dict[str, Any] = {
    "name": "waits",
    "start": "wait",
    "steps": {"wait": {"wait": {"signal": "paid"}, "done": True}},
}
DELAYED: dict[str, Any] = {
    "name": "delayed",
    "start": "rest",
    "steps": {"rest": {"delay": 3_600, "next": "end"}, "end": {"tool": "echo", "done": True}},
}
ENDED = "('done', 'failed', 'skipped', 'cancelled')"

Found = dict[str, dict[str, float]]


def parsed(text: str) -> Found:
    """Read metrics as Prometheus does: values by name, and by their label where they have one."""
    found: Found = {}
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            assert len(labels) <= 1
            found.setdefault(name.removeprefix("wfcelery_"), {})[next(iter(labels.values()), "")] = value
    return found


def scrape(site: Site, token: str | None = TOKENS["stan"]) -> Found:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{site.url}/metrics", headers=headers, timeout=30.0)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(answer.text)


def counted(system: System, query: str) -> dict[str, float]:
    return {str(row[0]): float(str(row[1])) for row in system.query(query)}


def _above_zero(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value}


def _a_known_set_of_runs(system: System) -> list[str]:
    """Done, failed, retried, lost, and a report that nobody expects; others that wait."""
    by = Principal(STARTER)
    runs = [system.start(chain(3), by=by) for _ in range(3)]
    runs.append(system.start(single("stumble", {"times": 9}, retry={"max_attempts": 1}), by=by))
    runs.append(system.start(single("stumble", {"times": 2}, retry=QUICK_RETRY), by=by))
    runs.append(system.start(single("die", {"times": 1}), by=by))
    system.finish(runs)
    late = StepDone(StepRef(runs[0], "s0", NO_ITEM, 1, 1), "something else", worker="nobody")
    system.push(Seal(keyring((SECRET,))).write(late))
    system.until(lambda: system.count_events("report_refused"), "the report to be refused")
    for flow in (gate_flow(), WAITING, DELAYED):
        system.start(flow, {"amount": 1, "to": "x"}, by=by)
    return runs


def test_what_is_scraped_is_what_the_tables_say(quiet_house: House) -> None:
    system, site = quiet_house.system, quiet_house.site()
    _a_known_set_of_runs(system)
    events = counted(system, "SELECT type, count(*) FROM workflow_events GROUP BY type")
    system.until(lambda: scrape(site).get("events_total") == events, "the executor to tell of all events")
    found = scrape(site)
    assert found["up"] == {"database": 1, "broker": 1}
    assert found["runs_ended_total"] == {"completed": 5, "failed": 1, "cancelled": 0}
    assert found["runs_started_total"] == counted(system, "SELECT '', count(*) FROM workflows")
    assert _above_zero(found["steps_ended_total"]) == counted(
        system,
        f"SELECT status, count(*) FROM workflow_steps WHERE status IN {ENDED} GROUP BY status",  # noqa: S608
    )
    assert found["steps_retried_total"] == counted(
        system, "SELECT '', count(*) FROM workflow_steps WHERE attempt > 1"
    )
    assert found["steps_lost_total"] == {"": 1.0}
    assert found["steps_lost_total"] == counted(
        system, """SELECT '', count(*) FROM workflow_steps WHERE error LIKE '%"type":"lost"%'"""
    )
    assert found["reports_refused_total"] == {"": 1.0}
    assert found["runs"] == {"paused": 2, "running": 1}
    assert found["steps"] == {"pending": 3, "ready": 0, "running": 0}
    assert found["steps_pending"] == {"approval": 1, "signal": 1, "time": 1}
    assert (found["timers"], found["timers_due"]) == ({"": 1}, {"": 0})
    assert (found["mailbox_messages"], found["executor_up"], found["dead_letters"]) == (
        {"": 0},
        {"": 1},
        {"": 0},
    )
    assert found["workers"] == {"wfcelery.steps": 1}
    assert found["executor_lag_seconds"][""] < 60
    _check_histograms(system, found)
    system.stop_broker()
    without = scrape(site)
    assert without["up"] == {"database": 1, "broker": 0}
    assert without["runs"] == found["runs"]
    assert "events_total" not in without


def _check_histograms(system: System, found: Found) -> None:
    spans = {"step_wait": "started_at - ready_at", "step_run": "completed_at - started_at"}
    for name, span in spans.items():
        query = f"SELECT {span} FROM workflow_steps WHERE status IN {ENDED} AND started_at IS NOT NULL"  # noqa: S608
        values = [max(float(str(row[0])), 0.0) for row in system.query(query)]
        buckets = found[f"{name}_seconds_bucket"]
        assert found[f"{name}_seconds_count"][""] == buckets["+Inf"] == len(values)
        assert found[f"{name}_seconds_sum"][""] == pytest.approx(sum(values), abs=0.002)
        for bound in SECONDS:
            assert buckets[f"{bound:g}"] == sum(value <= bound for value in values), (name, bound)
    batches = found["executor_batch_messages_count"][""]
    assert 0 < batches <= found["executor_batch_messages_sum"][""]
    assert found["executor_batch_seconds_count"][""] == batches


def test_metrics_are_for_who_may_read_everything(house: House, site: Site) -> None:
    assert scrape(site, TOKENS["ann"])["executor_up"] == {"": 1}
    for token, status in ((None, 401), ("wrong", 401), (TOKENS["eve"], 403)):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{site.url}/metrics", headers=headers)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert "set-cookie" not in answer.headers


def test_where_nobody_signs_in_they_are_open_to_this_machine(house: House) -> None:
    assert scrape(house.site(policy=None), None)["up"] == {"database": 1, "broker": 1}


def test_on_postgresql_the_same_is_counted(postgres_house: House) -> None:
    system, site = postgres_house.system, postgres_house.site()
    system.start(DELAYED, by=Principal(STARTER))
    open_now = "SELECT status, count(*) FROM workflow_steps WHERE status IN ('pending', 'ready', 'running')"
    system.until(
        lambda: _above_zero(scrape(site)["steps"]) == counted(system, f"{open_now} GROUP BY status"),
        "the same counts",
    )
    found = scrape(site)
    assert found["timers"][""] >= 1
    assert found["timers_due"] == {"": 0}


def test_what_others_write_to_the_broker_in_its_place_is_no_metric() -> None:
    rubbish: dict[str, Any] = {
        "epoch": "x\ny",
        "started_at": None,
        "events": {'a"b\\c\n': 1, "\ud800": 2, "bad": "1e999"},
        "runs_ended": [],
        "waited": {"counts": [1], "sum": 1},
        "ran": {"counts": ["a"] * 16, "sum": {}},
        "hooks": {"m:f": 3, "m:g": {"called": True}},
    }
    found = parsed(exposition.text(_of_executor(json.loads(json.dumps(rubbish)))))
    assert found["events_total"] == {'a"b\\c\n': 1, "?": 2, "bad": 0}
    assert found["runs_ended_total"] == {"completed": 0, "failed": 0, "cancelled": 0}
    assert "step_wait_seconds_bucket" not in found
    assert found["step_run_seconds_count"] == {"": 0}
    assert found["hook_called_total"] == {"m:g": 0}
    assert list(_of_executor({})) == []


def test_a_histogram_counts_each_value_in_every_bucket_that_holds_it() -> None:
    seen = Histogram((1.0, 2.0))
    for value in (-5.0, 1.0, 1.5, 2.0, 7.0):
        seen.add(value)
    family = exposition.histogram("x", "Of x.", seen.bounds, seen.counts, seen.total)
    assert exposition.text([family]) == (
        "# HELP wfcelery_x Of x.\n"
        "# TYPE wfcelery_x histogram\n"
        'wfcelery_x_bucket{le="1"} 2\n'
        'wfcelery_x_bucket{le="2"} 4\n'
        'wfcelery_x_bucket{le="+Inf"} 5\n'
        "wfcelery_x_sum 11.5\n"
        "wfcelery_x_count 5\n"
    )
