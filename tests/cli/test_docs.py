"""Every command, option, setting and exit code is in docs/cli.md; every command shows examples."""

from __future__ import annotations

import re

import click
import pytest

from tests.cli.calling import ROOT
from wfcelery.cli import failures
from wfcelery.cli.commands import COMMANDS, cli
from wfcelery.cli.options import Command
from wfcelery.settings import NAMES

PAGE = (ROOT / "docs" / "cli.md").read_text()


def command(name: str) -> Command:
    found = cli.get_command(click.Context(cli), name)
    assert isinstance(found, Command)
    return found


def section(name: str) -> str:
    found = re.search(rf"^## `wfcelery {name}`\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/cli.md has no section on {name}"
    return found[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented_with_all_its_options(name: str) -> None:
    everywhere = {"--debug", "-h", "--help", "-o", "--output"}
    options = {
        spelling for each in command(name).params for spelling in each.opts if spelling.startswith("-")
    }
    missing = {each for each in options - everywhere if f"`{each}" not in section(name)}
    assert missing == set()
    assert all(f"`{each}`" in PAGE or f"`{each}" in PAGE for each in everywhere)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_examples_and_the_line_that_the_list_shows(name: str) -> None:
    examples = command(name).examples
    assert [line for line in examples if f"wfcelery {name}" not in line] == []
    assert len(examples) >= 2
    assert (command(name).help or "").splitlines()[0] == COMMANDS[name][1]


def test_no_section_tells_of_a_command_that_is_not_there() -> None:
    assert re.findall(r"^## `wfcelery ([\w-]+)`", PAGE, flags=re.MULTILINE) == list(COMMANDS)


def test_every_setting_is_documented() -> None:
    missing = [name for name in NAMES if f"`WFCELERY_{name.upper()}` | `{name}`" not in PAGE]
    assert missing == []


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, int)}
    assert codes == {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)}
