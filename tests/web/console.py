"""What tests of the console share: flows, and reading pages as people do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.web.server import Page

WAIT_S = 20.0


def echo_flow(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - parts of a document
    """A flow of one step that says what it was given."""
    return {
        "name": name,
        "start": "say",
        "steps": {"say": {"tool": "echo", "args": {"said": "{{input.word}}"}, "done": True}},
        **more,
    }


def failing_flow(name: str) -> dict[str, Any]:
    """A flow whose first step fails for good."""
    once = {"retry": {"max_attempts": 1}, "next": "after"}
    return {
        "name": name,
        "start": "break",
        "steps": {
            "break": {"tool": "fail", "args": {"message": "the lorry has no fuel", "times": 1}, **once},
            "after": {"tool": "echo", "args": {"value": "arrived"}, "done": True},
        },
    }


def loop_flow(name: str, items: int) -> dict[str, Any]:
    """A flow with a foreach of that many items, and a gate behind it."""
    return {
        "name": name,
        "start": "each",
        "steps": {
            "each": {
                "foreach": {"items": list(range(items)), "tool": "echo", "args": {"value": "{{item}}"}},
                "next": "ask",
            },
            "ask": {"approval": {}, "next": "end"},
            "end": {"tool": "echo", "args": {"value": 1}, "done": True},
        },
    }


def get(client: httpx.Client, path: str, status: int = 200) -> httpx.Response:
    """Ask for a page that must be there."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return answer


def words(client: httpx.Client, path: str, status: int = 200) -> str:
    """Give the words of a page."""
    return Page(get(client, path, status).text).words


def links(text: str) -> list[str]:
    """Give the addresses that a page leads to."""
    return [told["href"] for tag, told in Page(text).attributes if tag == "a" and "href" in told]


def confirm(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Open a page that asks, and say yes."""
    return client.post(path, data={**Page(get(client, path).text).hidden, **fields})


def eventually(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Look again and again until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)
