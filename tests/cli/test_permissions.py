"""Every command needs a permission or says why not; who may not read is refused by every one that reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import call
from wfcelery.cli.commands import COMMANDS, LOCAL
from wfcelery.rights import Permission

FLOW = "name: hello\nstart: greet\nsteps:\n  greet: {tool: echo, args: {message: hi}, done: true}\n"
# How each command that reads is called, by the run that there is.
READING: dict[str, tuple[str, ...]] = {
    "graph": ("graph", "{run}"),
    "definitions": ("definitions",),
    "ps": ("ps",),
    "show": ("show", "{run}"),
    "watch": ("watch", "{run}"),
    "explain": ("explain", "{run}"),
    "events": ("events", "{run}"),
    "check": ("check",),
    "doctor": ("doctor",),
    "dead-letters": ("dead-letters",),
}
# Their executor decides: what it refuses, and that it refuses, is tested with it.
WRITING = {"define", "start", "approve", "deny", "signal", "cancel", "pause", "resume", "retry"}


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A run that has ended, in a folder without a policy."""
    (here / "hello.yaml").write_text(FLOW)
    assert call(capsys, "define", "hello.yaml").code == 0
    said = call(capsys, "run", "hello", "-o", "json")
    assert said.code == 0, said.err
    return str(json.loads(said.out)["id"])


def allow(here: Path, monkeypatch: pytest.MonkeyPatch, *permissions: str) -> None:
    (here / "people.toml").write_text(f"[users.ann]\nallow = {json.dumps(permissions)}\n")
    monkeypatch.setenv("WFCELERY_POLICY", "people.toml")


def test_every_command_has_a_permission_or_says_that_it_is_local() -> None:
    needs = {name: need for name, (_, _, need) in COMMANDS.items()}
    assert {name for name, need in needs.items() if need not in {*Permission, LOCAL}} == set()
    assert {name for name, need in needs.items() if need == Permission.READ} == set(READING)
    assert {name for name, need in needs.items() if need not in (Permission.READ, LOCAL)} == WRITING | {"run"}


def test_what_is_local_is_listed_here_so_that_nobody_adds_to_it_unseen() -> None:
    local = {name for name, (_, _, need) in COMMANDS.items() if need == LOCAL}
    processes = {"executor", "worker", "beat", "notifier", "up", "web", "mcp"}
    assert local - processes == {"validate", "health", "keys", "policy"}


