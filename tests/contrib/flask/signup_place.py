"""The example `flask_signup` as its README starts it: its processes, and a letter box beside them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.notify.receiver import Receiver, receiving
from tests.system.system import ROOT, SECRET, Process, System

EXAMPLE = ROOT / "examples" / "flask_signup"
FLASK = (sys.executable, "-W", "ignore", "-m", "flask", "--app", "signup")
LINK = re.compile(r"https?://\S+/a/\S+")
PASSWORD = "a password for ann"  # noqa: S105 - for tests
STARTED_S = 60.0


@dataclass(slots=True)
class SignupPlace:
    """The running example."""

    system: System
    base: str
    mail: Receiver
    environment: dict[str, str]

    def flask(self, *words: str, **environment: str) -> str:
        """Run a command of the README, and give what it says."""
        done = subprocess.run(
            [*FLASK, *words],
            cwd=EXAMPLE,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def spawn(self, *words: str) -> Process:
        """Start a process of the README."""
        log = self.system.folder / f"{'-'.join(words[:2])}.log"
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [*FLASK, *words],
                cwd=EXAMPLE,
                env=self.environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        process = Process(words[1], popen, log)
        self.system.processes.append(process)
        return process

    def link(self, email: str) -> str:
        """Wait for the letter about this sign-up, and give its link."""

        def came() -> str:
            found = (each.body for each in self.mail.at("ann") if email in each.body)
            return next((match[0] for body in found if (match := LINK.search(body))), "")

        return self.system.until(came, "a letter with a link")


@contextmanager
def signup_place(folder: Path) -> Iterator[SignupPlace]:
    with receiving() as mail:
        system = System(folder, f"sqlite:///{folder}/wfcelery.db")
        port = _free_port()
        base = f"http://127.0.0.1:{port}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WFCELERY_")}
        place = SignupPlace(
            system,
            base,
            mail,
            inherited
            | {
                "WFCELERY_DATABASE_URL": system.database_url,
                "WFCELERY_BROKER_URL": system.broker_url,
                "WFCELERY_SECRET_KEY": SECRET,
                "SIGNUP_DATABASE_URL": f"sqlite:///{folder}/signup.sqlite",
                "SIGNUP_SECRET_KEY": SECRET,
                "SIGNUP_URL": base,
                "PYTHONPATH": str(ROOT),
            },
        )
        try:
            place.flask("init")
            roles = [place.spawn("wfcelery", role) for role in ("executor", "notifier")]
            roles.append(place.spawn("wfcelery", "worker", "--concurrency", "1"))
            place.spawn("run", "--port", str(port), "--no-reload")
            place.flask("add-staff", "ann", "--password", PASSWORD, "--notify", mail.address("ann"))
            system.ready(*roles)
            place.flask("wfcelery", "define", "flows/signup.yaml", "--user", "deploy")
            _wait_for(base)
            yield place
        except BaseException:
            print(system.report())  # noqa: T201 - pytest shows it with the failure
            raise
        finally:
            system.close()
        system.check()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(base: str) -> None:
    deadline = time.monotonic() + STARTED_S
    while True:
        try:
            httpx.get(base)
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the application does not answer"
            time.sleep(0.05)
        else:
            return
