"""The real Flower beside a system, and a client of its API."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tests.system.system import ROOT, Process, System
from wfcelery.settings import Settings
from wfcelery.shell.supervisor.flower import HOST, Credentials, flower_command


class Flower:
    """A client of Flower's API."""

    def __init__(self, port: int, credentials: Credentials) -> None:
        self.base = f"http://{HOST}:{port}"
        self.credentials = credentials
        secret = f"{credentials.user}:{credentials.password}".encode()
        self._auth = {"Authorization": f"Basic {base64.b64encode(secret).decode()}"}

    def read(self, path: str, *, auth: bool = True) -> tuple[int, str]:
        """Give the HTTP status and the body; status 0 while nobody listens."""
        asked = urllib.request.Request(self.base + path, headers=self._auth if auth else {})  # noqa: S310 - ours
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
        path = f"{self.base}/api/task/revoke/{urllib.parse.quote(task)}?{query}"
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
