"""The supervisor over plain little programs, as a process that gets real signals."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from wfcelery.shell.supervisor import folder, valkey

SUPERVISED = Path(__file__).with_name("supervised.py")
# Ends when it is asked to, and says so.
POLITE = 'trap "echo bye; exit 0" TERM; echo hello; while :; do sleep 60 & wait $!; done'
STUBBORN = 'trap "" TERM; echo hello; while :; do sleep 60 & wait $!; done'
# Holds the pipe `alive` open, and so does its child: the reader sees its end when both are gone.
HOLDING = "exec 9>alive; echo hello; sleep 600 & wait"


class Supervised:
    """The process, and the lines that it has said so far."""

    def __init__(self, here: Path, *programs: list[object], quiet: bool = False, ready_s: float = 30) -> None:
        wishes = {"programs": programs, "quiet": quiet, "ready_s": ready_s}
        self.process = subprocess.Popen(
            [sys.executable, SUPERVISED, str(here), json.dumps(wishes)],
            cwd=here,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, *wanted: str) -> list[str]:
        """Read until every one of these lines was said, in any order."""
        assert self.process.stdout is not None
        missing, said = list(wanted), []
        for line in self.process.stdout:
            said.append(line.rstrip("\n"))
            if said[-1] in missing:
                missing.remove(said[-1])
            if not missing:
                return said
        raise AssertionError(said)

    def stop(self, *numbers: signal.Signals) -> list[str]:
        """Send signals, and give everything that is said up to the end."""
        for number in numbers:
            self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=60)
        return out.splitlines()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """A folder whose system is gone in the end."""
    yield tmp_path
    with folder.locked(tmp_path):
        pass


def test_programs_are_stopped_in_reverse_order_each_when_the_one_after_it_is_gone(here: Path) -> None:
    system = Supervised(here, ["one", POLITE], ["second", POLITE], ["three", POLITE])
    said = system.until("up     | started", "one    | hello", "second | hello", "three  | hello")
    assert said[0] == "up     | started"
    assert system.stop(signal.SIGTERM) == [
        "up     | stopping",
        "three  | bye",
        "second | bye",
        "one    | bye",
        "up     | TOLD",
    ]
    assert system.process.returncode == 0


def test_a_program_waits_until_those_before_it_are_ready(here: Path) -> None:
    slow = f"sleep 0.3; touch ready; {POLITE}"
    quick = f"test -e ready && echo after; {POLITE}"
    system = Supervised(here, ["slow", slow, 10, "ready"], ["quick", quick])
    system.until("quick | after", "quick | hello")
    assert system.stop(signal.SIGTERM)[-1] == "up    | TOLD"


def test_a_program_that_never_gets_ready_ends_the_start(here: Path) -> None:
    system = Supervised(here, ["slow", POLITE, 10, "never"], ["other", POLITE], ready_s=0.5)
    assert system.stop() == ["slow  | hello", "up    | slow is out of reach: it does not answer after 0.5 s"]


def test_a_start_that_waits_can_be_stopped(here: Path) -> None:
    system = Supervised(here, ["slow", POLITE, 10, "never"], ["other", POLITE])
    system.until("slow  | hello")
    assert system.stop(signal.SIGTERM) == ["up    | stopping", "slow  | bye", "up    | TOLD"]


def test_what_dies_is_started_again_ever_later(here: Path) -> None:
    system = Supervised(here, ["steady", POLITE], ["flaky", "echo oops >&2; exit 3"])
    again = "up     | flaky ended with exit code 3; it is started again in"
    said = system.until(f"{again} 0.05 s", f"{again} 0.1 s", *[f"{again} 0.2 s"] * 2)
    assert [line for line in said if not line.startswith(("steady", "up     | started"))] == [
        "flaky  | oops",
        f"{again} 0.05 s",
        "flaky  | oops",
        f"{again} 0.1 s",
        "flaky  | oops",
        f"{again} 0.2 s",
        "flaky  | oops",
        f"{again} 0.2 s",
    ]
    assert system.stop(signal.SIGTERM)[-2:] == ["steady | bye", "up     | TOLD"]


def test_a_program_that_was_killed_leaves_nobody_behind_when_it_is_started_again(here: Path) -> None:
    os.mkfifo(here / "alive")
    only_the_first_holds = "test -e pid || { exec 9>alive; echo $$ >pid; }; echo hello; sleep 600 & wait"
    system = Supervised(here, ["holder", only_the_first_holds])
    with (here / "alive").open("rb") as alive:
        system.until("holder | hello")
        os.kill(int((here / "pid").read_text()), signal.SIGKILL)
        system.until("up     | holder was killed by SIGKILL; it is started again in 0.05 s", "holder | hello")
        assert alive.read() == b""
    system.stop(signal.SIGTERM)


def test_in_quiet_only_the_dead_speak(here: Path) -> None:
    system = Supervised(here, ["steady", POLITE], ["flaky", "echo last words; exit 1"], quiet=True)
    again = "up     | flaky ended with exit code 1; it is started again in"
    assert system.until(f"{again} 0.1 s")[:5] == [
        "up     | started",
        "flaky  | last words",
        f"{again} 0.05 s",
        "flaky  | last words",
        f"{again} 0.1 s",
    ]
    assert "steady | bye" not in system.stop(signal.SIGTERM)


def test_lines_of_no_interest_are_left_out(here: Path) -> None:
    system = Supervised(here, ["dull", f"echo nobody cares about this; {POLITE}"])
    assert system.until("dull | hello") == ["up   | started", "dull | hello"]
    system.stop(signal.SIGTERM)


def test_ctrl_c_stops_and_says_what_a_second_one_does(here: Path) -> None:
    system = Supervised(here, ["one", POLITE])
    system.until("one | hello")
    assert system.stop(signal.SIGINT) == [
        "up  | stopping (Ctrl-C again kills)",
        "one | bye",
        "up  | INTERRUPTED",
    ]


def test_a_second_ctrl_c_kills(here: Path) -> None:
    system = Supervised(here, ["one", POLITE], ["deaf", STUBBORN, 600])
    system.until("one  | hello", "deaf | hello")
    system.process.send_signal(signal.SIGINT)
    system.until("up   | stopping (Ctrl-C again kills)")
    assert system.stop(signal.SIGINT) == [
        "up   | interrupted again: killing everything",
        "up   | INTERRUPTED",
    ]


def test_who_does_not_stop_in_time_is_killed(here: Path) -> None:
    system = Supervised(here, ["one", POLITE], ["deaf", STUBBORN, 0.2])
    system.until("one  | hello", "deaf | hello")
    assert system.stop(signal.SIGTERM) == [
        "up   | stopping",
        "up   | deaf did not stop in 0.2 s: killing it",
        "one  | bye",
        "up   | TOLD",
    ]


def test_when_nobody_reads_the_log_the_system_stops(here: Path) -> None:
    system = Supervised(
        here, ["one", f"touch begun; {POLITE}"], ["talker", "while :; do echo more; sleep 0.05; done"]
    )
    system.until("talker | more")
    assert system.process.stdout is not None
    system.process.stdout.close()
    assert system.process.wait(60) == 0


def test_a_supervisor_that_is_killed_takes_everybody_with_it(here: Path) -> None:
    os.mkfifo(here / "alive")
    system = Supervised(here, ["holder", HOLDING], ["deaf", f"exec 9>alive; {STUBBORN}"])
    with (here / "alive").open("rb") as alive:
        system.until("holder | hello", "deaf   | hello")
        system.process.kill()
        system.process.wait()
        # The lock is free when everybody is gone, and not before.
        with folder.locked(here):
            fcntl.fcntl(alive, fcntl.F_SETFL, os.O_NONBLOCK)
            assert alive.read() == b""
    system.stop()


def test_valkey_answers_on_its_socket_keeps_nothing_and_is_gone_afterwards(here: Path) -> None:
    system = Supervised(here, ["valkey", ""], ["next", POLITE])
    system.until("next   | hello")
    path = here / "valkey.sock"
    with redis.Redis(unix_socket_path=str(path)) as client:
        client.set("key", "value")
        assert client.config_get("save", "appendonly") == {"save": "", "appendonly": "no"}
    assert path.stat().st_mode & 0o777 == 0o700
    system.stop(signal.SIGTERM)
    assert (valkey.answers(path), list(here.glob("*.sock")), list(here.glob("*.rdb"))) == (False, [], [])
