"""The command line as a whole: help, errors, exit codes, and what it loads."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import call, environment, process
from wfcelery import errors
from wfcelery.cli import failures
from wfcelery.core.faults import Fault

HEAVY = "{'sqlalchemy', 'celery', 'kombu', 'redis', 'alembic', 'pydantic', 'ruamel', 'jsonschema', 'psycopg'}"


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom wfcelery.cli import answer\ncode = answer(['--help'])\n"
        f"print(code, sorted({HEAVY} & set(sys.modules)))\n"
        "print([name for name in sys.modules if name.startswith(('wfcelery.core', 'wfcelery.store'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == ["0 []", "[]"]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "--version")
    assert (said.code, said.out) == (0, f"wfcelery {importlib.metadata.version('wfcelery')}\n")


def test_an_unknown_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "validte")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[-1] == "Error: no such command: validte; did you mean `validate`?"


def test_an_unknown_option_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "ps", "--statu", "failed")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[-1].startswith(
        "Error: No such option"
    )  # the rest differs by click's version


def test_an_unknown_setting_is_refused_before_anything_happens(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFCELERY_DATABASE", "x.db")
    said = call(capsys, "ps")
    assert (said.code, said.err) == (
        2,
        (
            "wfcelery: setting WFCELERY_DATABASE: is not known (in the environment); "
            "did you mean WFCELERY_DATABASE_URL?\n"
        ),
    )


@pytest.mark.parametrize(
    "command", [["ps"], ["show", "x"], ["events", "x"], ["check"], ["definitions"], ["graph", "x"]]
)
def test_commands_that_read_never_create_a_database(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    said = call(capsys, *command)
    assert (said.code, said.out, said.err) == (
        5,
        "",
        (
            "wfcelery: database .wfcelery/wfcelery.db is out of reach: there is no such file; "
            "`wfcelery run` makes it, --database names another\n"
        ),
    )
    assert list(here.iterdir()) == []


def test_a_database_without_our_tables_exits_5(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "empty.db").touch()
    said = call(capsys, "ps", "--database", "empty.db")
    assert (said.code, said.out) == (5, "")
    assert said.err == (
        "wfcelery: database empty.db is out of reach: it has no tables of wfcelery; "
        "`wfcelery run` makes them, --database names another\n"
    )


@pytest.mark.corrupts
def test_a_file_that_is_no_database_exits_5(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "text.db").write_text("not a database, but a text that is long enough to be looked at" * 20)
    said = call(capsys, "ps", "--database", "text.db")
    assert (said.code, said.out) == (5, "")
    assert said.err == "wfcelery: sqlite:///text.db is out of reach: file is not a database\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidFlow((Fault("cycle", "a → a"),)), 2),
        (errors.InvalidInput("x", "y"), 2),
        (errors.InvalidSettings("x", "y"), 2),
        (errors.ExpressionError("x", 1, "y"), 2),
        (errors.NotFound("run", "x"), 3),
        (errors.Refused("no"), 4),
        (errors.Refused("no", "not-found"), 3),
        (errors.Refused("no", "invalid-input"), 2),
        (errors.Refused("no", "conflict"), 4),
        (errors.LostLease(1), 4),
        (errors.NotReachable("x", "y"), 5),
        (errors.UnknownSchema("1", "2"), 5),
        (errors.StaleState("x", 1, 0), 5),
        (ZeroDivisionError(), 1),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert failures.exit_code(error) == code


def test_what_should_not_happen_is_told_without_a_traceback_unless_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert failures.tell(ZeroDivisionError("by zero"), debug=False) == 1
    assert capsys.readouterr().err == (
        "wfcelery: this should not have happened: ZeroDivisionError: by zero\n"
        "Run the same command with --debug to see where, and please report it.\n"
    )
    failures.tell(ZeroDivisionError("by zero"), debug=True)
    assert capsys.readouterr().err == (
        "ZeroDivisionError: by zero\nwfcelery: this should not have happened: ZeroDivisionError: by zero\n"
    )


@pytest.mark.parametrize("args", [["--debug", "show", "x"], ["show", "x", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(
    here: Path, capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    said = call(capsys, *args)
    assert (said.code, said.err.splitlines()[0]) == (5, "Traceback (most recent call last):")


def test_without_utf_8_output_is_still_written(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(
        "name: f\nstart: a\nsteps: {a: {parallel: [b, c], join: d}, b: {}, c: {}, d: {done: true}}\n"
    )
    said = process("graph", "f.yaml", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (said.code, said.out) == (
        0,
        "f\no a\n|- parallel -> o b\n`- parallel -> o c\no d  (done)\n",
    )
