"""For tests of your own flows: the real engine, no server, and a clock on which a day takes no time.

from wfcelery.testing import run_to_end

run = run_to_end("flows/refund.yaml", {"amount": 900}, tools=[lookup], decisions={"review": "approve"})
assert run["status"] == "completed"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeAlias

from wfcelery.core.messages import Decide, Principal, Signal
from wfcelery.core.reading import read
from wfcelery.core.state import RunStatus
from wfcelery.core.values import Json
from wfcelery.embedded import Engine, VirtualClock
from wfcelery.embedded.engine import new_command_id
from wfcelery.embedded.waiting import Waiting
from wfcelery.errors import InvalidInput
from wfcelery.executor.messages import Define
from wfcelery.tools import Registry, Tool

if TYPE_CHECKING:
    from wfcelery.tools.declare import AnyTool

Decision: TypeAlias = Literal["approve", "deny"] | Callable[[Json], Literal["approve", "deny"]]

STARTER = "starter"
DECIDER = "decider"


def run_to_end(
    flow: Json | Path,
    input: Json = None,  # noqa: A002 - the word of the flow language
    *,
    tools: Iterable[AnyTool | Callable[..., object] | ModuleType] = (),
    decisions: Mapping[str, Decision] | None = None,
    signals: Mapping[str, Json] | None = None,
    flows: Iterable[Json | Path] = (),
    clock: VirtualClock | None = None,
    database: str = "sqlite://",
) -> dict[str, Json]:
    """Run a flow until it ends or nothing but a person can bring it further; give the run as JSON shows it.

    `flow` is a document, a path to one, or its text. `tools` replace built-in ones of the same name.
    `decisions` answers gates by step name; `signals` answers waits by signal name; a gate without an answer
    waits until its timeout. `flows` are defined first, for sub-flows.
    """
    registry = Registry.with_builtins()
    for each in tools:
        if isinstance(each, ModuleType):
            registry.add_module(each)
        else:
            registry.add(each, replace=True)
    with Engine(database, registry, clock=clock or VirtualClock()) as engine:
        for document, name in map(_document, flows):
            engine.ask(Define(new_command_id(), document, Principal(STARTER), name))
        document, name = _document(flow)
        run_id = engine.start(document, {} if input is None else input, by=STARTER, name=name)
        answers = _Answers(engine, decisions or {}, signals or {})
        while not engine.standing(run_id).ended:
            paused = engine.standing(run_id).status is RunStatus.PAUSED
            if not (paused and answers.give(run_id)) and not engine.turn():
                break
        return engine.run_json(run_id)


class _Answers:
    """The decisions and signals that a test has prepared; each waiting step is answered once."""

    def __init__(
        self, engine: Engine, decisions: Mapping[str, Decision], signals: Mapping[str, Json]
    ) -> None:
        self._engine = engine
        self._decisions = decisions
        self._signals = signals
        self._given: set[str] = set()

    def give(self, run_id: str) -> bool:
        """Answer what waits now and was not answered before; tell whether there was an answer."""
        answered = [self._answer(step) for step in self._engine.waiting(run_id) if step.id not in self._given]
        return any(answered)

    def _answer(self, step: Waiting) -> bool:
        self._given.add(step.id)
        if step.signal is not None and step.signal in self._signals:
            payload = self._signals[step.signal]
            self._engine.ask(Signal(new_command_id(), step.run_id, step.signal, Principal(DECIDER), payload))
            return True
        if step.gate is not None and step.name in self._decisions:
            decision = self._decisions[step.name]
            word = decision(step.shown) if callable(decision) else decision
            if word not in ("approve", "deny"):
                raise InvalidInput(f"decisions.{step.name}", f'must be "approve" or "deny", not {word!r}')
            approve = word == "approve"
            for voter in _voters(step, step.gate.quorum if approve else 1):
                comment = "decided by a test" if step.gate.require_comment else ""
                vote = Decide(new_command_id(), step.run_id, step.name, approve, voter, comment)
                self._engine.ask(vote)
            return True
        return False


def _voters(step: Waiting, count: int) -> list[Principal]:
    """Make up people who may decide: the approvers, members of the groups, or anybody."""
    names = list(step.approvers) or [DECIDER] + [f"{DECIDER}-{place}" for place in range(2, count + 1)]
    voters = []
    for name in names:
        group = name.removeprefix("group:")
        if group == name:
            voters.append(Principal(name))
        else:
            voters += [Principal(f"{group}-{place}", groups=(group,)) for place in range(1, count + 1)]
    return voters[:count]


def _document(flow: Json | Path) -> tuple[Json, str | None]:
    if isinstance(flow, Mapping):
        return flow, None
    path = Path(flow) if isinstance(flow, Path) or (isinstance(flow, str) and "\n" not in flow) else None
    text = path.read_bytes() if path is not None else str(flow)
    document = read(text, source=str(path or "flow"))
    return document.data, path.stem if path is not None else None  # type: ignore[return-value]


__all__ = ["Tool", "VirtualClock", "run_to_end"]
