"""The shape of the repository: which way imports point, what is public, how long a file may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import wfcelery

ROOT = Path(__file__).resolve().parents[1]
LONGEST_FILE = 400
PUBLIC = [
    "Context",
    "NoRetry",
    "Outcome",
    "Registry",
    "Run",
    "Tool",
    "ToolError",
    "WfceleryError",
    "Workflows",
    "tool",
]

# Spelt with classes of one character, so that this file does not find itself.
UNWELCOME = {
    "the address of a package registry": re.compile(r"pypi[.]org|pythonhosted[.]org|index-ur[l]|npmjs[.]org"),
    "a path on somebody's machine": re.compile(r"(?<![\w.])/(home|Users|root|work)/[\w.-]+"),
}


def test_imports_point_down() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    lint = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_no_module_is_too_long_to_read() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules("wfcelery")
    }
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_the_core_never_asks_what_time_it_is() -> None:
    asked = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules("wfcelery/core")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
        if isinstance(node.value, ast.Name | ast.Attribute)
        and ast.unparse(node.value).endswith(("datetime", "date"))
    }
    assert asked == set()


def test_the_public_names_are_these() -> None:
    assert sorted(getattr(wfcelery, "__all__", [])) == PUBLIC


def test_importing_the_package_loads_neither_sql_nor_celery() -> None:
    heavy = "{'sqlalchemy', 'celery', 'kombu', 'redis', 'alembic', 'click', 'pydantic'}"
    command = [sys.executable, "-c", f"import sys, wfcelery; print(sorted({heavy} & set(sys.modules)))"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_no_file_names_a_package_registry_or_somebodys_machine() -> None:
    found = [
        f"{path}:{number}: {what}: {line.strip()}"
        for path in tracked()
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), 1)
        for what, pattern in UNWELCOME.items()
        if pattern.search(line)
    ]
    assert found == []


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def tracked() -> list[str]:
    """The files of the repository that exist; untracked ones count, ignored ones do not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in listed if (ROOT / path).is_file()]
