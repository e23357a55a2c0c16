"""The core stays small: what it asks for is what was decided, and importing it takes no time."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {
    *("celery", "kombu", "packaging", "redis", "sqlalchemy", "alembic", "pydantic", "jsonschema"),
    *("ruamel.yaml", "itsdangerous", "cronsim", "click", "typing-extensions"),
}
"""What `pip install wfcelery` asks for, and nothing more."""
LARGEST_CORE = 45
"""Packages in all, with those that these ask for; 33 when this was written."""
EXTRAS = {
    "starlette",
    "uvicorn",
    "jinja2",
    "apprise",
    "mcp",
    "django",
    "flask",
    "psycopg",
    "flower",
}
QUICK_S = 0.15
TRIES = 7
IMPORT = """
import resource, sys
before = resource.getrusage(resource.RUSAGE_SELF)
import wfcelery
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
print(*sorted(sys.modules))
"""
HEAVY = {
    *("starlette", "uvicorn", "jinja2", "apprise", "mcp", "django", "flask", "celery", "kombu", "redis"),
    *("sqlalchemy", "alembic", "pydantic", "jsonschema", "click", "prometheus_client"),
}


def _asked(name: str) -> set[str]:
    """The packages that one asks for on this machine, without its extras."""
    own = PROJECT["dependencies"] if name == "wfcelery" else requires(name)
    wanted = [Requirement(text) for text in own or ()]
    return {
        _plain(each.name) for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_]+", "-", name).lower()


def test_the_core_asks_for_what_was_decided_and_nothing_more() -> None:
    assert _asked("wfcelery") == CORE


def test_no_extra_comes_with_the_core_by_a_detour() -> None:
    found, waiting = set[str](), ["wfcelery"]
    while waiting:
        fresh = _asked(waiting.pop()) - found
        found |= fresh
        waiting += fresh
    assert found & EXTRAS == set()
    assert len(found) <= LARGEST_CORE, sorted(found)


def test_every_other_package_is_behind_an_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    behind = {_plain(Requirement(text).name) for name in extras["all"] for text in _parts(extras, name)}
    assert behind - {"wfcelery"} >= EXTRAS
    assert behind & CORE == set()


def _parts(extras: dict[str, list[str]], wanted: str) -> list[str]:
    return [text for name in Requirement(wanted).extras for text in extras[name]]


def test_importing_the_package_is_quick_and_loads_nothing_that_is_not_needed_yet() -> None:
    # Time of the processor, and the best of several: other processes of this machine count for neither.
    times = []
    for _ in range(TRIES):
        command = [sys.executable, "-c", IMPORT]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        took, loaded = done.stdout.splitlines()
        assert HEAVY & set(loaded.split()) == set()
        times.append(float(took))
        if min(times) < QUICK_S:
            break
    assert min(times) < QUICK_S, times


def test_what_the_core_promises_works_where_no_extra_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(
        "name: greet\nstart: say\nsteps:\n  say: {tool: echo, args: {value: hello}, done: true}\n"
    )
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in sorted(EXTRAS))
    called = "sys.argv = ['wfcelery', 'run', 'greet.yaml']; from wfcelery.cli import main; main()"
    program = f"import sys; {blocked}; {called}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, '"hello"'), done.stderr
