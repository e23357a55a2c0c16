"""What the validator believes to be done is done: checked against a plain simulation of tokens."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wfcelery.core import graph
from wfcelery.core.document import compile_flow
from wfcelery.core.flow import Edge, Flow, JoinMode, Label, Step
from wfcelery.core.validate.before import before

OTHERWISE = (Label.ERROR, Label.DENY, Label.TIMEOUT)


def drawn(random: Random) -> Flow:
    """Draw an acyclic flow in which steps may branch, fan out, fail, be denied and be called off."""
    names = [f"s{number}" for number in range(random.randint(3, 9))]
    steps: dict[str, Any] = {}
    for number, name in enumerate(names):
        later = names[number + 1 :]
        step: dict[str, Any] = random.choice([{"tool": "x"}, {"tool": "x"}, {}, {"approval": {}}])
        step = {key: dict(value) if isinstance(value, dict) else value for key, value in step.items()}
        if not later:
            step["done"] = True
        else:
            some = random.sample(later, min(len(later), random.randint(1, 3)))
            arms = [{"if": "true", "then": target} for target in some]
            step |= random.choice(
                [
                    {"next": some[0]},
                    {"parallel": some},
                    {"branch": arms},
                    {"parallel": some},
                    {"next": later[0]},
                ]
            )
            if random.random() < 0.2:
                step["on_error"] = random.choice(later)
            if "approval" in step and random.random() < 0.4:
                step["approval"]["on_deny"] = random.choice(later)
            step["optional"] = random.random() < 0.15
        step["join_mode"] = random.choice(["all", "all", "all", "all", "any", 2])
        steps[name] = step
    whole = compile_flow({"start": names[0], "steps": steps})
    reached = graph.reachable(whole.steps, whole.start)
    return compile_flow(
        {"start": names[0], "steps": {name: steps[name] for name in names if name in reached}}
    )


class Simulation:
    """One run: which steps are done, and what each had seen done when it began."""

    def __init__(self, flow: Flow, random: Random) -> None:
        self.flow = flow
        self.random = random
        self.done: set[str] = set()
        self.fired: set[str] = set()
        self.seen: dict[str, frozenset[str]] = {}
        self.tokens: dict[str, list[bool]] = {name: [] for name in flow.steps}
        self.completed = False

    def run(self) -> None:
        ready = [self.flow.start]
        self._begin(self.flow.start)
        ended: set[str] = set()
        while ready:
            name = ready.pop(self.random.randrange(len(ready)))
            if not self._is_needed(name):
                continue
            taken = self._outcome(self.flow.steps[name])
            if taken is None:
                return
            ended.add(name)
            todo = [(edge, edge in taken) for edge in self.flow.steps[name].edges]
            while todo:
                edge, live = todo.pop(0)
                verdict = self._arrive(edge.target, live=live)
                if verdict is True:
                    self._begin(edge.target)
                    ready.append(edge.target)
                elif verdict is False:
                    self.fired.add(edge.target)
                    todo += [(after, False) for after in self.flow.steps[edge.target].edges]
        self.completed = any(self.flow.steps[name].done for name in self.done)

    def _begin(self, name: str) -> None:
        self.fired.add(name)
        self.seen[name] = frozenset(self.done)

    def _outcome(self, step: Step) -> list[Edge] | None:
        """Give the edges that are taken, or None when the run fails."""
        fails = self.random.random() < 0.25
        if fails:
            error = step.edge(Label.ERROR)
            return [error] if error is not None else [] if step.optional else None
        self.done.add(step.name)
        deny = step.edge(Label.DENY)
        if deny is not None and self.random.random() < 0.5:
            return [deny]
        ways = [edge for edge in step.edges if edge.label not in OTHERWISE]
        arms = [edge for edge in ways if edge.label is Label.IF]
        return [self.random.choice(arms)] if arms else ways

    def _arrive(self, name: str, *, live: bool) -> bool | None:
        """Tell whether the step begins (True), is skipped (False), or goes on waiting (None)."""
        tokens, ways, step = self.tokens[name], len(self.flow.ways_in[name]), self.flow.steps[name]
        tokens.append(live)
        if name in self.fired:
            return None
        alive, left = sum(tokens), ways - len(tokens)
        if step.join_mode is JoinMode.ALL:
            return None if left else alive > 0
        wanted = 1 if step.join_mode is JoinMode.ANY else step.join_count
        return True if alive >= wanted else False if alive + left < wanted else None

    def _is_needed(self, name: str) -> bool:
        """Tell whether some path from a step does not end in a join that has fired."""
        step = self.flow.steps[name]
        return step.done or any(
            edge.target not in self.fired and self._is_needed(edge.target) for edge in step.edges
        )


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_what_is_said_to_be_done_is_done_in_every_run(seed: int) -> None:
    random = Random(seed)  # noqa: S311 (dice, not secrets)
    flow = drawn(random)
    known = before(flow)
    for _ in range(10):
        simulation = Simulation(flow, random)
        simulation.run()
        for name, seen in simulation.seen.items():
            assert {other for other in flow.steps if known.is_done(name, other)} <= seen
        if simulation.completed:
            assert {name for name in flow.steps if known.at_the_end & known.bits[name]} <= simulation.done
