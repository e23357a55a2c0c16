"""The policy file: read again when it changes; nobody may do anything while it cannot be used."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest

from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidPolicy
from wfcelery.rights.authority import confirmed
from wfcelery.rights.permission import Resource
from wfcelery.rights.policy import PolicyFile, read_policy
from wfcelery.rights.token import hash_of

READS = '[users.ann]\nallow = ["read"]\n'
NOTHING = "[users.ann]\nallow = []\n"
ANN = Principal("ann")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "people.toml"
    path.write_text(READS)
    return path


def reads(policy: PolicyFile) -> bool:
    return policy.allows(ANN, "read", Resource())


def test_a_right_that_is_taken_away_is_gone_and_comes_back(path: Path, clock: Clock) -> None:
    policy = PolicyFile(path, clock=clock)
    assert reads(policy)
    path.write_text(NOTHING)
    clock.now += 1
    assert not reads(policy)
    path.write_text(READS)
    clock.now += 1
    assert reads(policy)


def test_the_file_is_looked_at_at_most_once_a_second(path: Path, clock: Clock) -> None:
    policy = PolicyFile(path, clock=clock)
    path.write_text(NOTHING)
    clock.now += 0.99
    assert reads(policy)
    clock.now += 0.01
    assert not reads(policy)


def test_a_change_that_leaves_time_size_and_inode_as_they_were_is_seen_while_it_is_young(
    path: Path, clock: Clock
) -> None:
    before = path.stat()
    policy = PolicyFile(path, clock=clock)
    path.write_text(READS.replace("read", "sign"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    clock.now += 1
    assert not reads(policy)


def test_a_file_that_is_put_in_the_place_of_another_is_read(path: Path, clock: Clock) -> None:
    policy = PolicyFile(path, clock=clock)
    other = path.with_suffix(".new")
    other.write_text(NOTHING)
    other.rename(path)
    clock.now += 1
    assert not reads(policy)


@pytest.mark.parametrize("text", ["x = ]", '[users.ann]\nalow = ["read"]\n', None])
def test_while_the_file_cannot_be_used_everything_is_refused_and_that_is_logged_once(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    path.write_text(READS + f'tokens = ["{hash_of("t")}"]\nnotify = ["json://x"]\n')
    policy = PolicyFile(path, clock=clock)
    assert policy.by_token("t") == ANN
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    for _ in range(3):
        clock.now += 1
        assert not reads(policy)
    assert (policy.by_token("t"), policy.principal("ann"), policy.addresses("ann")) == (None, None, ())
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "nobody is allowed anything" in caplog.text
    path.write_text(READS)
    clock.now += 1
    assert reads(policy)
    assert caplog.records[-1].getMessage() == f"policy {path} is good again"
    assert len(caplog.records) == 2


def test_a_folder_in_the_place_of_the_file_allows_nothing(path: Path, clock: Clock) -> None:
    policy = PolicyFile(path, clock=clock)
    path.unlink()
    path.mkdir()
    clock.now += 1
    assert not reads(policy)


def test_a_file_that_is_not_there_at_first_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        PolicyFile(tmp_path / "no.toml")
    said = "there is no such file; `wfcelery policy init` prints one to begin with"
    assert str(caught.value) == f"policy {tmp_path / 'no.toml'}: {said}"


def test_what_is_no_file_of_text_is_refused_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"[users.ann]\nname = '\xff'\n")
    (tmp_path / "long").write_bytes(b"#" * (1024 * 1024 + 1))
    faults = {}
    for name in ("pipe", "bytes", "long", "."):
        with pytest.raises(InvalidPolicy) as caught:
            read_policy(tmp_path / name)
        faults[name] = caught.value.faults
    assert faults == {
        "pipe": ("is not a file",),
        "bytes": ("is not UTF-8: byte 21 cannot be read",),
        "long": ("is longer than 1048576 bytes; it cannot be a policy",),
        ".": ("is not a file",),
    }


def test_threads_that_ask_while_the_file_changes_get_one_of_its_versions(path: Path) -> None:
    """Every version gives exactly one of two rights: an answer from a mixture would give both or none."""
    versions = ('[users.ann]\nallow = ["read"]\n', '[users.ann]\nallow = ["start"]\n')
    path.write_text(versions[0])
    clock = Clock()
    policy = PolicyFile(path, clock=clock)
    seen: set[tuple[bool, bool]] = set()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            people = policy.people()
            seen.add((people.allows(ANN, "read", Resource()), people.allows(ANN, "start", Resource())))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    other = path.with_suffix(".new")
    for number in range(200):
        other.write_text(versions[number % 2])
        other.replace(path)
        clock.now += 1
        policy.people()
    stop.set()
    for thread in threads:
        thread.join()
    assert seen == {(True, False), (False, True)}
    assert policy.allows(ANN, "start", Resource())


def test_what_the_file_says_of_somebody_counts_and_an_agent_stays_one(path: Path) -> None:
    path.write_text('[users.ann]\ngroups = ["fin"]\n[groups.fin]\n[users.bot]\nkind = "agent"\n')
    policy = PolicyFile(path)
    assert confirmed(policy, Principal("ann", Kind.PERSON, ("boss",))) == Principal(
        "ann", Kind.PERSON, ("fin",)
    )
    assert confirmed(policy, Principal("ann", Kind.AGENT)) == Principal("ann", Kind.AGENT, ("fin",))
    assert confirmed(policy, Principal("bot", Kind.PERSON)).kind is Kind.AGENT


def test_the_policy_shows_nothing_but_its_path(path: Path) -> None:
    assert repr(PolicyFile(path)) == f"PolicyFile('{path}')"
