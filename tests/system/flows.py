"""Flows for the tests of the system: documents made of the tools of the ledger."""

from __future__ import annotations

from wfcelery.core.values import Json

QUICK_RETRY: dict[str, Json] = {"max_attempts": 3, "backoff": [0.1]}


def chain(length: int, tool: str = "act", **args: Json) -> Json:
    """One step after the other."""
    steps: dict[str, Json] = {}
    for place in range(length):
        goes_on: dict[str, Json] = {"next": f"s{place + 1}"} if place < length - 1 else {"done": True}
        steps[f"s{place}"] = {"tool": tool, "args": {**args}, **goes_on}
    return {"name": f"chain-{length}-{tool}", "start": "s0", "steps": steps}


def single(tool: str, args: dict[str, Json] | None = None, **policies: Json) -> Json:
    """One step."""
    step: dict[str, Json] = {"tool": tool, "args": args or {}, "done": True, **policies}
    return {"name": f"one-{tool}", "start": "only", "steps": {"only": step}}


def diamond(seconds: float = 0.0) -> Json:
    """One, two beside each other, and their join."""
    work: dict[str, Json] = {"tool": "act", "args": {"seconds": seconds}}
    return {
        "name": "diamond",
        "start": "top",
        "steps": {
            "top": {**work, "parallel": ["left", "right"]},
            "left": {**work, "join": "bottom"},
            "right": {**work, "join": "bottom"},
            "bottom": {"tool": "act", "done": True},
        },
    }


def after_hold() -> Json:
    """A step that ends when the test lets it, and one after it."""
    steps: dict[str, Json] = {
        "held": {"tool": "hold", "next": "after"},
        "after": {"tool": "act", "done": True},
    }
    return {"name": "after-hold", "start": "held", "steps": steps}
