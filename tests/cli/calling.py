"""Calling the command line: in this process where that is enough, as a real process where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wfcelery.cli import answer

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]
WFCELERY = str(Path(sys.executable).with_name("wfcelery"))


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *args: str) -> Said:
    """Answer a command in this process."""
    capsys.readouterr()
    code = answer(args)
    captured = capsys.readouterr()
    return Said(code, captured.out, captured.err)


def environment(**more: str) -> dict[str, str]:
    """Give an environment without settings of whoever runs the tests, in which compiled modules are kept."""
    left_out = ("WFCELERY_", "PYTHONDONTWRITEBYTECODE", "NO_COLOR", "COLUMNS", "LINES")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**inherited, "PYTHONIOENCODING": "utf-8", **more}


def process(*args: str, cwd: Path, **more: str) -> Said:
    """Answer a command in a process of its own, without a terminal."""
    done = subprocess.run(
        [WFCELERY, *args],
        cwd=cwd,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)
