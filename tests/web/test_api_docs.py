"""The examples of docs/api.md are executed, and give the answers that it shows."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.web.api_place import TOKENS, Client, policy, served, settings_for
from tests.workflows.system import System, eventually

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
EXAMPLES = re.findall(r"```sh\n(.*?)```\n\n```json\n(.*?)```", PAGE, re.DOTALL)
MARK = "-- next --"
ANY = "..."


def test_the_examples_give_the_answers_that_are_shown(
    valkey_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    broker = redis.Redis.from_url(valkey_url)
    broker.flushall()
    broker.close()
    broker_url = valkey_url.replace("unix://", "redis+socket://", 1)
    (tmp_path / "policy.toml").write_text(policy())
    settings = settings_for(broker_url, sqlite_url, policy=str(tmp_path / "policy.toml"))
    with System(broker_url, sqlite_url), served(settings) as url:
        ann = Client(url, {"Authorization": f"Bearer {TOKENS['ann']}"})
        eventually(lambda: ann.http.get("/api/v1/runs").status_code == 200)
        # Between the decision and the next example the run has time to end.
        decided = next(place for place, (command, _) in enumerate(EXAMPLES) if "/gates/" in command) + 1
        first, rest = EXAMPLES[:decided], EXAMPLES[decided:]
        answers = _executed(first, url, "")
        run_id = ann.get("/runs")["items"][0]["id"]
        eventually(lambda: ann.get(f"/runs/{run_id}")["status"] == "completed")
        answers += _executed(rest, url, f"RUN={run_id}\n")
        ann.close()
    for (command, shown), answer in zip(EXAMPLES, answers, strict=True):
        assert _agrees(json.loads(shown), json.loads(answer)), (command, answer)


def test_every_operation_is_told_of() -> None:
    for word in (
        "approvals",
        "gates",
        "stream",
        "events",
        "explain",
        "steps",
        "signals",
        "validate",
        "system",
    ):
        assert word in PAGE


def _executed(examples: list[tuple[str, str]], url: str, before: str) -> list[str]:
    """Execute commands in one shell, so that what one of them sets the next can use."""
    script = before + f"echo; echo '{MARK}'\n".join(command for command, _ in examples)
    environment = {"URL": url, "TOKEN": TOKENS["ann"], "BOBS_TOKEN": TOKENS["bob"], "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-e", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode != 0:
        pytest.fail(f"{done.stderr}\n{done.stdout}")
    return done.stdout.split(MARK)


def _agrees(shown: Any, found: Any) -> bool:  # noqa: ANN401
    """Tell whether an answer says everything that is shown of it."""
    if shown == ANY:
        return isinstance(found, str)
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(
            name in found and _agrees(value, found[name]) for name, value in shown.items()
        )
    if isinstance(shown, list):
        return len(shown) <= len(found) and all(
            _agrees(a, b) for a, b in zip(shown, found[: len(shown)], strict=True)
        )
    return bool(shown == found)
