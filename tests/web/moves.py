"""Everything that can be done through HTTP, the command line and Python, by those who may not approve.

Each table is complete by construction: a test holds it to the doors, commands and methods that there are.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from tests.cli.calling import call
from tests.web.gated import Spot, bare
from tests.web.server import TOKENS, Page, Site, form_of, path_of
from wfcelery import Workflows
from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import Forbidden, InvalidFlow, InvalidInput, NotAllStarted, NotFound, Refused
from wfcelery.web.pages.hooks import HEADER, sign

Move: TypeAlias = tuple[str, Callable[[Spot], None]]

DECIDERS = ("stan", "mallory", "ann_agent", "robo")
"""The starter and author, with every right; no approver; an approver's agent; an agent with every right."""
ACTORS = ("stan", "robo")
"""Who makes something new: the agent is neither starter nor author of what there is, but of that."""
STARTER = ("stan",)
"""Where it does not matter who asks, as long as they may."""
APPROVED: dict[str, Any] = {"approved": True, "by": ["ann"]}
FORM: dict[str, Any] = {"why": "so"}
SAID = {"decision": "approve", "comment": "yes"}


def self_opened(name: str) -> dict[str, Any]:
    """A gate that the starter could open."""
    gate = {"approval": {"allow_self": True}, "next": "guarded"}
    steps = {"review": gate, "guarded": {"tool": "erase", "done": True}}
    return {"name": name, "start": "review", "steps": steps}


# -- HTTP

FAULTS = frozenset({400, 405, 415, 429})
"""What says that a test has asked for nothing sensible."""


