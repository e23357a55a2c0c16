"""The web app on a real server of its own, in front of a whole system of real processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import MetaData, create_engine, select

from tests.system.system import SECRET, TOOLS, System
from wfcelery.core.messages import Principal
from wfcelery.core.values import canonical, digest
from wfcelery.rights.token import hash_of
from wfcelery.settings import Settings
from wfcelery.web.serving import make_server
from wfcelery.wire.keys import keyring
from wfcelery.wire.link import Link, link_url, read_link, write_link
from wfcelery.wire.signed import write_signed

STARTER = "stan"
BASE = "http://flows.example"
WAIT_S = 20.0
BEATING = frozenset({"executor", "workers"})
"""Tables that change by themselves."""

POLICY = """
[groups.ops]
allow = []

[users.stan]
allow = ["read", "start", "define", "decide", "cancel", "retry"]
tokens = ["{stan}"]

[users.ann]
allow = ["read", "decide"]
groups = ["ops"]
tokens = ["{ann}", {{hash = "{ann_agent}", kind = "agent"}}]

[users.bob]
allow = ["read", "start", "decide"]
tokens = ["{bob}"]

[users.cy]
allow = ["read", "decide"]
tokens = ["{cy}"]

[users.eve]
allow = ["read:public*"]
tokens = ["{eve}"]

[users.robo]
kind = "agent"
allow = ["admin"]
tokens = ["{robo}"]

[users."hook:paid"]
allow = ["signal"]

[users."hook:narrow"]
allow = ["signal:waits-narrow"]
"""
NAMES = ("stan", "ann", "ann_agent", "bob", "cy", "eve", "robo")
TOKENS = {name: f"wfc_test-token-of-{name}" for name in NAMES}

DONE = {"tool": "act", "args": {"value": "{{input.amount}}", "to": "{{input.to}}"}, "done": True}


def gate_flow(name: str = "pay", **gate: Any) -> dict[str, Any]:  # noqa: ANN401 - a part of a document
    """A flow with one gate in front of one tool."""
    return {
        "name": name,
        "description": "Pays a bill",
        "start": "ask",
        "steps": {
            "ask": {"approval": gate, "description": "Is the bill right?", "next": "pay"},
            "pay": {
                "tool": "act",
                "args": {"value": {"amount": "{{input.amount}}", "to": "{{input.to}}"}},
                "description": "Sends the money",
                "done": True,
            },
        },
    }


def write_policy(folder: Path) -> Path:
    """Write who may do what in these tests."""
    path = folder / "policy.toml"
    path.write_text(POLICY.format(**{name: hash_of(token) for name, token in TOKENS.items()}))
    return path


@dataclass(slots=True)
class Site:
    """One server of the app; several may stand before one system."""

    settings: Settings
    url: str = ""
    _server: Any = None
    _thread: threading.Thread | None = None

    def open(self) -> None:
        self._server = make_server(self.settings, host="127.0.0.1", port=0, loglevel="WARNING")
        self._thread = threading.Thread(target=self._server.run, name="web", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + WAIT_S
        while not self._server.started:
            assert self._thread.is_alive(), "the server has not started"
            assert time.monotonic() < deadline, "the server takes too long"
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        self._server.config.app.state.desk.streams.stop()
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    @contextmanager
    def browser(self, user: str | None = None, **headers: str) -> Iterator[httpx.Client]:
        """A client that keeps cookies; with a user it has signed in."""
        with httpx.Client(base_url=self.url, headers=headers, timeout=30.0) as client:
            if user is not None:
                page = client.get("/login")
                sent = client.post("/login", data={**Page(page.text).hidden, "token": TOKENS[user]})
                assert sent.status_code == 303, sent.text
            yield client


@dataclass(slots=True)
class House:
    """A system with an executor and a worker, and sites in front of it."""

    system: System
    folder: Path
    sites: list[Site] = field(default_factory=list)

    @property
    def policy(self) -> Path:
        return self.folder / "policy.toml"

    def site(self, **settings: Any) -> Site:  # noqa: ANN401 - any setting
        """Open another site; by default with rights and a base URL."""
        given = {
            "database_url": self.system.database_url,
            "broker_url": self.system.broker_url,
            "secret_key": (SECRET,),
            "policy": str(self.policy),
            "base_url": BASE,
            "tools": (TOOLS,),
            "user": "nobody",
        } | settings
        made = Site(Settings(**given))
        made.open()
        self.sites.append(made)
        return made

    def close(self) -> None:
        for site in self.sites:
            site.close()
        self.system.close()

    def start(self, flow: Mapping[str, Any], given: Any = None, by: str = STARTER) -> str:  # noqa: ANN401 - JSON
        """Start a run; its first gate is open when this returns."""
        told: Any = {"amount": 12, "to": "the baker"} if given is None else given
        return self.system.start(dict(flow), told, by=Principal(by))

    def ask(self, **gate: Any) -> str:  # noqa: ANN401 - a part of a document
        """Start a run that waits at its gate `ask`."""
        return self.start(gate_flow(**({"approvers": ["ann"]} | gate)))

    def status(self, run: str) -> str:
        return self.system.workflows.status(run)

    def steps(self, run: str) -> dict[str, Any]:
        """The rows of a run's steps, by name; of several attempts the newest."""
        found: Any = self.system.workflows.get(run)["steps"]
        return {step["name"]: step for step in found}

    def quiet(self) -> None:
        """Wait until nothing runs: what waits for people may wait on."""
        self.system.until(
            lambda: (seen := self.system.statuses()) and not seen.get("running"), "all runs to rest"
        )

    def content(self) -> dict[str, list[str]]:
        """The rows of all tables but those that beat."""
        engine = create_engine(self.system.database_url)
        try:
            metadata = MetaData()
            metadata.reflect(engine)
            with engine.connect() as conn:
                return {
                    table.name: sorted(repr(tuple(row)) for row in conn.execute(select(table)))
                    for table in metadata.sorted_tables
                    if table.name not in BEATING
                }
        finally:
            engine.dispose()


