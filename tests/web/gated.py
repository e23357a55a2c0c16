"""A system whose dangerous tool stands behind a gate, runs of it in every state, and what must never be seen.

Nobody who may approve does so in these games, unless a test says it did: so the guarded tool must leave no
line in the ledger, and no step that calls it may ever have been made ready.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proof import problems
from tests.system.system import System
from tests.web.server import TOKENS, House, Site
from wfcelery.core import ids
from wfcelery.core.messages import Cancel, Decide, Hold, Principal, Signal
from wfcelery.core.state import NO_ITEM
from wfcelery.core.values import Json
from wfcelery.executor.answers import new_command_id
from wfcelery.executor.messages import Asked
from wfcelery.rights.token import hash_of
from wfcelery.workflows.asking import ask

TOOLS = ("tests.system.ledger", "tests.system.guarded")
GUARDED = "erase"
NAMES = ("stan", "mallory", "ann", "ann_agent", "dan", "eve", "robo", "ivy", "boss")
POLICY = """
[groups.board]
allow = []

[users.stan]
allow = ["admin"]
tokens = ["{stan}"]

[users.mallory]
allow = ["read", "start", "define", "decide", "signal", "cancel", "retry"]
tokens = ["{mallory}"]

[users.ann]
allow = ["read", "decide", "signal", "cancel", "retry"]
groups = ["board"]
tokens = ["{ann}", {{hash = "{ann_agent}", kind = "agent"}}]

[users.dan]
allow = ["read", "decide"]
groups = ["board"]
tokens = ["{dan}"]

[users.eve]
allow = ["read", "decide"]
tokens = ["{eve}"]

[users.robo]
kind = "agent"
allow = ["admin"]
groups = ["board"]
tokens = ["{robo}"]

[users.ivy]
allow = ["read", "start", "define", "billing.pay"]
tokens = ["{ivy}"]

[users.boss]
allow = ["admin"]
tokens = ["{boss}"]

[users."hook:review"]
allow = ["admin"]

