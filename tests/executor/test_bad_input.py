"""Bad input meets the executor: one documented code, and nothing but the answer is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.executor.desk import ANN, BOB, Desk
from wfcelery.core.messages import Cancel, Decide, EndStep, Signal, StepDone, StepFailed
from wfcelery.core.reading import read
from wfcelery.core.state import Error
from wfcelery.core.validate import check_flow
from wfcelery.core.values import Json
from wfcelery.embedded.engine import new_run_id
from wfcelery.errors import InvalidFlow
from wfcelery.executor.messages import Asked, Define, Start
from wfcelery.store import dead_letters

TABLES = ("workflow_definitions", "workflows", "workflow_steps", "workflow_events", "votes", "signals")
CORPUS = sorted((Path(__file__).parent.parent / "core" / "corpus").glob("*.yaml"))
ONE: Json = {"name": "one", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}
WAIT: Json = {"name": "w", "start": "a", "steps": {"a": {"wait": {"signal": "go"}, "done": True}}}


def counts(desk: Desk) -> list[int]:
    with desk.database.reading() as conn:
        return [conn.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one() for table in TABLES]  # noqa: S608


def deep(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("path", CORPUS, ids=[path.stem for path in CORPUS])
def test_a_flow_of_the_corpus_gives_the_same_codes_when_it_is_defined_or_started(
    desk: Desk, path: Path
) -> None:
    try:
        document = read(path.read_bytes())
    except InvalidFlow:
        return  # It cannot even be read; there is nothing to send.
    expected = []
    try:
        check_flow(document.data)
    except InvalidFlow as invalid:
        expected = [fault.code for fault in invalid.faults]
    before = counts(desk)
    for request in (
        Define("d1", document.data, ANN, path.stem),  # type: ignore[arg-type]
        Start("s1", new_run_id(0.0), document.data, {}, ANN, name=path.stem),  # type: ignore[arg-type]
    ):
        answer = desk.ask(request)
        faults = answer.data.get("faults", [])
        assert isinstance(faults, list)
        assert answer.ok is (not faults)
        assert [code for code in (fault["code"] for fault in faults) if code != "unknown-tool"] == expected
    if expected:
        assert counts(desk) == before


BAD_VALUES = [
    pytest.param(float("nan"), id="nan"),
    pytest.param(float("inf"), id="infinity"),
    pytest.param(2**63, id="beyond-64-bits"),
    pytest.param("a\x00b", id="nul"),
    pytest.param("\ud800", id="lone-surrogate"),
    pytest.param({"\x00": 1}, id="nul-in-a-key"),
    pytest.param({1: 1}, id="number-as-key"),
    pytest.param(deep(33), id="too-deep"),
    pytest.param(deep(100_000), id="far-too-deep"),
    pytest.param(endless(), id="endless"),
    pytest.param("x" * (2**20 + 1), id="over-1-mib"),
    pytest.param(b"bytes", id="bytes"),
    pytest.param({1, 2}, id="a-set"),
]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_an_input_that_is_not_good_json_starts_nothing(desk: Desk, value: Any) -> None:  # noqa: ANN401
    before = counts(desk)
    answer = desk.ask(Start("s1", new_run_id(0.0), ONE, value, ANN))
    assert (answer.ok, answer.code) == (False, "invalid-input")
    assert answer.reason.startswith("input")
    assert counts(desk) == before


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_payload_that_is_not_good_json_is_refused_and_the_run_still_waits(desk: Desk, value: Any) -> None:  # noqa: ANN401
    run = desk.start(WAIT)
    before = counts(desk)
    requests: list[Asked] = [
        Signal("c1", run, "go", BOB, value),
        EndStep("c2", run, "a", BOB, result=value),
        Decide("c3", run, "a", approve=True, by=BOB, form=value),
    ]
    for request in requests:
        answer = desk.ask(request)
        assert (answer.ok, answer.code) == (False, "invalid-input")
    assert counts(desk) == before
    assert desk.ask(Signal("c9", run, "go", BOB, 1)).ok


@pytest.mark.parametrize("text", ["a\x00b", "\udcff"])
def test_text_that_no_database_can_hold_is_refused_wherever_it_stands(desk: Desk, text: str) -> None:
    run = desk.start(WAIT)
    before = counts(desk)
    requests: list[Asked] = [
        Cancel("c1", run, BOB, reason=text),
        Decide("c2", run, text, approve=True, by=BOB),
        Signal("c3", run, text, BOB),
        Start("c4", new_run_id(0.0), ONE, {}, ANN, key=text),
        Start("c5", new_run_id(0.0), ONE, {}, ANN, tags=(text,)),
        Start("c6", new_run_id(0.0), text, {}, ANN),
        EndStep("c7", run, "a", BOB, error=Error("x", text)),
    ]
    for request in requests:
        assert desk.ask(request).code == "invalid-input"
    assert counts(desk) == before


@pytest.mark.parametrize("run_id", ["", "x", "../../etc", "0" * 27, "'; DROP TABLE workflows; --", "O" * 26])
def test_an_id_that_is_no_id_is_refused(desk: Desk, run_id: str) -> None:
    assert desk.ask(Start("c1", run_id, ONE, {}, ANN)).code == "invalid-input"


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_must_have_a_fair_length(desk: Desk, key: str) -> None:
    answer = desk.ask(Start("c1", new_run_id(0.0), ONE, {}, ANN, key=key))
    assert answer.reason == f"key: must have 1 to 200 characters, not {len(key)}"


@pytest.mark.parametrize("name", ["__proto__", "constructor", "__class__", "true", "1", "a b", "'; --"])
def test_odd_step_names_in_requests_are_just_unknown_steps(desk: Desk, name: str) -> None:
    run = desk.start(WAIT)
    answer = desk.ask(Decide("c1", run, name, approve=True, by=BOB))
    assert answer.reason == f"w has no step {name}; it has a"


@pytest.mark.parametrize("bad", ["a\x00b", "\ud800", float("nan")])
def test_a_forged_report_that_cannot_be_written_fails_its_run_and_no_other(desk: Desk, bad: Any) -> None:  # noqa: ANN401
    first, second = desk.start(ONE), desk.start(ONE)
    forged, fine = (step.ref for step in desk.out.sent)
    desk.tell(StepDone(forged, bad), StepDone(fine, 1))
    assert desk.run(second)["status"] == "completed"
    seen = desk.run(first)
    if seen["status"] == "completed":  # SQLite can hold a NUL; the value came through whole.
        assert seen["output"] == bad
        return
    error = seen["error"]
    assert isinstance(error, dict)
    assert (seen["status"], error["type"]) == ("failed", "internal")
    with desk.database.reading() as conn:
        assert [letter.run_id for letter in dead_letters.listing(conn)] == [first]


def test_ten_thousand_duplicates_change_nothing(desk: Desk) -> None:
    run = desk.start(ONE)
    report = desk.done("a", 1)
    before = desk.events(run)
    desk.tell(*[report] * 10_000)
    assert desk.events(run) == before


def test_a_failure_with_a_huge_message_is_recorded(desk: Desk) -> None:
    run = desk.start(ONE)
    desk.tell(StepFailed(desk.take("a").ref, Error("ValueError", "x" * 100_000), retry=False))
    assert desk.run(run)["status"] == "failed"
