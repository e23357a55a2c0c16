"""The flows that are measured: no-op steps in the two shapes that matter."""

from __future__ import annotations

from wfcelery.core.values import Json


def chain(length: int) -> dict[str, Json]:
    """A flow of `length` no-op steps, one after the other."""
    steps: dict[str, Json] = {}
    for place in range(length):
        way: dict[str, Json] = {"done": True} if place == length - 1 else {"next": f"s{place + 1}"}
        steps[f"s{place}"] = {"tool": "echo", "args": {"value": place}, **way}
    return {"name": f"chain{length}", "start": "s0", "steps": steps}


def each(items: int) -> dict[str, Json]:
    """A foreach over `items` items, then one step with all the results."""
    return {
        "name": f"each{items}",
        "start": "work",
        "steps": {
            "work": {
                "foreach": {"items": "{{input.items}}", "tool": "echo", "args": {"value": "{{index}}"}},
                "next": "sum",
            },
            "sum": {"tool": "echo", "args": {"value": "{{size(result)}}"}, "done": True},
        },
    }


def spread() -> dict[str, Json]:
    """One step, a foreach over the items of the input, then one step with all the results."""
    steps = dict(each(0)["steps"])  # type: ignore[arg-type]
    steps["first"] = {"tool": "echo", "args": {"value": 0}, "next": "work"}
    return {"name": "spread", "start": "first", "steps": steps}
