"""The example project as a whole system: its `manage.py` starts everything; the broker can be stopped."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.system.system import ROOT, SECRET, Process, System

PROJECT = ROOT / "examples" / "django_shop"
PASSWORD = "correct horse battery"  # noqa: S105 - of the tests
PEOPLE = f"""
from django.contrib.auth.models import Group, Permission, User
def permission(name):
    return Permission.objects.get(content_type__app_label="wfcelery", codename=name)
managers = Group.objects.create(name="managers")
managers.permissions.add(*map(permission, ("read", "decide", "cancel", "retry")))
for name in ("mia", "max"):
    User.objects.create_user(name, password="{PASSWORD}", is_staff=True).groups.add(managers)
User.objects.create_user("carl", password="{PASSWORD}", is_staff=True)
rita = User.objects.create_user("rita", password="{PASSWORD}", is_staff=True)
rita.user_permissions.add(permission("read"))
"""
CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Shop(System):
    """Starts processes by the project's `manage.py`; whatever is known comes from its settings."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, f"sqlite:///{folder / 'shop.db'}")

    def environment(self, role: str = "executor") -> dict[str, str]:  # noqa: ARG002 - all know the same here
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WFCELERY_")}
        inherited.pop("DJANGO_SETTINGS_MODULE", None)
        return inherited | {
            "WFCELERY_BROKER_URL": self.broker_url,
            "WFCELERY_SECRET_KEY": SECRET,
            "WFCELERY_LEASE_S": str(self.lease_s),
            "SHOP_DATABASE": str(self.folder / "shop.db"),
            "PYTHONPATH": f"{PROJECT}{os.pathsep}{ROOT}",
        }

    def launch(self, role: str, *command: str, ready: str | None = "ready.") -> Process:
        """Start a process with the project's settings."""
        log = self.folder / f"{role}-{len(self.processes)}.log"
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [sys.executable, "-W", "ignore", *command],
                cwd=self.folder,
                env=self.environment(role),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        process = Process(role, popen, log)
        self.processes.append(process)
        if ready is not None:
            self.ready(process, word=ready)
        return process

    def spawn(self, role: str, *arguments: str, ready: str | None = "ready.", **environment: str) -> Process:
        assert not environment
        return self.launch(role, str(PROJECT / "manage.py"), "wfcelery", role, *arguments, ready=ready)

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.python(str(PROJECT / "manage.py"), *words)

    def within(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run some code where the project is."""
        return self.python("-c", f"import django\ndjango.setup()\n{code}")

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment() | {"DJANGO_SETTINGS_MODULE": "shop.settings"}
        return subprocess.run(
            [sys.executable, "-W", "ignore", *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def does(self, code: str) -> str:
        """Run code that must go well; give what it prints."""
        done = self.within(code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def waiting(self) -> list[str]:
        """The ids in the outbox."""
        return [str(row[0]) for row in self.query("SELECT id FROM wfcelery_outbox ORDER BY created_at")]

    def order(self, number: str | int) -> tuple[str, str]:
        """The status and the run of an order."""
        [(status, run)] = self.query(f"SELECT status, run FROM orders_order WHERE id = {int(number)}")  # noqa: S608 - a number
        return str(status), str(run)

    def prepare(self) -> None:
        """The tables, the people, the flow, and the processes that work."""
        migrate = "from django.core.management import call_command\ncall_command('migrate', verbosity=0)\n"
        self.does(migrate + PEOPLE)
        self.ready(self.executor(ready=None), self.worker(concurrency=1, ready=None))
        defined = self.manage("wfcelery", "define")
        assert defined.returncode == 0, defined.stderr

    def serve(self, kind: str) -> str:
        """Serve the site by WSGI or ASGI; give its address."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        if kind == "wsgi":
            command = [str(PROJECT / "manage.py"), "runserver", "--noreload", f"127.0.0.1:{port}"]
        else:
            command = ["-m", "uvicorn", "shop.asgi:application", "--port", port, "--lifespan", "off"]
        process = self.launch(kind, *command, ready=None)
        base = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert process.popen.poll() is None, process.said()
            try:
                return httpx.get(f"{base}/admin/login/", timeout=10).status_code == 200
            except httpx.TransportError:
                return False

        self.until(answers, f"the site by {kind}")
        return base


@contextmanager
def visitor(base: str, user: str | None = None) -> Iterator[httpx.Client]:
    """Somebody with a browser; with a name they have signed in to Django's admin."""
    with httpx.Client(base_url=base, timeout=30.0) as client:
        if user is not None:
            page = client.get("/admin/login/")
            found = CSRF.search(page.text)
            assert found is not None
            sent = client.post(
                "/admin/login/",
                data={
                    "csrfmiddlewaretoken": found[1],
                    "username": user,
                    "password": PASSWORD,
                    "next": "/admin/",
                },
            )
            assert sent.status_code == 302, sent.text
        yield client


def post(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form of Django's admin, with its token."""
    page = client.get(path)
    found = CSRF.search(page.text)
    assert found is not None, page.text
    return client.post(
        path,
        data={"csrfmiddlewaretoken": found[1], **fields},
        follow_redirects=True,
        headers={"referer": path},
    )
