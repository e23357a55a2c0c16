"""A whole system as people meet it: executor, worker, notifier and web as processes, and a letter box."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.notify.receiver import Receiver, receiving
from tests.system.system import System
from wfcelery.core.messages import Principal
from wfcelery.rights.token import hash_of

NAMES = ("stan", "ann", "finn")
TOKENS = {name: f"wfc_browser-token-of-{name}" for name in NAMES}
POLICY = """
[users.stan]
name = "Stan"
allow = ["read", "start", "define", "cancel", "retry", "signal", "admin"]
tokens = ["{stan}"]
notify = ["{stan_at}"]
[users.ann]
name = "Ann"
groups = ["finance"]
tokens = ["{ann}"]
notify = ["{ann_at}"]
[users.finn]
groups = ["finance"]
tokens = ["{finn}"]
[groups.finance]
allow = ["read", "decide"]
[channels]
ops = ["{ops_at}"]
"""
REFUND: dict[str, Any] = {
    "name": "refund",
    "description": "Pays money back to a customer, after somebody of finance has looked at it.",
    "input": {
        "type": "object",
        "required": ["order", "amount", "reason"],
        "properties": {
            "order": {"type": "string", "title": "Order", "description": "As printed on the invoice."},
            "amount": {"type": "number", "title": "Amount", "minimum": 1},
            "reason": {"type": "string", "title": "Reason", "enum": ["damaged", "late", "not as described"]},
            "express": {"type": "boolean", "title": "Pay at once"},
        },
    },
    "key": "{{input.order}}",
    "start": "look_up",
    "defaults": {"notify": ["channel:ops"]},
    "steps": {
        "look_up": {
            "tool": "echo",
            "args": {"order": "{{input.order}}", "customer": "C. Customer", "paid": "{{input.amount}}"},
            "parallel": ["check_fraud", "check_stock"],
        },
        "check_fraud": {"tool": "echo", "args": {"value": "no signs of fraud"}, "join": "review"},
        "check_stock": {"tool": "echo", "args": {"value": "goods are back"}, "join": "review"},
        "review": {
            "description": "May this be paid back?",
            "approval": {
                "approvers": ["group:finance"],
                "timeout_s": 86_400,
                "form": {
                    "type": "object",
                    "required": ["account"],
                    "properties": {
                        "account": {"type": "string", "title": "Account", "enum": ["main", "goodwill"]}
                    },
                },
                "on_deny": "explain",
            },
            "next": "pay",
        },
        "pay": {
            "description": "Sends the money",
            "tool": "echo",
            "args": {
                "order": "{{input.order}}",
                "amount": "{{input.amount}}",
                "to": "{{steps.look_up.result.customer}}",
            },
            "next": "tell",
        },
        "tell": {"tool": "echo", "args": {"value": "paid {{input.amount}}"}, "done": True},
        "explain": {"tool": "echo", "args": {"value": "not paid"}, "done": True},
    },
}
LINK = re.compile(r"https?://\S+/a/\S+")
STARTED_S = 30.0


@dataclass(slots=True)
class Office:
    """The system, its address, and what came by mail."""

    system: System
    base: str
    mail: Receiver

    def define(self, document: dict[str, Any]) -> None:
        self.system.workflows.define(document, by=Principal("stan"))

    def link(self, run: str, to: str = "ann") -> str:
        """Wait for the letter with the link, and open it."""

        def came() -> str | None:
            found = [
                match[0]
                for each in self.mail.at(to)
                if each.title.startswith("Please decide")
                and run in each.body
                and (match := LINK.search(each.body))
            ]
            return found[-1] if found else None

        return self.system.until(came, f"a link for {to}") or ""


@contextmanager
def office(folder: Path) -> Iterator[Office]:
    with receiving() as mail:
        system = System(folder, f"sqlite:///{folder}/wfcelery.db")
        port = _free_port()
        base = f"http://127.0.0.1:{port}"
        policy = folder / "policy.toml"
        hashes = {name: hash_of(token) for name, token in TOKENS.items()}
        places = {f"{name}_at": mail.address(name) for name in ("stan", "ann", "ops")}
        policy.write_text(POLICY.format(**hashes, **places))
        told = {"WFCELERY_POLICY": str(policy), "WFCELERY_BASE_URL": base}
        try:
            workers = (
                system.executor(ready=None, **told),
                system.worker(ready=None),
                system.spawn("notifier", ready=None, **told),
            )
            system.spawn("web", "--port", str(port), ready=None, **told)
            system.ready(*workers)
            _wait_for(base)
            made = Office(system, base, mail)
            made.define(REFUND)
            yield made
        except BaseException:
            print(system.report())  # noqa: T201 - pytest shows it with the failure
            raise
        finally:
            system.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(base: str) -> None:
    deadline = time.monotonic() + STARTED_S
    while True:
        try:
            httpx.get(f"{base}/login")
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the web does not answer"
            time.sleep(0.05)
        else:
            return