[users."hook:go"]
allow = ["admin"]
"""
STARTER, APPROVER = "stan", "ann"
LONGEST_S = 60.0
ESCALATES_S = 2.0
"""Long enough for a test to act between the first timeout and the second."""

for _name in NAMES:
    TOKENS.setdefault(_name, f"wfc_test-token-of-{_name}")


def policy_text() -> str:
    """Say who may do what in these tests."""
    return POLICY.format(**{name: hash_of(TOKENS[name]) for name in NAMES})


@contextmanager
def gated_house(folder: Path) -> Iterator[House]:
    """Run an executor, a worker and a policy, with the guarded tools."""
    url = f"sqlite:///{folder}/wfcelery.db"
    system = System(folder, url)
    house = House(system, folder)
    house.policy.write_text(policy_text())
    tools = ",".join(TOOLS)
    try:
        both = (
            system.executor(ready=None, WFCELERY_POLICY=str(house.policy), WFCELERY_TOOLS=tools),
            system.worker(ready=None, WFCELERY_TOOLS=tools),
        )
        system.ready(*both)
        yield house
    finally:
        house.close()
    assert problems(url) == []


def gated_site(house: House) -> Site:
    """Open the app in front of it."""
    return house.site(tools=TOOLS)


# -- what must never be seen


def made_ready(system: System, permitted: Sequence[str] = ()) -> list[tuple[object, ...]]:
    """Find everything that says that the guarded tool was reached, in runs where nobody has approved it."""
    allowed = set(permitted)
    by_tool = f"SELECT workflow_id, name, attempt, status FROM workflow_steps WHERE tool = '{GUARDED}'"  # noqa: S608
    rows = system.query(f"{by_tool} AND status IN ('ready', 'running', 'done', 'failed')")
    told = system.query(
        "SELECT workflow_id, step, attempt, type FROM workflow_events WHERE step = 'guarded' AND type IN "
        "('step_ready', 'step_running', 'step_running_again', 'step_started', 'step_resent', "
        "'step_returned', 'step_done', 'step_failed', 'step_parked', 'step_postponed')"
    )
    lines: list[tuple[object, ...]] = [
        (line.run, line.step, line.attempt, line.what)
        for line in system.ledger.lines()
        if line.step == "guarded"
    ]
    return [each for each in (*rows, *told, *lines) if each[0] not in allowed]


WRITTEN = ("workflow_definitions", "workflows", "workflow_steps", "workflow_events", "commands", "votes")


def content(system: System) -> dict[str, list[tuple[object, ...]]]:
    """The rows of the tables that requests change."""
    return {table: sorted(system.query(f"SELECT * FROM {table}"), key=repr) for table in WRITTEN}  # noqa: S608


def idle(system: System) -> None:
    """Wait until nothing is with a worker or on its way, and no sub-run is still to begin."""
    out = "s.status = 'running' OR (s.status = 'ready' AND NOT r.held)"  # What is held back goes nowhere.
    child = "w.parent_run_id = s.workflow_id AND w.parent_step = s.name AND w.parent_attempt = s.attempt"
    begins = f"s.waits_for = 'flow' AND NOT r.held AND NOT EXISTS (SELECT 1 FROM workflows w WHERE {child})"  # noqa: S608
    open_steps = (
        "SELECT count(*) FROM workflow_steps s JOIN workflows r ON r.id = s.workflow_id "  # noqa: S608
        f"WHERE {out} OR ({begins})"
    )
    system.until(lambda: system.query(open_steps) == [(0,)], "the system to be idle", LONGEST_S)


# -- the flow, and the states in which a run of it can be

Document = dict[str, Any]


def order(name: str, before: Document | None = None, work: Document | None = None, **gate: Any) -> Document:  # noqa: ANN401 - a part of a document
    """A step, a gate, the guarded step; beside them a branch that can fail."""
    once = {"retry": {"max_attempts": 1}}
    return {
        "name": name,
        "start": "fork",
        "steps": {
            "fork": {"parallel": ["before", "beside"]},
            "before": {"tool": "act", **once, **(before or {}), "next": "review"},
            "review": {"approval": {"approvers": [APPROVER, "dan"], **gate}, "next": "guarded"},
            "guarded": {"tool": GUARDED, "join": "end"},
            "beside": {"wait": {"signal": "go"}, "next": "work"},
            "work": {"tool": "act", **once, **(work or {}), "join": "end"},
            "end": {"done": True},
        },
    }


def bare(name: str) -> Document:
    """The same name without the gate."""
    return {"name": name, "start": "guarded", "steps": {"guarded": {"tool": GUARDED, "done": True}}}


@dataclass(frozen=True, slots=True)
class Spot:
    """A run in some state, as operations name it."""

    run: str
    flow: str
    key: str
    document: Document


@dataclass(slots=True)
class Games:
    """Runs of one flow in one state."""

    system: System
    runs: list[str]
    approver: Principal = field(default_factory=lambda: Principal(APPROVER))
    starter: Principal = field(default_factory=lambda: Principal(STARTER))

    def tell(self, request: Callable[[str], Asked]) -> None:
        """Ask the same of every run."""
        answers = ask(self.system.workflows.links, [request(run) for run in self.runs], LONGEST_S)
        assert [answer.reason for answer in answers if not answer.ok] == []

    def wait(self, condition: str, what: str) -> None:
        """Wait until so many steps are as the condition says as there are runs."""
        among = ", ".join(f"'{run}'" for run in self.runs)
        query = f"SELECT count(*) FROM workflow_steps WHERE {condition} AND workflow_id IN ({among})"  # noqa: S608
        self.system.until(lambda: self.system.query(query) == [(len(self.runs),)], what, LONGEST_S)

    def are_open(self) -> None:
        self.wait("name = 'review' AND waits_for = 'approval'", "the gates to be open")
        idle(self.system)


def _before(games: Games) -> None:
    """The step before the gate is with a worker, or on its way; it ends when the test lets it."""
    games.wait("name = 'before' AND status IN ('ready', 'running')", "the steps before the gates to be out")


def _held(games: Games) -> None:
    games.are_open()
    games.tell(lambda run: Hold(new_command_id(), run, games.starter))


def _cancelled(games: Games) -> None:
    games.are_open()
    games.tell(lambda run: Cancel(new_command_id(), run, games.starter))
    games.wait("name = 'review' AND status = 'cancelled'", "the gates to be cancelled")


def _denied(games: Games) -> None:
    games.are_open()
    games.tell(lambda run: Decide(new_command_id(), run, "review", approve=False, by=games.approver))
    games.wait("name = 'review' AND status = 'failed'", "the gates to be denied")


def _failed_before(games: Games) -> None:
    games.wait("name = 'before' AND status = 'failed'", "the steps before the gates to fail")


def _failed_beside(games: Games) -> None:
    """The gate was open when another branch failed: it was cancelled with the run."""
    games.are_open()
    games.tell(lambda run: Signal(new_command_id(), run, "go", games.starter))
    games.wait("name = 'review' AND status = 'cancelled'", "the gates to be cancelled by the failure")


def _half_approved(games: Games) -> None:
    games.are_open()
    games.tell(lambda run: Decide(new_command_id(), run, "review", approve=True, by=games.approver))


def _escalated(games: Games) -> None:
    games.wait("name = 'review' AND escalated AND waits_for = 'approval'", "the gates to be escalated")


FAILS = {"tool": "stumble"}
"""Fails at its first attempt, and not when it is retried."""
STATES: dict[str, tuple[Callable[[Games], None], Document]] = {
    "before the gate": (_before, {"before": {"tool": "hold"}}),
    "open": (Games.are_open, {}),
    "held": (_held, {}),
    "cancelled": (_cancelled, {}),
    "denied": (_denied, {}),
    "failed before the gate": (_failed_before, {"before": FAILS}),
    "failed beside the gate": (_failed_beside, {"work": FAILS}),
    "half approved": (_half_approved, {"quorum": 2}),
    "escalated": (
        _escalated,
        {"timeout_s": ESCALATES_S, "on_timeout": "escalate", "escalate_to": ["eve"]},
    ),
    "of a group, with a form": (
        Games.are_open,
        {
            "approvers": ["group:board"],
            "require_comment": True,
            "form": {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]},
        },
    ),
    "above a gate in a sub-run": (Games.are_open, {}),
    "at a gate in a sub-run": (Games.are_open, {}),
}
_NUMBERS = itertools.count(1)


def spots(house: House, state: str, count: int) -> list[Spot]:
    """Bring so many runs of a new flow into a state."""
    reach, parts = STATES[state]
    system, name = house.system, f"order-{next(_NUMBERS)}"
    document = order(name, **parts)
    if state == "before the gate":
        system.ledger.gate.touch()
    if "sub-run" in state:
        return _spots_of_sub_runs(system, document, count, from_above="above" in state)
    runs = _start(system, document, count)
    reach(Games(system, runs))
    return [Spot(run, name, f"{name}-{place}", document) for place, run in enumerate(runs)]


def _spots_of_sub_runs(system: System, document: Document, count: int, *, from_above: bool) -> list[Spot]:
    system.workflows.define(document, by=STARTER)
    name = str(document["name"])
    step: Json = {"flow": {"name": name}, "done": True}
    above = {"name": f"{name}-above", "start": "below", "steps": {"below": step}}
    runs = _start(system, above, count)
    below = [ids.child_id(run, "below", NO_ITEM, 1) for run in runs]
    Games(system, below).are_open()
    shown = above if from_above else document
    return [
        Spot(runs[place] if from_above else below[place], str(shown["name"]), f"{name}-above-{place}", shown)
        for place in range(count)
    ]


def _start(system: System, document: Document, count: int) -> list[str]:
    name = document["name"]
    begun = [{"flow": document, "key": f"{name}-{place}"} for place in range(count)]
    return [run.id for run in system.workflows.start_many(begun, by=STARTER)]
