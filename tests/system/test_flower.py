"""What operators see in Flower: the real one, beside a real system, read through its API."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tests.system.flower import start_flower
from tests.system.flows import single
from tests.system.system import System
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.core.values import Json
from wfcelery.wire.orders import ref_text

TOKEN = "the-token-that-nobody-may-see"  # noqa: S105 - for tests
FLOW: Json = {
    "name": "pay",
    "start": "charge",
    "steps": {
        "charge": {
            "tool": "echo",
            "args": {"card": "{{input.card}}", "token": "{{secret.TOKEN}}"},
            "next": "book",
        },
        "book": {
            "tool": "stumble",
            "args": {"times": 5},
            "retry": {"max_attempts": 1},
            "on_error": "sorry",
            "done": True,
        },
        "sorry": {"tool": "act", "args": {"value": "sorry"}, "done": True},
    },
}


def test_operators_see_steps_by_name_with_readable_arguments_and_no_secret(sqlite_system: System) -> None:
    system = sqlite_system
    both = system.executor(ready=None), system.worker(ready=None, WFSECRET_TOKEN=TOKEN)
    flower = start_flower(system)
    system.ready(*both)
    # The executor sends no events: what it does is in the tables, and a line for each bell helps nobody.
    name = f"worker-{both[1].pid}@{socket.gethostname()}"
    system.until(lambda: flower.workers() == {name: True}, "Flower to list the worker as alive")

    def whole_run() -> dict[str, dict[str, Any]]:
        """Run the flow and give its tasks; nothing if Flower had not yet asked for all events."""
        run = system.start(FLOW, {"card": "4242"})
        system.finish([run])
        found = {name: each for name, each in flower.tasks().items() if run in (each["args"] or "")}
        ended = {"SUCCESS", "FAILURE"}
        return found if len(found) == 3 and {each["state"] for each in found.values()} == ended else {}

    tasks = system.until(whole_run, "Flower to show a whole run")
    assert {each["name"]: each["state"] for each in tasks.values()} == {
        "pay.charge": "SUCCESS",
        "pay.book": "FAILURE",
        "pay.sorry": "SUCCESS",
    }
    by_name = {each["name"]: each for each in tasks.values()}
    run = next(iter(tasks)).split(":", 1)[0]
    assert by_name["pay.charge"]["args"] == (
        f"(run={run}, step=charge, try=1, args={{'card': '4242', 'token': '{{{{secret.TOKEN}}}}'}})"
    )
    assert by_name["pay.book"]["exception"] == "StepFailure('ToolError', 'stumbled')"

    everything = "".join(
        flower.read(path)[1]
        for path in (
            "/api/tasks",
            "/tasks",
            "/metrics",
            *(f"/task/{urllib.parse.quote(each)}" for each in tasks),
        )
    )
    assert "pay.charge" in everything
    assert TOKEN not in everything

    status, metrics = flower.read("/metrics")
    assert status == 200
    # A task whose first event came before Flower had asked for events has no name there.
    labels = set(re.findall(r'task="([^"]+)"', metrics))
    assert labels == {"pay.charge", "pay.book", "pay.sorry"}
    assert re.search(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", metrics) is None


def test_a_step_that_an_operator_revokes_or_terminates_fails_and_is_not_tried_again(
    sqlite_system: System,
) -> None:
    system = sqlite_system
    flower = start_flower(system)
    system.pair(concurrency=1)
    running = system.start(single("hang"))
    begun = system.until(lambda: system.ledger.lines("begin"), "the step to begin")[0]
    waiting = system.start(single("act"))
    flower.revoke(ref_text(StepRef(waiting, "only", NO_ITEM, 1, begun.fence)), terminate=False)
    flower.revoke(ref_text(StepRef(running, "only", NO_ITEM, 1, begun.fence)), terminate=True)
    system.finish([running, waiting])
    assert errors_of(system, running) == [
        {"type": "revoked", "message": "it was terminated by an operator"},
    ]
    assert errors_of(system, waiting) == [
        {"type": "revoked", "message": "it was revoked by an operator before it began"},
    ]
    assert len(system.ledger.lines()) == 1


def errors_of(system: System, run: str) -> list[Any]:
    found: dict[str, Any] = dict(system.workflows.get(run))
    return [step["error"] for step in found["steps"]]


def test_nobody_looks_at_tasks_and_workers_without_the_password(sqlite_system: System) -> None:
    flower = start_flower(sqlite_system)
    pages = ("/", "/tasks", "/api/tasks", "/api/workers", "/api/task/info/x")
    answers = {page: flower.read(page, auth=False)[0] for page in pages}
    assert answers == dict.fromkeys(pages, 401)
    assert {page: flower.read(page)[0] for page in pages[:-1]} == dict.fromkeys(pages[:-1], 200)
