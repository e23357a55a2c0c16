"""No way around a gate: every public operation from every state, through HTTP, the command line and Python.

Nobody approves in these games who may: whatever the starter, who wrote the flow and has every right, somebody
who is no approver, an approver's agent and an agent with every right do, the tool behind the gate is not
reached. After each operation the run gets another, drawn by dice that fall the same way each time.
"""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.system.system import SECRET
from tests.web import moves
from tests.web.gated import STATES, TOOLS, gated_house, gated_site, idle, made_ready, spots
from tests.web.moves import CLI, DECIDERS, HTTP, PYTHON, Move, Player
from tests.web.server import House, Site
from wfcelery import Workflows
from wfcelery.cli.commands import COMMANDS, LOCAL
from wfcelery.core.messages import Principal
from wfcelery.rights import Permission
from wfcelery.web.doors import all_doors
from wfcelery.workflows.run import Run

THREADS = 8
"""Moves on different runs are played beside each other."""
READING = {
    *("close", "events", "find", "from_settings", "get", "links", "list", "run", "status", "tools", "wait"),
    *("Run.created", "Run.get", "Run.id", "Run.status", "Run.wait"),
}
"""What changes nothing: listed, so that nobody adds to it unseen."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with gated_house(tmp_path_factory.mktemp("matrix")) as made:
        yield made


@pytest.fixture(scope="module")
def site(house: House) -> Site:
    return gated_site(house)


@pytest.fixture(scope="module")
def players(site: Site) -> Iterator[Mapping[str, Player]]:
    made = {name: Player(site, name) for name in DECIDERS}
    yield made
    for player in made.values():
        player.close()


@pytest.fixture
def folder(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which commands reach the system."""
    for name in [name for name in os.environ if name.startswith("WFCELERY_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "DATABASE_URL": house.system.database_url,
        "BROKER_URL": house.system.broker_url,
        "SECRET_KEY": SECRET,
        "POLICY": str(house.policy),
        "TOOLS": ",".join(TOOLS),
    }.items():
        monkeypatch.setenv(f"WFCELERY_{name}", value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(house: House, state: str, firsts: list[Move], threads: int = THREADS) -> None:
    """Play each move on a run of its own, and then another on each, and look what has become of them."""
    system = house.system
    runs = spots(house, state, len(firsts))
    played: dict[str, str] = {}

    def round_of(drawn: list[Move]) -> None:
        for (name, _), spot in zip(drawn, runs, strict=True):
            played[spot.run] = f"{played.get(spot.run, state)}, {name}"
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(move, spot) for (_, move), spot in zip(drawn, runs, strict=True)]:
                done.result()
        system.ledger.gate.unlink(missing_ok=True)
        idle(system)
        found = made_ready(system)
        assert found == [], [played.get(str(each[0]), "another run") for each in found]

    round_of(firsts)
    dice = random.Random(state)  # noqa: S311 - so that a failure comes again
    round_of([dice.choice(firsts) for _ in firsts])


def test_every_door_that_changes_something_is_played() -> None:
    assert set(HTTP) == {door.name for door in all_doors() if door.method not in ("GET", "HEAD", "OPTIONS")}


def test_every_command_that_asks_for_more_than_reading_is_played() -> None:
    asking = {name for name, (_, _, need) in COMMANDS.items() if need not in (Permission.READ, LOCAL)}
    assert set(CLI) == asking


def test_every_method_that_tells_runs_something_is_played() -> None:
    own = {name for name, _ in inspect.getmembers(Workflows) if not name.startswith("_")}
    of_a_run = {f"Run.{name}" for name, _ in inspect.getmembers(Run) if not name.startswith("_")}
    assert set(PYTHON) | READING == own | of_a_run
    assert set(PYTHON) & READING == set()


@pytest.mark.parametrize("state", STATES)
def test_nothing_over_http_leads_around_a_gate(
    house: House, players: Mapping[str, Player], state: str
) -> None:
    play(house, state, list(moves.http_moves(players)))


@pytest.mark.parametrize("state", STATES)
def test_nothing_on_the_command_line_leads_around_a_gate(
    house: House, folder: Path, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    play(house, state, list(moves.cli_moves(capsys, folder)), threads=1)


@pytest.mark.parametrize("state", STATES)
def test_nothing_in_python_leads_around_a_gate(house: House, state: str) -> None:
    play(house, state, list(moves.python_moves(house.system.workflows)))


def test_an_approval_is_seen_where_these_tests_look(house: House) -> None:
    [spot] = spots(house, "open", 1)
    assert made_ready(house.system) == []
    house.system.workflows.decide(spot.run, "review", approve=True, by=Principal("ann"))
    idle(house.system)
    assert {each[0] for each in made_ready(house.system)} == {spot.run}
    assert made_ready(house.system, [spot.run]) == []
