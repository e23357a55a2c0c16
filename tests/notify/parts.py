"""A run that waits at a gate, people, and a notice of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from wfcelery.core.document import compile_flow
from wfcelery.core.effects import NoticeKind
from wfcelery.core.flow import Flow, Gate
from wfcelery.core.state import Attempt, Run, RunStatus, Vote, WaitsFor
from wfcelery.core.values import Json
from wfcelery.notify.facts import Facts
from wfcelery.rights.policy import PolicyFile
from wfcelery.store.notices import Notice

RUN = "01jcqr5h2k7m9n3p4q5r6s7t8v"
OPENED = 1_800_000_000.0

POLICY = """
[users.ann]
allow = ["start", "decide"]
notify = ["json://127.0.0.1:9/ann"]

[users.bob]
groups = ["ops"]
allow = ["decide"]
notify = ["json://127.0.0.1:9/bob"]

[users.cleo]
groups = ["ops"]
allow = ["decide:ship"]
notify = ["json://127.0.0.1:9/cleo"]

[users.dora]
allow = ["decide"]
notify = ["json://127.0.0.1:9/dora"]

[users.erin]
allow = ["read", "decide:other"]
notify = ["json://127.0.0.1:9/erin"]

[users.mute]
allow = ["decide"]

[users.robot]
kind = "agent"
groups = ["ops"]
allow = ["decide"]
notify = ["json://127.0.0.1:9/robot"]

[groups.ops]
[groups.empty]

[channels]
ops = ["json://127.0.0.1:9/channel", "json://127.0.0.1:9/second"]
news = ["json://127.0.0.1:9/news"]
"""


def policy(folder: Path, text: str = POLICY) -> PolicyFile:
    path = folder / "people.toml"
    path.write_text(text)
    return PolicyFile(path)


def flow(gate: dict[str, Json] | None = None, args: Json = None, *, author: str = "author") -> Flow:
    document: dict[str, Json] = {
        "name": "ship",
        "start": "gate",
        "steps": {
            "gate": {"approval": gate or {}, "next": "pay", "description": "Is the sum right?"},
            "pay": {"tool": "echo", "args": args or {"amount": 1200}, "done": True},
        },
    }
    return replace(compile_flow(document, name="ship"), author=author)


def facts(gate: dict[str, Json] | None = None, shown: Json = None, **changes: Any) -> Facts:  # noqa: ANN401
    """A gate that has just opened. `changes` are those of the attempt, `run_` before those of the run."""
    made = flow(gate, author=changes.pop("author", "author"))
    of_run = {
        name.removeprefix("run_"): changes.pop(name) for name in list(changes) if name.startswith("run_")
    }
    attempt = Attempt("gate", waits_for=WaitsFor.APPROVAL, ready_at=OPENED)._replace(**changes)
    run = Run(RUN, "d1", "ship", {}, "ann", OPENED - 60, status=RunStatus.PAUSED)._replace(**of_run)
    action = made.steps["gate"].action
    assert isinstance(action, Gate)
    following: Json = {"pay": {"args": {"amount": 1200}}} if shown is None else shown
    return Facts(run, made, 3, attempt, action, following)


def notice(recipient: str = "bob", kind: NoticeKind = NoticeKind.GATE_OPENED, **data: Json) -> Notice:
    is_of_gate = kind.value.startswith("gate")
    return Notice(
        id="n1",
        run_id=RUN,
        step="gate" if is_of_gate else None,
        attempt=1 if is_of_gate else 0,
        kind=kind.value,
        recipient=recipient,
        created_at=OPENED,
        next_at=OPENED,
        data=data,
    )


def vote(voter: str, attempt: int = 1) -> Vote:
    return Vote("gate", attempt, voter, approve=True)
