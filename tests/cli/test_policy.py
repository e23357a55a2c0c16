"""`wfcelery policy`: check, token, who, init. Nothing is ever written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.calling import call, process
from wfcelery.core.messages import Kind, Principal
from wfcelery.rights.policy import read_policy
from wfcelery.rights.policy_text import parse_policy
from wfcelery.rights.token import hash_of

POLICY = """
[users.ann]
name = "Ann Example"
groups = ["finance"]
allow = ["start:order*", "payments.refund", "raed"]
notify = ["mailto://hush@example.org"]
tokens = [{hash = "HASH", kind = "agent", name = "ci"}]
[users.bot]
kind = "agent"
groups = ["finance"]
allow = ["admin"]
[users.eve]
[groups.finance]
allow = ["decide"]
""".replace("HASH", hash_of("t"))


@pytest.fixture
def policy(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = here / "people.toml"
    path.write_text(POLICY)
    monkeypatch.setenv("WFCELERY_POLICY", "people.toml")
    return path


def test_a_good_file_is_counted_and_permissions_that_are_not_ours_are_named(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "policy", "check")
    assert (said.code, said.out) == (0, "people.toml is good: 3 users, 1 group, 1 token, 0 channels\n")
    assert said.err.splitlines() == [
        "note: raed (of ann) is taken for a permission of a tool; did you mean `read`?",
        "note: payments.refund (of ann) is taken for a permission of a tool",
    ]
    as_json = call(capsys, "policy", "check", str(policy), "-o", "json")
    assert json.loads(as_json.out)["users"] == 3
    assert as_json.err == ""


def test_a_file_that_everybody_can_write_to_is_told_of(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy.chmod(0o666)
    assert "everybody on this machine can write to people.toml" in call(capsys, "policy", "check").err


def test_every_fault_of_a_file_is_told_with_exit_code_2(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad.toml").write_text('[users.ann]\nalow = []\nkind = "x"\n')
    said = call(capsys, "policy", "check", "bad.toml")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "wfcelery: policy bad.toml has 2 faults:\n"
        "  users.ann.alow: is not known; did you mean `allow`?\n"
        "  users.ann.kind: must be person or agent\n"
    )


def test_without_a_file_to_check_one_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "policy", "check")
    assert said.code == 2
    assert said.err == "wfcelery: setting policy: is not set; name a FILE, or set WFCELERY_POLICY\n"


@pytest.mark.parametrize(
    ("args", "kind"),
    [((), Kind.PERSON), (("--name", "laptop"), Kind.PERSON), (("--agent", "--name", "ci"), Kind.AGENT)],
)
def test_a_new_token_works_once_its_line_is_in_the_file(
    here: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], kind: Kind
) -> None:
    said = call(capsys, "policy", "token", "ann", *args)
    token, line = said.out.strip(), said.err.splitlines()[1].strip()
    assert said.code == 0
    assert token not in said.err
    people = parse_policy(f"[users.ann]\ntokens = [{line}]\n", "x")
    assert people.by_token(token) == Principal("ann", kind)
    assert list(here.iterdir()) == []


def test_a_token_as_json_comes_with_its_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(call(capsys, "policy", "token", "ann", "-o", "json").out)
    assert made["line"] == f'"{hash_of(made["token"])}"'


def test_a_name_that_would_break_the_line_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "policy", "token", "ann", "--name", 'a", kind = "person').code == 2


def test_the_place_of_the_line_is_written_as_toml_wants_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = call(capsys, "policy", "token", "ann@example.org").err.splitlines()[0]
    assert place == 'Add to `tokens` of [users."ann@example.org"] in the policy file:'


def test_who_says_what_somebody_may_do_and_shows_no_secret(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, "policy", "who", "ann")
    assert said.code == 0
    assert said.out == (
        "ann (Ann Example), person\n"
        "  groups  finance\n"
        "  may     start:order*, payments.refund, raed, decide\n"
        "  tokens  ci (agent)\n"
        "  told    1 address\n"
    )
    assert call(capsys, "policy", "who", "bot").out.splitlines()[2] == "  may     admin (but not decide)"
    assert call(capsys, "policy", "who", "eve").out.splitlines()[2] == "  may     nothing"
    found = json.loads(call(capsys, "policy", "who", "ann", "--file", str(policy), "-o", "json").out)
    assert found["tokens"] == [{"name": "ci", "kind": "agent"}]
    assert "hush" not in json.dumps(found)
    assert "sha256" not in json.dumps(found)


def test_whom_the_file_does_not_name_is_not_found(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "policy", "who", "an")
    assert said.code == 3
    assert said.err == (
        "wfcelery: no user an; people.toml does not name it, so it may do nothing; did you mean `ann`?\n"
    )


def test_the_sample_is_a_good_policy(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = call(capsys, "policy", "init").out
    assert set(tomllib.loads(sample)) == {"users", "groups", "everyone", "channels"}
    (here / "people.toml").write_text(sample)
    assert read_policy(here / "people.toml").members("finance") == ("ann",)
    assert call(capsys, "policy", "check", "people.toml").code == 0


def test_the_whole_way_works_as_a_process(tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(process("policy", "init", cwd=tmp_path).out)
    said = process("policy", "who", "assistant", cwd=tmp_path, WFCELERY_POLICY="people.toml")
    assert (said.code, said.out.splitlines()[0]) == (0, "assistant, agent")
    assert "Usage: wfcelery policy" in process("policy", "--help", cwd=tmp_path).out
