"""What operators see in Flower: the real one, beside a real system, read through its API."""

from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tests.system.flows import single
from tests.system.system import ROOT, Process, System
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.core.values import Json
from wfcelery.settings import Settings
from wfcelery.shell.supervisor.flower import HOST, Credentials, flower_command
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


class Flower:
    """A client of Flower's API."""

    def __init__(self, port: int, credentials: Credentials) -> None:
        self._base = f"http://{HOST}:{port}"
        secret = f"{credentials.user}:{credentials.password}".encode()
        self._auth = {"Authorization": f"Basic {base64.b64encode(secret).decode()}"}

    def read(self, path: str, *, auth: bool = True) -> tuple[int, str]:
        """Give the HTTP status and the body; status 0 while nobody listens."""
        asked = urllib.request.Request(self._base + path, headers=self._auth if auth else {})  # noqa: S310 - ours
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310 - same
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()
        except urllib.error.URLError:
            return 0, ""

    def revoke(self, task: str, *, terminate: bool) -> None:
        """What the button does."""
        query = f"terminate={str(terminate).lower()}"
        path = f"{self._base}/api/task/revoke/{urllib.parse.quote(task)}?{query}"
        asked = urllib.request.Request(path, data=b"", headers=self._auth, method="POST")  # noqa: S310 - ours
        with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310 - same
            assert answer.status == 200

    def tasks(self) -> dict[str, dict[str, Any]]:
        """The tasks that Flower knows, by id."""
        status, body = self.read("/api/tasks")
        assert status == 200, body
        found: dict[str, dict[str, Any]] = json.loads(body)
        return found

    def workers(self) -> dict[str, Any]:
        status, body = self.read("/api/workers?status=true")
        return json.loads(body) if status == 200 else {}


def start_flower(system: System) -> Flower:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    credentials = Credentials("operator", "opens-flower")
    command, told = flower_command(Settings(broker_url=system.broker_url), port, credentials)
    environment = {
        name: value for name, value in system.environment().items() if not name.startswith("WFCELERY_")
    }
    log = system.folder / "flower.log"
    with log.open("wb") as out:
        popen = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment | told,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    system.processes.append(Process("flower", popen, log))
    flower = Flower(port, credentials)
    system.until(lambda: flower.read("/healthcheck")[0] == 200, "Flower to answer")
    return flower


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