@pytest.mark.parametrize("name", READING)
def test_who_may_not_read_is_refused_by_every_command_that_reads(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    allow(here, monkeypatch)
    said = call(capsys, *(word.format(run=run) for word in READING[name]))
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith("wfcelery: ann may not do this")
    assert said.err.endswith(": the permission `read` is missing\n")


@pytest.mark.parametrize("name", READING)
def test_who_may_read_is_answered_by_every_command_that_reads(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    args = tuple(word.format(run=run) for word in READING[name])
    before = call(capsys, *args)
    allow(here, monkeypatch, "read")
    said = call(capsys, *args)
    assert (said.code, said.out) == (before.code, before.out)
    assert "permission" not in said.err


@pytest.mark.parametrize("name", sorted({"graph", "show", "watch", "explain", "events"}))
def test_who_may_read_one_flow_reads_its_runs_and_no_others(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    args = tuple(word.format(run=run) for word in READING[name])
    allow(here, monkeypatch, "read:hel*")
    assert call(capsys, *args).code == 0
    allow(here, monkeypatch, "read:other")
    said = call(capsys, *args)
    assert (said.code, said.err) == (
        4,
        "wfcelery: ann may not do this to flow hello: the permission `read` is missing\n",
    )


def test_who_may_read_one_flow_lists_that_flow_only(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(here, monkeypatch, "read:hello")
    assert call(capsys, "ps").code == 4
    assert call(capsys, "ps", "--flow", "hello", "-o", "ids").out == f"{run}\n"
    assert call(capsys, "ps", "--flow", "other").code == 4
    assert call(capsys, "definitions", "hello", "-o", "ids").out == "hello@1\n"
    assert call(capsys, "definitions").code == 4
    assert call(capsys, "graph", "hello").code == 0


def test_who_may_not_read_learns_not_whether_a_run_is_there(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(here, monkeypatch)
    assert call(capsys, "show", "01k9z3n5m8q0r2t4v6x8y0a1b2").code == 4


def test_a_file_is_drawn_and_checked_without_any_right(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(here, monkeypatch)
    assert call(capsys, "graph", "hello.yaml").code == 0
    assert call(capsys, "validate", "hello.yaml").code == 0


@pytest.mark.parametrize("flow", ["hello.yaml", "hello", "hello@1"])
def test_a_run_here_needs_the_right_to_start_its_flow(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flow: str
) -> None:
    allow(here, monkeypatch, "read", "start:other")
    said = call(capsys, "run", flow)
    assert (said.code, said.out) == (4, "")
    assert said.err == "wfcelery: ann may not do this to flow hello: the permission `start` is missing\n"
    assert call(capsys, "ps", "-o", "ids").out == f"{run}\n"
    allow(here, monkeypatch, "start:hello", "define:hello")
    assert call(capsys, "run", flow).code == 0


def test_a_file_that_is_run_here_is_defined_on_the_way(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(here, monkeypatch, "start:hello")
    said = call(capsys, "run", "hello.yaml")
    assert said.code == 4
    assert "(permission define)" in said.err
    assert call(capsys, "run", "hello").code == 0


def test_a_run_goes_on_here_for_who_may_start_its_flow(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(here, monkeypatch, "read")
    assert call(capsys, "run", "--resume", run).code == 4
    allow(here, monkeypatch, "start:hello")
    assert call(capsys, "run", "--resume", run).code == 0


def test_an_agent_at_a_terminal_answers_no_gate(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "gate.yaml").write_text("start: g\nsteps: {g: {approval: {}, next: e}, e: {done: true}}\n")
    (here / "people.toml").write_text('[users.ann]\nkind = "agent"\nallow = ["admin"]\n')
    monkeypatch.setenv("WFCELERY_POLICY", "people.toml")
    said = call(capsys, "run", "gate.yaml", "--approve", "g")
    assert said.code == 4
    assert "ann may not decide in runs of gate (permission decide)" in said.err
    (here / "people.toml").write_text('[users.ann]\nallow = ["admin"]\n')
    assert call(capsys, "run", "gate.yaml", "--approve", "g").code == 0


def test_a_hook_in_this_folder_is_asked(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "shop_may.py").write_text(
        "def authorize(user, permission, resource):\n"
        "    asked = (user.id, permission, resource.flow, resource.created_by)\n"
        "    return asked == ('ann', 'read', 'hello', 'ann')\n"
    )
    monkeypatch.setenv("WFCELERY_AUTHORIZE", "shop_may:authorize")
    assert call(capsys, "show", run).code == 0
    assert call(capsys, "ps").code == 4
    monkeypatch.setenv("WFCELERY_USER", "bob")
    assert call(capsys, "show", run).code == 4


def test_a_policy_that_cannot_be_used_stops_every_command_that_reads_and_says_why(
    here: Path, run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WFCELERY_POLICY", "missing.toml")
    said = call(capsys, "ps")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("wfcelery: policy missing.toml: there is no such file")


def test_who_decides_without_an_executor_need_not_know_the_tools_behind_the_gate(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "paying.py").write_text(
        "from wfcelery import tool\n\n@tool(permission='pay')\ndef pay() -> int:\n    return 7\n"
    )
    (here / "pay.yaml").write_text(
        "name: pay\nstart: g\nsteps:\n"
        "  g: {approval: {allow_self: true}, next: p}\n  p: {tool: pay, done: true}\n"
    )
    allow(here, monkeypatch, "admin")
    begun = call(capsys, "run", "pay.yaml", "--tools", "paying", "--no-wait-gates")
    assert begun.code == 6
    run = call(capsys, "ps", "-o", "ids").out.strip()
    assert call(capsys, "approve", run).code == 0
    assert call(capsys, "run", "--resume", run, "--tools", "paying").out == "7\n"
