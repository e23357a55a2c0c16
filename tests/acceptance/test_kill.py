"""`wfcelery run` is killed twenty times with SIGKILL in the midst of its work, and resumed each time."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import ROOT, WFCELERY, environment, process
from wfcelery.cli.database import reading
from wfcelery.settings import Settings
from wfcelery.store import views

KILLS = 20
FLOW = """
name: ledger
start: c1
steps:
  c1: {tool: act, next: c2}
  c2: {tool: act, next: c3}
  c3: {tool: act, next: c4}
  c4: {tool: act, next: c5}
  c5: {tool: act, parallel: [p1, p2, p3, p4], join: meet}
  p1: {tool: act, args: {value: 1}}
  p2: {tool: act, args: {value: 2}}
  p3: {tool: act, args: {value: 3}}
  p4: {tool: act, args: {value: 4}}
  meet:
    tool: act
    args: {value: "{{result.p1 + result.p2 + result.p3 + result.p4}}"}
    next: trip
  trip: {tool: stumble, retry: {max_attempts: 2, backoff: [0.05]}, next: each}
  each:
    foreach: {items: [10, 20, 30, 40], tool: act, args: {value: "{{item}}"}, concurrency: 2}
    next: last
  last: {tool: finish, args: {value: ["{{steps.meet.result}}", "{{steps.each.result}}"]}, done: true}
"""
EFFECTS = {*("c1", "c2", "c3", "c4", "c5", "p1", "p2", "p3", "p4", "meet", "trip", "last")} | {
    f"each[{item}]" for item in range(4)
}


@pytest.mark.timeout(300)
def test_every_effect_is_there_and_repeated_only_where_it_was_under_way(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    story = Story(tmp_path, random.Random(seed))  # noqa: S311 - dice, no secrets
    while story.kills < KILLS:
        story.live_and_die()
    said = story.live()
    lines = story.lines()
    assert story.is_whole(), seed
    assert said["status"] == "completed", seed
    assert said["output"] == [10, [10, 20, 30, 40]], seed
    assert {name(line) for line in lines if line["what"] == "end"} == EFFECTS, seed
    assert story.repeated_after_their_result == [], seed
    assert without_reason(lines, story.killed) == [], seed
    keys = defaultdict(set)
    for line in lines:
        keys[line["key"]].add(name(line))
    assert sorted(keys.values(), key=str) == sorted(({each} for each in EFFECTS), key=str), seed
    check = process("check", cwd=tmp_path)
    assert (check.code, check.out, check.err) == (0, "", "everything agrees\n"), seed


class Story:
    """The lives of one run. A life ends by SIGKILL as soon as the ledger has grown by a few lines."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.folder = folder
        self.dice = dice
        self.kills = 0
        self.killed: set[int] = set()
        self.repeated_after_their_result: list[str] = []
        self._ledger = folder / "ledger.jsonl"
        self._ledger.touch()
        self._hold = folder / "ledger.jsonl.hold"
        self._hold.touch()
        self._settings = Settings(database_url=f"sqlite:///{folder}/.wfcelery/wfcelery.db")
        self._run_id: str | None = None
        (folder / "ledger.yaml").write_text(FLOW)

    def live_and_die(self) -> None:
        """Start or resume the run, wait for signs of life, and kill it."""
        done, before = self._done(), len(self.lines())
        # Near the end there may be only one more sign: the last step begins, and is held.
        wanted = self.dice.choice([1, 2, 3, 5]) if len(EFFECTS) - len(done) > 6 else 1
        life = self._start()
        while len(self.lines()) < before + wanted:
            assert self._is_alive(life), life.communicate()
        life.kill()
        life.communicate()
        assert life.returncode == -signal.SIGKILL, "it ended before it was killed"
        self.kills += 1
        assert self._status() == "running", "the kill did not land in flight"
        assert self.is_whole(), "the kill tore a line"
        self.killed.add(life.pid)
        self._look_back(done, before)

    def live(self) -> dict[str, Any]:
        """Resume the run and let it live to its end."""
        self._hold.unlink()
        done, before = self._done(), len(self.lines())
        life = self._start()
        out, err = life.communicate(timeout=60)
        assert life.returncode == 0, err
        self._look_back(done, before)
        run: dict[str, Any] = json.loads(out)
        return run

    def lines(self) -> list[dict[str, Any]]:
        """Read the whole lines of the ledger: a reader can meet the last one half written."""
        whole, _, _ = self._ledger.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def is_whole(self) -> bool:
        """Tell whether the ledger ends with a whole line, as it must once nobody writes."""
        return self._ledger.read_text().endswith("\n")

    def _start(self) -> subprocess.Popen[str]:
        which = ["ledger.yaml"] if self._run_id is None else ["--resume", self._run_id]
        return subprocess.Popen(
            [WFCELERY, "run", *which, "--tools", "tests.acceptance.ledger", "-o", "json", "--workers", "3"],
            cwd=self.folder,
            env=environment(WFCELERY_TEST_LEDGER=str(self._ledger), PYTHONPATH=str(ROOT)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _is_alive(self, life: subprocess.Popen[str]) -> bool:
        try:
            life.wait(0.001)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _done(self) -> set[str]:
        """Name what the tables know to be done; find out the run's id on the way."""
        if self.kills == 0:
            return set()
        with reading(self._settings) as conn:
            if self._run_id is None:
                self._run_id = str(views.runs(conn)[0]["id"])
            run: Any = views.run(conn, self._run_id)
        return {name(step) for step in run["steps"] if step["status"] == "done"}

    def _status(self) -> str:
        with reading(self._settings) as conn:
            return str(views.runs(conn)[0]["status"])

    def _look_back(self, done: set[str], before: int) -> None:
        """Note what was begun again although its result had been recorded before this life began."""
        begun = {name(line) for line in self.lines()[before:] if line["what"] == "begin"}
        self.repeated_after_their_result += sorted(begun & done)


def without_reason(lines: list[dict[str, Any]], killed: set[int]) -> list[dict[str, Any]]:
    """List the beginnings after another of the same step that neither failed nor died with its process."""
    found = []
    earlier: dict[str, dict[str, Any]] = {}
    failed: set[tuple[str, int]] = set()
    for line in lines:
        if line["what"] == "fail":
            failed.add((line["key"], line["fence"]))
        if line["what"] != "begin":
            continue
        last = earlier.get(line["key"])
        if last is not None:
            died = last["pid"] in killed and last["pid"] != line["pid"]
            if not died and (last["key"], last["fence"]) not in failed:
                found.append(line)
        earlier[line["key"]] = line
    return found


def name(of: dict[str, Any]) -> str:
    step = of.get("step") or of["name"]
    return step if of["item"] in (None, -1) else f"{step}[{of['item']}]"