class Player:
    """Somebody with a token, in the console and at the API."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        # A connection that is kept may be closed by the server just when the next request is written.
        once = httpx.Limits(max_keepalive_connections=0)
        self.console = httpx.Client(base_url=site.url, timeout=30.0, limits=once)
        page = self.console.get("/login")
        sent = self.console.post("/login", data={**Page(page.text).hidden, "token": TOKENS[name]})
        assert sent.status_code == 303, sent.text
        self.csrf = Page(self.console.get("/runs").text).hidden["csrf"]
        headers = {"authorization": f"Bearer {TOKENS[name]}"}
        self.api = httpx.Client(base_url=f"{site.url}/api/v1", headers=headers, timeout=30.0, limits=once)

    def close(self) -> None:
        self.console.close()
        self.api.close()

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.console.post(path, data={"csrf": self.csrf, **fields})

    def ask(self, path: str, **body: Any) -> httpx.Response:  # noqa: ANN401 - JSON
        return self.api.post(path, json=body)

    def approve(self, spot: Spot, step: str = "review", **fields: str) -> httpx.Response:
        fields = {"f.why": "so", "attempt": "1", **SAID, **fields}
        return self.post(f"/runs/{spot.run}/gates/{step}/decide", **fields)


def _sign_in_as_another(player: Player, spot: Spot) -> httpx.Response:
    with player.site.browser(player.name) as client:
        csrf = Page(client.get("/runs").text).hidden["csrf"]
        client.post("/login", data={"csrf": csrf, "token": TOKENS[player.name], "user": "ann"})
        csrf = Page(client.get("/runs").text).hidden["csrf"]
        return client.post(
            f"/runs/{spot.run}/gates/review/decide", data={"csrf": csrf, "user": "ann", **SAID}
        )


def _sign_out_and_approve(player: Player, spot: Spot) -> httpx.Response:
    with player.site.browser(player.name) as client:
        csrf = Page(client.get("/runs").text).hidden["csrf"]
        assert client.post("/logout", data={"csrf": csrf}).status_code == 303
        csrf = Page(client.get("/login").text).hidden["csrf"]
        return client.post(f"/runs/{spot.run}/gates/review/decide", data={"csrf": csrf, **SAID})


def _act_as_approver(player: Player, spot: Spot) -> httpx.Response:
    assert player.post("/act-as", user="ann").status_code == 404
    return player.approve(spot)


def _link(player: Player, spot: Spot, whose: str) -> httpx.Response:
    """Post behind a link that is signed as it should be, with the form of its page."""
    path = path_of(spot.run, whose, step="review")
    form = {**form_of(spot.run, whose, step="review"), "f.why": "so", "comment": "yes"}
    return player.console.post(path, data=form)


HttpCall: TypeAlias = Callable[[Player, Spot], httpx.Response]
HOOK_SECRET = "the secret of a hook that may do everything"  # noqa: S105 - for tests
for _signal in ("review", "go"):
    os.environ[f"WFHOOK_{_signal}"] = HOOK_SECRET


def _hook(who: Player, spot: Spot, signal: str) -> httpx.Response:
    """Another system, whose hook has every right, says that all is approved."""
    body = json.dumps({**APPROVED, "run_id": spot.run}).encode()
    headers = {HEADER: sign(HOOK_SECRET, body, int(time.time())), "content-type": "application/json"}
    return httpx.post(f"{who.site.url}/hooks/{signal}", content=body, headers=headers, timeout=30.0)


HTTP: dict[str, Sequence[tuple[str, Sequence[str], HttpCall]]] = {
    "api_start_run": [
        ("another", ACTORS, lambda who, spot: who.ask("/runs", flow=spot.flow)),
        ("under its key", ACTORS, lambda who, spot: who.ask("/runs", flow=spot.flow, key=spot.key)),
        ("under its id", ACTORS, lambda who, spot: who.ask("/runs", flow=spot.document, id=spot.run)),
        ("without the gate", ACTORS, lambda who, spot: who.ask("/runs", flow=bare(spot.flow))),
        ("opened by oneself", ACTORS, lambda who, spot: who.ask("/runs", flow=self_opened(spot.flow))),
    ],
    "api_cancel_run": [("", STARTER, lambda who, spot: who.ask(f"/runs/{spot.run}/cancel"))],
    "api_pause_run": [("", STARTER, lambda who, spot: who.ask(f"/runs/{spot.run}/pause"))],
    "api_resume_run": [("", STARTER, lambda who, spot: who.ask(f"/runs/{spot.run}/resume"))],
    "api_retry_run": [("", ACTORS, lambda who, spot: who.ask(f"/runs/{spot.run}/retry"))],
    "api_signal_run": [
        ("go", STARTER, lambda who, spot: who.ask(f"/runs/{spot.run}/signals/go", payload=APPROVED)),
        (
            "the gate",
            STARTER,
            lambda who, spot: who.ask(f"/runs/{spot.run}/signals/review", payload=APPROVED),
        ),
    ],
    "api_decide_gate": [
        ("", DECIDERS, lambda who, spot: who.ask(f"/runs/{spot.run}/gates/review", decision="approve")),
        (
            "filled in",
            DECIDERS,
            lambda who, spot: who.ask(f"/runs/{spot.run}/gates/review", **SAID, form=FORM, attempt=1),
        ),
        ("the step", DECIDERS, lambda who, spot: who.ask(f"/runs/{spot.run}/gates/guarded", **SAID)),
    ],
    "api_define_flow": [
        ("without the gate", ACTORS, lambda who, spot: who.ask("/definitions", flow=bare(spot.flow))),
        ("opened by oneself", ACTORS, lambda who, spot: who.ask("/definitions", flow=self_opened(spot.flow))),
    ],
    "api_retire_definition": [("", STARTER, lambda who, spot: who.api.delete(f"/definitions/{spot.flow}@1"))],
    "api_validate_flow": [("", STARTER, lambda who, spot: who.ask("/validate", flow=bare(spot.flow)))],
    "hook": [
        ("the gate", STARTER, lambda who, spot: _hook(who, spot, "review")),
        ("go", STARTER, lambda who, spot: _hook(who, spot, "go")),
    ],
    "sign_in": [("as another", ACTORS, _sign_in_as_another)],
    "sign_out": [("and approve", STARTER, _sign_out_and_approve)],
    "act_as": [("the approver", DECIDERS, _act_as_approver)],
    "link_decide": [
        ("of the approver", DECIDERS, lambda who, spot: _link(who, spot, "ann")),
        ("of the starter", ["stan"], lambda who, spot: _link(who, spot, "stan")),
        ("of no approver", ["mallory"], lambda who, spot: _link(who, spot, "mallory")),
        ("of an agent", ["robo"], lambda who, spot: _link(who, spot, "robo")),
    ],
    "gate_decide": [
        ("", DECIDERS, lambda who, spot: who.approve(spot)),
        ("the step", DECIDERS, lambda who, spot: who.approve(spot, "guarded")),
        ("a later attempt", DECIDERS, lambda who, spot: who.approve(spot, attempt="2")),
    ],
    "do_pause": [("", STARTER, lambda who, spot: who.post(f"/runs/{spot.run}/pause"))],
    "do_resume": [("", STARTER, lambda who, spot: who.post(f"/runs/{spot.run}/resume"))],
    "do_retry": [("", ACTORS, lambda who, spot: who.post(f"/runs/{spot.run}/retry"))],
    "do_cancel": [("", STARTER, lambda who, spot: who.post(f"/runs/{spot.run}/cancel"))],
    "start_run": [
        ("another", ACTORS, lambda who, spot: who.post(f"/flows/{spot.flow}", **{"f.": "{}"})),
        ("under its key", ACTORS, lambda who, spot: who.post(f"/flows/{spot.flow}", key=spot.key)),
        ("under its id", ACTORS, lambda who, spot: who.post(f"/flows/{spot.flow}", run_id=spot.run)),
    ],
}
DECIDING = frozenset({"api_decide_gate", "gate_decide", "link_decide", "act_as", "sign_in", "sign_out"})
"""Doors at which these moves approve: nobody who plays is ever told that it was done."""


def http_moves(players: Mapping[str, Player]) -> Iterator[Move]:
    """List what can be posted and deleted."""
    for door, ways in HTTP.items():
        for label, names, way in ways:
            for name in names:
                move = _posted(players[name], way, decides=door in DECIDING)
                yield f"{name}: {door} {label}", move


def _posted(player: Player, way: HttpCall, *, decides: bool) -> Callable[[Spot], None]:
    def move(spot: Spot) -> None:
        response = way(player, spot)
        said = (response.status_code, response.text)
        assert response.status_code < 500, said
        assert response.status_code not in FAULTS, said
        assert "this form is too old" not in response.text, said
        assert not (decides and response.is_success), said

    return move


# -- the command line

CliCall: TypeAlias = Callable[[Spot], Sequence[str]]
CLI_DECIDERS = ("stan", "mallory", "robo")
CLI: dict[str, Sequence[tuple[str, Sequence[str], CliCall]]] = {
    "run": [
        ("a file", ACTORS, lambda _: ("bare.json", "--approve", "approve-guarded")),
        ("on from here", ACTORS, lambda spot: ("--resume", spot.run, "--approve", "review")),
    ],
    "define": [("without the gate", ACTORS, lambda _: ("bare.json",))],
    "start": [
        ("another", ACTORS, lambda spot: (spot.flow,)),
        ("under its key", ACTORS, lambda spot: (spot.flow, "--key", spot.key)),
        ("under its id", ACTORS, lambda spot: (spot.flow, "--id", spot.run)),
        ("without the gate", ACTORS, lambda _: ("bare.json",)),
    ],
    "approve": [
        ("", CLI_DECIDERS, lambda spot: (spot.run,)),
        (
            "filled in",
            CLI_DECIDERS,
            lambda spot: (spot.run, "review", "--comment", "yes", "--form", "why=so"),
        ),
        ("the step", CLI_DECIDERS, lambda spot: (spot.run, "guarded")),
        ("by key", CLI_DECIDERS, lambda spot: ("--flow", spot.flow, "--key", spot.key)),
    ],
    "deny": [("", CLI_DECIDERS, lambda spot: (spot.run,))],
    "signal": [
        ("go", STARTER, lambda spot: (spot.run, "go", "-i", "approved:=true")),
        ("the gate", STARTER, lambda spot: (spot.run, "review", "-i", "approved:=true")),
        ("all", STARTER, lambda spot: ("--key", spot.key, "go")),
    ],
    "cancel": [("", STARTER, lambda spot: (spot.run,))],
    "pause": [("", STARTER, lambda spot: (spot.run,))],
    "resume": [("", STARTER, lambda spot: (spot.run,))],
    "retry": [("", ACTORS, lambda spot: (spot.run,))],
}
USAGE, OUT_OF_REACH, UNCONFIRMED = 2, 5, 7


def cli_moves(capsys: pytest.CaptureFixture[str], folder: Path) -> Iterator[Move]:
    """List what can be typed; the settings stand in the environment."""
    for command, ways in CLI.items():
        for label, names, way in ways:
            for name in names:
                yield f"{name}: {command} {label}", _typed(capsys, folder, command, name, way)


def _typed(
    capsys: pytest.CaptureFixture[str], folder: Path, command: str, user: str, way: CliCall
) -> Callable[[Spot], None]:
    def move(spot: Spot) -> None:
        (folder / "bare.json").write_text(json.dumps(bare(spot.flow)))
        said = call(capsys, command, *way(spot), "--user", user)
        assert said.code not in (USAGE, OUT_OF_REACH, UNCONFIRMED), said
        assert not (command in ("approve", "deny") and said.code == 0), said

    return move


# -- Python

PEOPLE = {
    "the starter": Principal("stan"),
    "no approver": Principal("mallory"),
    "the approver's agent": Principal("ann", Kind.AGENT),
    "an agent": Principal("robo", Kind.AGENT),
    "an agent that says it is none": Principal("robo"),
    "forged groups": Principal("mallory", groups=("board", "finance")),
    "the system": Principal("ann", Kind.SYSTEM),
    "at a terminal": Principal("stan", at_terminal=True),
    "nobody known": Principal("stranger", groups=("board",)),
}
PYTHON_DECIDERS = tuple(PEOPLE)
PYTHON_ACTORS = ("the starter", "an agent")
PythonCall: TypeAlias = Callable[[Workflows, Principal, Spot], object]
PYTHON: dict[str, Sequence[tuple[str, Sequence[str], PythonCall]]] = {
    "start": [
        ("another", PYTHON_ACTORS, lambda at, by, spot: at.start(spot.flow, by=by)),
        ("under its key", PYTHON_ACTORS, lambda at, by, spot: at.start(spot.flow, key=spot.key, by=by)),
        ("under its id", PYTHON_ACTORS, lambda at, by, spot: at.start(spot.document, run_id=spot.run, by=by)),
        ("without the gate", PYTHON_ACTORS, lambda at, by, spot: at.start(bare(spot.flow), by=by)),
        ("opened by oneself", PYTHON_ACTORS, lambda at, by, spot: at.start(self_opened(spot.flow), by=by)),
    ],
    "start_many": [
        ("", PYTHON_ACTORS, lambda at, by, spot: at.start_many([(spot.flow,), (bare(spot.flow),)], by=by))
    ],
    "define": [
        ("without the gate", PYTHON_ACTORS, lambda at, by, spot: at.define(bare(spot.flow), by=by)),
        ("opened by oneself", PYTHON_ACTORS, lambda at, by, spot: at.define(self_opened(spot.flow), by=by)),
    ],
    "retire": [("", PYTHON_ACTORS, lambda at, by, spot: at.retire(spot.flow, by=by))],
    "decide": [
        ("", PYTHON_DECIDERS, lambda at, by, spot: at.decide(spot.run, "review", approve=True, by=by)),
        (
            "filled in",
            PYTHON_DECIDERS,
            lambda at, by, spot: at.decide(
                spot.run, "review", approve=True, comment="yes", form=FORM, attempt=1, by=by, via="link"
            ),
        ),
        ("the step", PYTHON_ACTORS, lambda at, by, spot: at.decide(spot.run, "guarded", approve=True, by=by)),
    ],
    "step_ready": [
        ("the gate", PYTHON_DECIDERS, lambda at, by, spot: at.step_ready(spot.run, "review", by=by)),
        ("the step", PYTHON_ACTORS, lambda at, by, spot: at.step_ready(spot.run, "guarded", by=by)),
        ("the wait", PYTHON_ACTORS, lambda at, by, spot: at.step_ready(spot.run, "beside", by=by)),
    ],
    "step_done": [
        ("the gate", PYTHON_ACTORS, lambda at, by, spot: at.step_done(spot.run, "review", APPROVED, by=by)),
        ("before", PYTHON_ACTORS, lambda at, by, spot: at.step_done(spot.run, "before", 1, by=by)),
        ("the step", PYTHON_ACTORS, lambda at, by, spot: at.step_done(spot.run, "guarded", 1, by=by)),
    ],
    "step_failed": [
        ("the gate", PYTHON_ACTORS, lambda at, by, spot: at.step_failed(spot.run, "review", "no", by=by)),
        ("the step", PYTHON_ACTORS, lambda at, by, spot: at.step_failed(spot.run, "guarded", "no", by=by)),
    ],
    "signal": [
        ("go", PYTHON_ACTORS, lambda at, by, spot: at.signal(spot.run, "go", APPROVED, by=by)),
        ("the gate", PYTHON_ACTORS, lambda at, by, spot: at.signal(spot.run, "review", APPROVED, by=by)),
    ],
    "broadcast": [("", PYTHON_ACTORS, lambda at, by, spot: at.broadcast("go", spot.key, APPROVED, by=by))],
    "cancel": [("", PYTHON_ACTORS, lambda at, by, spot: at.cancel(spot.run, by=by))],
    "pause": [("", PYTHON_ACTORS, lambda at, by, spot: at.pause(spot.run, by=by))],
    "resume": [("", PYTHON_ACTORS, lambda at, by, spot: at.resume(spot.run, by=by))],
    "retry": [("", PYTHON_ACTORS, lambda at, by, spot: at.retry(spot.run, by=by))],
    "Run.cancel": [("", PYTHON_ACTORS, lambda at, by, spot: at.run(spot.run).cancel(by=by))],
    "Run.signal": [("", PYTHON_ACTORS, lambda at, by, spot: at.run(spot.run).signal("go", by=by))],
}
REFUSALS = (Refused, Forbidden, NotFound, InvalidInput, InvalidFlow, NotAllStarted)


def python_moves(workflows: Workflows) -> Iterator[Move]:
    """List what an application can call, with whatever it says of who asks."""
    for method, ways in PYTHON.items():
        for label, names, way in ways:
            for name in names:
                decides = method == "decide" or (method, label) == ("step_ready", "the gate")
                move = _called(workflows, PEOPLE[name], way, decides=decides)
                yield f"{name}: {method} {label}", move


def _called(workflows: Workflows, by: Principal, way: PythonCall, *, decides: bool) -> Callable[[Spot], None]:
    def move(spot: Spot) -> None:
        try:
            said = way(workflows, by, spot)
        except REFUSALS:
            return
        assert not decides, said

    return move
