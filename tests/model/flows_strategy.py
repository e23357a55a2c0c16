"""Random flows, as documents in the full form: one generator for hypothesis and for plain seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st

from wfcelery.core.document import compile_flow, pin
from wfcelery.core.validate import validate

if TYPE_CHECKING:
    from random import Random

    from wfcelery.core.flow import Flow
    from wfcelery.core.values import Json

Document: TypeAlias = dict[str, Any]
Steps: TypeAlias = dict[str, Document]

CONDITIONS = ("result == true", "result == 1", 'result == "x"', "result != null", "input.n > 2")
KINDS = ("tool",) * 6 + ("pass", "pass", "approval", "wait", "delay", "foreach", "foreach", "flow")
ARGS: tuple[Json, ...] = (
    {},
    {"n": "{{input.n}}"},
    {"got": "{{result}}"},
    {"text": "n is {{input.n}}", "list": [1, "{{input.items}}"]},
)


def flows() -> st.SearchStrategy[Document]:
    """Valid flows of 3 to 12 steps of every kind."""
    return st.randoms(use_true_random=False).map(random_flow)


def compiled(document: Document) -> Flow:
    """Read a document; its sub-flows are pinned to one definition."""
    return pin(compile_flow(document), {("child", None): "child-definition"})


def random_flow(random: Random) -> Document:
    """Draw flows until one is valid; a few have parallel branches that never meet."""
    while True:
        document = _drawn(random)
        if not validate(compiled(document)):
            return document


def _drawn(random: Random) -> Document:
    """Draw a graph without cycles in which every step leads on to a later one and the last is done."""
    count = random.randint(3, 12)
    names = [f"s{number}" for number in range(count)]
    steps: Steps = {}
    for number, name in enumerate(names):
        later = names[number + 1 :]
        near = later[:4] if random.random() < 0.7 else later
        step = _action(random)
        if not later or random.random() < 0.04:
            step["done"] = True
        else:
            step |= _way_on(random, near, calls="tool" in step)
        _other_ways(random, step, later)
        steps[name] = step
    _drop_unreachable(steps, names[0])
    _read_earlier(random, steps)
    _read_nothing_before_the_start(steps[names[0]])
    _after_gates(steps)
    _say_join_only_at_joins(steps)
    _join_modes(random, steps)
    document: Document = {"name": "random", "start": names[0], "steps": steps}
    if random.random() < 0.2:
        document["defaults"] = {"notify": random.choice((["group:ops"], ["eve", "channel:ops"]))}
    if random.random() < 0.3:
        document["output"] = {name: f"{{{{steps.{name}.result ?? null}}}}" for name in list(steps)[:3]}
    return document


def _action(random: Random) -> Document:
    match random.choice(KINDS):
        case "tool":
            return _tool(random)
        case "approval":
            return {"approval": _gate(random)}
        case "wait":
            timeout = {"timeout_s": random.choice((30, 3600))} if random.random() < 0.5 else {}
            return {"wait": {"signal": random.choice(("go", "stop")), **timeout}}
        case "delay":
            return {"delay": random.choice((0, 5, 90.5, "{{input.n}}"))}
        case "foreach":
            return {"foreach": _foreach(random), "retry": _retry(random)}
        case "flow":
            return _sub_flow(random)
        case _:
            return {}


def _tool(random: Random) -> Document:
    step: Document = {"tool": "echo", "args": random.choice(ARGS), "retry": _retry(random)}
    if random.random() < 0.15:
        step["on_lost"] = "hold"
    if random.random() < 0.2:
        step["timeout_s"] = 60
    if random.random() < 0.04:
        step["args"] = {"x": "{{input.not_there}}"}
    return step


def _foreach(random: Random) -> Document:
    body: Document = {
        "items": random.choice(([], [7], [1, 2, 3], "{{input.items}}", [5, 5, 5, 5, 5])),
        "concurrency": random.choice((1, 2, 3, 10)),
        "on_item_error": random.choice(("fail", "collect")),
    }
    if random.random() < 0.2:
        return {**body, "flow": "child", "input": {"item": "{{item}}"}}
    args: Document = {"item": "{{item}}", "at": "{{index}}"}
    if random.random() < 0.3:
        args["came"] = "{{result}}"
    return {**body, "tool": "echo", "args": args}


def _sub_flow(random: Random) -> Document:
    child: Document = {"name": "child", "input": {"n": "{{input.n}}"}}
    if random.random() < 0.2:
        child["wait"] = False
    step: Document = {"flow": child}
    if random.random() < 0.3:
        step["timeout_s"] = 45
    if random.random() < 0.4:
        step["retry"] = _retry(random)
    return step


def _retry(random: Random) -> Json:
    return {
        "max_attempts": random.choice((1, 1, 2, 3)),
        "backoff": random.choice(([10], [1, 60], {"initial_s": 2, "factor": 3, "max_s": 10, "jitter": 0})),
        "no_retry_on": random.choice(([], ["Fatal"])),
    }


def _gate(random: Random) -> Document:
    gate: Document = {}
    if random.random() < 0.5:
        gate["approvers"] = random.choice((["ann"], ["ann", "bob"], ["group:ops"]))
    if random.random() < 0.3:
        gate["quorum"] = 2
        gate.pop("approvers", None)
    if random.random() < 0.3:
        gate["allow_self"] = True
    if random.random() < 0.2:
        gate["require_comment"] = True
    if random.random() < 0.6:
        gate["timeout_s"] = 120
        gate["on_timeout"] = random.choice(("deny", "approve", "escalate"))
        if gate["on_timeout"] == "escalate":
            gate["escalate_to"] = ["eve"]
            gate.setdefault("approvers", ["ann", "bob"])
    if random.random() < 0.3:
        gate["remind_every_s"] = random.choice((7, 50, 60.5, 120, 300))
    if random.random() < 0.2:
        gate["notify"] = random.choice((["channel:ops"], ["ann", "json://localhost"]))
    if random.random() < 0.25:
        gate["pass_result"] = True
    return gate


def _way_on(random: Random, later: list[str], *, calls: bool) -> Document:
    ways = ["next", "next", "join", "branch", "parallel", "parallel"] + (["on"] if calls else [])
    match random.choice(ways):
        case "next":
            return {"next": random.choice(later)}
        case "join":
            return {"join": random.choice(later)}
        case "parallel":
            size = min(len(later), random.randint(1, 4))
            return {"parallel": random.sample(later, size)}
        case "on":
            return {"on": {event: random.choice(later) for event in ("yes", "no")[: random.randint(1, 2)]}}
        case _:
            arms: list[Json] = [
                {"if": random.choice(CONDITIONS), "then": random.choice(later)}
                for _ in range(random.randint(1, 2))
            ]
            if random.random() < 0.85:
                arms.append({"else": random.choice(later)})
            return {"branch": arms}


def _other_ways(random: Random, step: Document, later: list[str]) -> None:
    if (
        later
        and random.random() < 0.2
        and ("tool" in step or "foreach" in step or "flow" in step or "wait" in step)
    ):
        step["on_error"] = random.choice(later)
    if later and random.random() < 0.15:
        step["optional"] = True
    gate, wait = step.get("approval"), step.get("wait")
    if later and isinstance(gate, dict) and random.random() < 0.5:
        gate["on_deny"] = random.choice(later)
    if later and isinstance(wait, dict) and "timeout_s" in wait and random.random() < 0.5:
        wait["on_timeout"] = random.choice(later)


def _read_earlier(random: Random, steps: Steps) -> None:
    before: dict[str, set[str]] = {name: set() for name in steps}
    for name, step in steps.items():  # They stand in an order in which every way leads to a later one.
        for target in _targets(step):
            before[target] |= {name, *before[name]}
    for name, step in steps.items():
        if before[name] and "args" in step and random.random() < 0.3:
            read = random.choice(sorted(before[name]))
            step["args"] = {"before": f"{{{{steps.{read}.result ?? 'none'}}}}"}


def _read_nothing_before_the_start(step: Document) -> None:
    if step.get("args") == {"got": "{{result}}"}:
        step["args"] = {}
    step.get("foreach", {}).get("args", {}).pop("came", None)


def _say_join_only_at_joins(steps: Steps) -> None:
    targets = [target for step in steps.values() for target in _targets(step)]
    for step in steps.values():
        if "join" in step and targets.count(step["join"]) == 1:
            step["next"] = step.pop("join")


def _drop_unreachable(steps: Steps, start: str) -> None:
    reached: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(_targets(steps[name]))
    for name in list(steps):
        if name not in reached:
            del steps[name]


def _targets(step: Document) -> list[str]:
    found = [step[way] for way in ("next", "join", "on_error") if way in step]
    found += list(step.get("parallel", ()))
    found += [arm.get("then", arm.get("else")) for arm in step.get("branch", ())]
    found += list(step.get("on", {}).values())
    found += [step["approval"]["on_deny"]] if "on_deny" in step.get("approval", {}) else []
    found += [step["wait"]["on_timeout"]] if "on_timeout" in step.get("wait", {}) else []
    return found


def _after_gates(steps: Steps) -> None:
    """What follows a gate runs with what was shown there: keep to what cannot change between."""
    first = next(iter(steps))
    for name, step in steps.items():
        if "approval" in step:
            for target in _targets(step):
                if "tool" in steps[target]:
                    passes = step["approval"].get("pass_result") and name != first
                    steps[target]["args"] = {"got": "{{result}}"} if passes else {"n": "{{input.n}}"}


def _join_modes(random: Random, steps: Steps) -> None:
    targets = [target for step in steps.values() for target in _targets(step)]
    for name, step in steps.items():
        ways = targets.count(name)
        if ways > 1 and random.random() < 0.6:
            step["join_mode"] = random.choice(("any", "any", random.randint(1, ways)))
    document: Document = {"name": "random", "start": next(iter(steps)), "steps": steps}
    for fault in validate(compiled(document)):
        if fault.code == "join-cannot-fire":
            steps[fault.path.split(".")[1]].pop("join_mode")
