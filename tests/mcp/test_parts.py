"""The parts that need no system: what tools say of themselves, quotas, who calls, what is loaded when."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from wfcelery.core.faults import Fault
from wfcelery.core.messages import Kind, Principal
from wfcelery.core.reading import read
from wfcelery.core.validate import check_flow
from wfcelery.errors import InvalidFlow, InvalidSettings, NotConfirmed, Refused
from wfcelery.mcp.caller import Caller, TokenGone
from wfcelery.mcp.failures import bad_arguments, told
from wfcelery.mcp.fields import bounded, bounded_text
from wfcelery.mcp.quota import Quota
from wfcelery.mcp.resources import GUIDE
from wfcelery.mcp.runs import Start
from wfcelery.mcp.table import TOOLS, Tool
from wfcelery.rights import Everybody
from wfcelery.rights.policy import PolicyFile
from wfcelery.rights.token import hash_of
from wfcelery.settings import Settings
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mcp.md").read_text()
READ_ONLY = {"workflow_list_definitions", "workflow_status", "workflow_list_runs", "workflow_events"}
DESTRUCTIVE = {"workflow_start", "workflow_approve", "workflow_deny", "workflow_cancel"}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_describes_what_it_takes_and_gives_and_is_documented(tool: Tool) -> None:
    for schema in (tool.input_schema(), tool.output_schema()):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
    section = PAGE.partition(f"### `{tool.name}`")[2].partition("### ")[0]
    assert {name for name in tool.takes.model_fields if f"`{name}`" not in section} == set()


def test_the_hints_are_those_of_what_tools_do() -> None:
    assert {tool.name for tool in TOOLS if tool.read_only} == READ_ONLY
    assert {tool.name for tool in TOOLS if tool.destructive} == DESTRUCTIVE
    assert {tool.name for tool in TOOLS if not tool.idempotent} == {"workflow_start"}


def test_no_tool_names_approvers_makes_links_or_skips_a_gate() -> None:
    taken = {name for tool in TOOLS for name in tool.takes.model_fields}
    assert {"approvers", "by", "user", "actor", "as_user", "token", "force", "skip"} & taken == set()


def test_every_flow_of_the_guide_is_valid() -> None:
    flows = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(flows) >= 3
    for text in flows:
        check_flow(read(text).data, tools=Catalogue(Registry.with_builtins()))


def test_a_quota_fills_up_again_and_is_each_callers_own() -> None:
    now = [0.0]
    quota = Quota(2, clock=lambda: now[0])
    robo, other = Principal("robo", Kind.AGENT), Principal("other", Kind.AGENT)
    quota.take(robo)
    quota.take(robo)
    quota.take(other)
    with pytest.raises(Refused, match="robo has begun 2 things within a minute") as refused:
        quota.take(robo)
    assert refused.value.code == "too-many"
    now[0] = 30.0
    quota.take(robo)
    with pytest.raises(Refused):
        quota.take(robo)


def test_large_values_are_cut_and_small_ones_are_not() -> None:
    assert bounded({"a": [1, "x"]}) == {"a": [1, "x"]}
    assert bounded("x" * 20_000) == {"cut": True, "bytes": 20_002, "begins": '"' + "x" * 999}
    assert bounded_text("short") == "short"
    assert bounded_text("x" * 3_000).endswith("… (3,000 characters)")


def test_errors_say_what_an_agent_needs_to_mend_them() -> None:
    fault = Fault("unknown-step", "there is no step `b`", "steps.a.next", 3, 9, "did you mean `c`?")
    assert told(InvalidFlow((fault,))) == {
        "code": "invalid-flow",
        "message": "the flow has 1 fault; nothing was done",
        "faults": [
            {
                "code": "unknown-step",
                "message": "there is no step `b`",
                "path": "steps.a.next",
                "line": 3,
                "column": 9,
                "hint": "did you mean `c`?",
            }
        ],
    }
    said = told(NotConfirmed("the request Start", ("0" * 26,), 5.0))
    assert (said["code"], said["ids"]) == ("not-confirmed", ["0" * 26])


def test_every_argument_that_is_wrong_is_named() -> None:
    with pytest.raises(ValidationError) as wrong:
        Start.model_validate({"flow": "a\x00b", "tags": ["", 3], "inputs": {}})
    found = {fault.path: fault for fault in bad_arguments(Start, wrong.value).faults}
    assert set(found) == {"flow", "tags[0]", "tags[1]", "inputs"}
    assert found["flow"].message == "holds a NUL character"
    assert found["inputs"].hint == "did you mean input?"


class Clock:
    """A clock that goes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def policy(tmp_path: Path, clock: Clock) -> PolicyFile:
    path = tmp_path / "people.toml"
    path.write_text(f'[users.robo]\nkind = "agent"\nallow = []\ntokens = ["{hash_of("wfc_robo")}"]\n')
    return PolicyFile(path, clock=clock)


def test_the_caller_is_whom_the_token_stands_for_as_long_as_it_does(
    policy: PolicyFile, clock: Clock, tmp_path: Path
) -> None:
    caller = Caller(Settings(token="wfc_robo"), policy)  # noqa: S106 - for tests
    assert caller.principal() == Principal("robo", Kind.AGENT)
    (tmp_path / "people.toml").write_text('[users.robo]\nkind = "agent"\nallow = []\ntokens = []\n')
    clock.now = 60.0
    with pytest.raises(TokenGone, match="stands for nobody any more"):
        caller.principal()


def test_without_a_policy_the_caller_is_always_an_agent() -> None:
    assert Caller(Settings(user="ann"), Everybody()).principal() == Principal("ann", Kind.AGENT)


def test_a_caller_that_cannot_be_named_is_told_at_once(policy: PolicyFile) -> None:
    with pytest.raises(InvalidSettings, match="is not set; give it as WFCELERY_TOKEN"):
        Caller(Settings(), policy)
    with pytest.raises(InvalidSettings, match="stands for nobody"):
        Caller(Settings(token="wfc_other"), policy)  # noqa: S106 - for tests
    with pytest.raises(InvalidSettings, match="there is no policy that knows it"):
        Caller(Settings(token="wfc_robo"), Everybody())  # noqa: S106 - same


def test_the_token_is_not_shown_by_repr() -> None:
    assert "wfc_robo" not in repr(Settings(token="wfc_robo"))  # noqa: S106 - for tests


def run(code: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_the_sdk_is_loaded_by_nobody_who_does_not_need_it() -> None:
    code = (
        "import sys, wfcelery, wfcelery.cli.commands, wfcelery.cli.mcp, wfcelery.web.app, wfcelery.mcp.table;"
        "print([name for name in ('mcp', 'mcp_types') if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_ctrl_c_ends_it_though_its_client_says_nothing(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    given = {"WFCELERY_BROKER_URL": "redis://127.0.0.1:1/0", "WFCELERY_SECRET_KEY": "s" * 32}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "wfcelery", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=given | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "wfcelery"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT


def test_without_the_extra_there_is_one_clear_error(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from wfcelery.cli import answer; sys.exit(answer(['mcp']))"
    command = [sys.executable, "-W", "ignore", "-c", code]
    said = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)}
    )
    assert (said.returncode, said.stdout) == (5, "")
    missing = "wfcelery: MCP is out of reach: it is not installed; `pip install 'wfcelery[mcp]'` does that\n"
    assert said.stderr == missing
