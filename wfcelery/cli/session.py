"""One run in this process, from where it stands to its end, or to where only a person can help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wfcelery.cli.progress import Progress, child_ids
from wfcelery.cli.prompt import Decision, Gone, Prompt
from wfcelery.core.limits import DEFAULT
from wfcelery.core.messages import Cancel, Decide, Principal, Signal, StepReady
from wfcelery.core.values import Json
from wfcelery.embedded.engine import Engine, new_command_id
from wfcelery.errors import Refused
from wfcelery.executor.definitions import Definitions
from wfcelery.store import runs

if TYPE_CHECKING:
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.cli.view import View
    from wfcelery.core.flow import Flow
    from wfcelery.core.state import Run
    from wfcelery.embedded.waiting import Waiting
    from wfcelery.store.changes import RunChange

TURN_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Answers:
    """What was said beforehand, by step and by signal."""

    approve: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    comment: str = ""
    signals: Mapping[str, Json] = field(default_factory=dict)

    def decision(self, step: str) -> Decision | None:
        """Give the answer to a gate, if there is one."""
        if step in self.approve or step in self.deny:
            return Decision(step in self.approve, self.comment)
        return None


class Session:
    """Turns the engine for one run, shows what happens, and answers what it asks."""

    def __init__(
        self,
        run_id: str,
        *,
        by: Principal,
        answers: Answers,
        interrupt: Interrupt,
        view_of: Callable[[Progress], View],
        began: Callable[[], None],
    ) -> None:
        self.run_id = run_id
        self.progress = Progress(run_id, self._flow_of)
        self.view = view_of(self.progress)
        self._by = by
        self._answers = answers
        self._interrupt = interrupt
        self._began = began
        self._definitions = Definitions(None, DEFAULT)
        self._engine: Engine | None = None
        self._is_new = True
        self._answered: set[str] = set()
        self._used: set[str] = set()

    @property
    def engine(self) -> Engine:
        """The engine that `attach` was given."""
        if self._engine is None:
            message = "the session has no engine yet"
            raise RuntimeError(message)
        return self._engine

    def attach(self, engine: Engine) -> None:
        """Work with this engine from now on."""
        self._engine = engine

    def observe(self, changes: Sequence[RunChange]) -> None:
        """Take in what a batch has changed: the engine's observer."""
        self._is_new = True
        if any(change.before is None and change.after.id == self.run_id for change in changes):
            self._began()
        self.view.show(self.progress.take(changes))

    def recover(self) -> None:
        """Go on with a run that an earlier process has left."""
        self.progress.seed(self._read_runs())
        self.engine.recover()

    def go_on(self, prompt: Prompt | None) -> bool:
        """Work until the run has ended (True), or only a person or a signal can bring it further (False)."""
        while not self.engine.standing(self.run_id).ended:
            self._interrupt.check()
            if self._answer(prompt):
                continue
            worked = self.engine.turn(TURN_S)
            self.view.refresh()
            if (
                not worked
                and not self._is_new
                and self.progress.waits_for_people
                and not self.progress.is_moving
            ):
                return False
        return True

    def keep_going(self, waiting: Waiting) -> None:
        """Turn the engine once, behind a question; raise `Gone` when it needs no answer any more."""
        self._interrupt.check()
        self.engine.turn(TURN_S)
        if self._is_new:
            self._is_new = False
            if waiting.id not in {each.id for each in self.engine.waiting(self.run_id)}:
                self._is_new = True
                raise Gone

    def unused(self) -> list[str]:
        """Name the answers that nothing has asked for, as they were given."""
        answers = self._answers
        given = [("--approve", answers.approve), ("--deny", answers.deny), ("--signal", answers.signals)]
        return [f"{flag} {name}" for flag, names in given for name in sorted(names) if name not in self._used]

    def unanswered(self) -> list[Waiting]:
        """List what the run waits for."""
        return self.engine.waiting(self.run_id)

    def _answer(self, prompt: Prompt | None) -> bool:
        """Answer what waits and has not been answered; tell whether there was anything."""
        if not self._is_new or not self.progress.waits_for_people:
            self._is_new = False
            return False
        self._is_new = False
        for waiting in self.engine.waiting(self.run_id):
            if waiting.id in self._answered:
                continue
            if waiting.signal is not None:
                if waiting.signal not in self._answers.signals:
                    continue
                self._answered.add(waiting.id)
                self._used.add(waiting.signal)
                payload = self._answers.signals[waiting.signal]
                self.engine.ask(Signal(new_command_id(), waiting.run_id, waiting.signal, self._by, payload))
                return True
            decision = self._answers.decision(waiting.name)
            if decision is not None:
                self._answered.add(waiting.id)
                self._used.add(waiting.name)
                self._decide(waiting, decision)
                return True
            if prompt is not None:
                self._answered.add(waiting.id)
                self._ask(prompt, waiting)
                return True
        return False

    def _ask(self, prompt: Prompt, waiting: Waiting) -> None:
        self.view.stop()
        # What the frozen row shows belongs to its own run, which may be a sub-run of ours.
        run = self._read_run(waiting.run_id)
        description = self._flow_of(run.definition_id).steps[waiting.name].description
        decision = prompt.ask(waiting, run.created_by, description, self.engine.clock.now())
        if decision is not None:
            try:
                self._decide(waiting, decision)
            except Refused as refusal:
                self.view.say(f"refused: {refusal}")

    def _decide(self, waiting: Waiting, decision: Decision) -> None:
        command = new_command_id()
        if waiting.gate is not None:
            self.engine.ask(
                Decide(command, waiting.run_id, waiting.name, decision.approve, self._by, decision.comment)
            )
        elif decision.approve:
            self.engine.ask(StepReady(command, waiting.run_id, waiting.name, self._by))
        else:
            self.engine.ask(Cancel(command, self.run_id, self._by, decision.comment))

    def _flow_of(self, definition_id: str) -> Flow:
        with self.engine.database.reading() as conn:
            return self._definitions.get(conn, definition_id).flow

    def _read_run(self, run_id: str) -> Run:
        with self.engine.database.reading() as conn:
            return runs.load(conn, lambda each: self._definitions.get(conn, each).flow, [run_id])[run_id]

    def _read_runs(self) -> list[Run]:
        """Read the run and the sub-runs that it waits for, each after its parent."""
        found: list[Run] = []
        todo = [self.run_id]
        with self.engine.database.reading() as conn:
            while todo:
                loaded = runs.load(conn, lambda each: self._definitions.get(conn, each).flow, todo)
                found += loaded.values()
                todo = [child for run in loaded.values() for child in child_ids(run)]
        return found