def token_of(
    run: str,
    approver: str = "ann",
    *,
    step: str = "ask",
    attempt: int = 1,
    expires_in: float = 3_600.0,
    secrets: tuple[str, ...] = (SECRET,),
) -> str:
    """Write the token of a link as the notifier does."""
    return write_link(keyring(secrets), Link(run, step, attempt, approver, time.time() + expires_in))


def path_of(run: str, approver: str = "ann", **more: Any) -> str:  # noqa: ANN401 - as `token_of`
    """Give the path of a link."""
    return link_url("", token_of(run, approver, **more))


def form_of(run: str, approver: str = "ann", decision: str = "approve", **more: Any) -> dict[str, str]:  # noqa: ANN401 - as `token_of`
    """Give what a form behind a link carries, also where its page shows no form."""
    link = read_link(keyring((SECRET,)), token_of(run, approver, **more), time.time())
    place = canonical([link.run_id, link.step, link.attempt, link.approver])
    csrf = write_signed(keyring((SECRET,)), "csrf", f"link:{digest(place)}")
    return {"csrf": csrf, "decision": decision}


class Page(HTMLParser):
    """What a test asks of a page: its hidden fields, its fields, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}
        self.names: list[str] = []
        self.attributes: list[tuple[str, dict[str, str]]] = []
        self._words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.attributes.append((tag, told))
        if tag in ("input", "select", "textarea", "button") and "name" in told:
            self.names.append(told["name"])
            if told.get("type") == "hidden":
                self.hidden[told["name"]] = told["value"]

    def handle_data(self, data: str) -> None:
        self._words.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self._words).split())


def post(client: httpx.Client, path: str, decision: str = "approve", **fields: str) -> httpx.Response:
    """Open a page and post its form, as a browser without JavaScript does."""
    page = client.get(path)
    assert page.status_code == 200, page.text
    form = Page(page.text).hidden
    return client.post(path, data={**form, "decision": decision, **fields})
