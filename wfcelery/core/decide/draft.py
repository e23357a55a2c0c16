"""The working copy in which one decision is made, and what comes out of it.

`Draft.move` is the only way to change a step and `Draft.set_run` the only way to change a run: each writes
the change and the event that tells of it together, so that folding the events gives the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from wfcelery.core import values
from wfcelery.core.effects import Dispatch, Effect, NoticeKind, Notify
from wfcelery.core.flow import Edge, Flow, Step
from wfcelery.core.limits import Limits
from wfcelery.core.messages import Answer
from wfcelery.core.state import (
    LIVE,
    NO_ITEM,
    PEOPLE,
    Attempt,
    Error,
    Key,
    Prepared,
    Run,
    RunStatus,
    StepRef,
    StepStatus,
)
from wfcelery.core.values import Json

# The counters of a join follow from the `took` of the steps before it: they change without an event.
UNTOLD: Final = frozenset({"name", "item", "attempt", "missing", "live"})
TOLD: Final = tuple(name for name in Attempt._fields if name not in UNTOLD)
# What may happen to one attempt more than once, and still changes its row.
REPEATABLE: Final = frozenset({"step_returned", "step_resent", "step_running_again", "gate_reminded"})
_ACTIVE: Final = (StepStatus.READY, StepStatus.RUNNING)
_OF_OPEN_GATES: Final = frozenset(
    {NoticeKind.GATE_OPENED, NoticeKind.GATE_REMINDER, NoticeKind.GATE_ESCALATED}
)


class Event(NamedTuple):
    """One line of a run's history. A transition happens at most once per (step, item, attempt, type)."""

    seq: int
    at: float
    type: str
    step: str | None
    item: int
    attempt: int
    actor: str
    data: Mapping[str, Json]
    transition: bool


class Write(NamedTuple):
    """A row to insert (no `before`) or to update, guarded by what it was. Payloads are canonical JSON."""

    before: Attempt | None
    after: Attempt
    args: str | None = None
    secrets: str | None = None
    result: str | None = None


class Decision(NamedTuple):
    """What follows from one message: the run as it is now, its rows, its history, what to do after commit."""

    run: Run
    writes: tuple[Write, ...] = ()
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    answer: Answer | None = None
    output: str | None = None


class Token(NamedTuple):
    """What an edge carries: live with the result that goes along, or dead."""

    edge: Edge
    live: bool
    value: Json = None


class Draft:
    """A run being changed. Nothing outside sees it before `decision` closes it."""

    def __init__(self, flow: Flow, run: Run, now: float, limits: Limits) -> None:
        self.flow = flow
        self.run = run
        self.now = now
        self.limits = limits
        self.attempts: dict[Key, Attempt] = dict(run.attempts)
        self.prepared: dict[Key, Prepared] = dict(run.prepared)
        self.results: dict[str, Json] = dict(run.results)
        self.loops = dict(run.loops)
        self.tokens: deque[Token] = deque()
        self.busy_loops: deque[str] = deque()
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.output: str | None = None
        self._writes: dict[tuple[str, int, int], Write] = {}
        self._seq = run.seq
        self._open, self._active, self._people = run.open, run.active, run.people

    @property
    def is_live(self) -> bool:
        """Tell whether anything may still start."""
        return self.run.status in LIVE

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is open."""
        return self._open == 0

    @property
    def next_seq(self) -> int:
        """Give the number of the next event: unique and growing in the run, it also serves as fence."""
        return self._seq + 1

    def step_of(self, attempt: Attempt) -> Step:
        """Give the flow's step that `attempt` is an attempt at."""
        return self.flow.steps[attempt.name]

    def ref(self, attempt: Attempt) -> StepRef:
        """Name this handing-over of `attempt`."""
        return StepRef(self.run.id, attempt.name, attempt.item, attempt.attempt, attempt.fence)

    def send(self, step: Step, choice: str, value: Json) -> None:
        """Send a token down every edge of `step`: live where `choice` takes it, dead elsewhere."""
        for edge in step.edges:
            live = edge.choice == choice
            self.tokens.append(Token(edge, live, value if live else None))

    def move(
        self,
        after: Attempt,
        event: str,
        *,
        actor: str = "",
        prepared: Prepared | None = None,
        result: str | None = None,
        told: Mapping[str, Json] | None = None,
    ) -> Attempt:
        """Put `after` in the place of what was, and tell of every column that changed."""
        args, secrets = None, None
        if prepared is not None:
            self.prepared[after.key] = prepared
            args = values.canonical(prepared.args)
            secrets = values.canonical(prepared.secrets) if prepared.secrets else None
            after = after._replace(args_digest=values.digest(args))
        if result is not None:
            after = after._replace(result_digest=values.digest(result))
        before = self._write(after, args, secrets, result)
        changes = changed(before or Attempt(after.name, after.item, after.attempt), after)
        if told:
            changes = {**changes, **told}
        self._tell(event, after, actor, changes, transition=event not in REPEATABLE)
        return after

    def count(self, after: Attempt) -> None:
        """Write the counters of a waiting join; the history of the arrivals tells of them."""
        self._write(after, None, None, None)

    def note(self, event: str, attempt: Attempt | None, actor: str = "", **data: Json) -> None:
        """Tell of something that changes no row: a vote, a refused report."""
        self._tell(event, attempt, actor, data, transition=False)

    def set_run(
        self,
        event: str,
        *,
        actor: str = "",
        status: RunStatus | None = None,
        held: bool | None = None,
        error: Error | None = None,
        last_done: str | None = None,
        output: str | None = None,
        reopened: bool = False,
    ) -> None:
        """Change the run's own row, and tell of it."""
        run = self.run
        data: dict[str, Json] = {}
        if reopened:
            data |= {"error": None, "completed_at": None}
            run = run._replace(error=None, completed_at=None)
        if status is not None:
            data["status"] = status.value
            run = run._replace(status=status)
            if status not in LIVE:
                data["completed_at"] = self.now
                run = run._replace(completed_at=self.now)
            if status is RunStatus.CANCELLED:
                data["cancelled_at"] = self.now
                run = run._replace(cancelled_at=self.now)
        if held is not None:
            data["held"] = held
            run = run._replace(held=held)
        if error is not None:
            data["error"] = error.as_json()
            run = run._replace(error=error)
        if last_done is not None:
            data["last_done"] = last_done
            run = run._replace(last_done=last_done)
        if output is not None:
            self.output = output
            run = run._replace(output_digest=values.digest(output))
            data["output_digest"] = run.output_digest
        self.run = run
        self._tell(event, None, actor, data, transition=False)

    def due_status(self) -> RunStatus:
        """Say which status a live run has now: paused if held, or if it only waits for somebody."""
        waits = self._active == 0 and self._people > 0
        return RunStatus.PAUSED if self.run.held or waits else RunStatus.RUNNING

    def decision(self, answer: Answer | None) -> Decision:
        """Close the draft."""
        run = self.run._replace(
            seq=self._seq,
            updated_at=self.now if self.events else self.run.updated_at,
            attempts=self.attempts,
            prepared=self.prepared,
            results=self.results,
            loops=self.loops,
            open=self._open,
            active=self._active,
            people=self._people,
        )
        effects = tuple(effect for effect in self.effects if not self._is_withdrawn(effect))
        return Decision(run, tuple(self._writes.values()), tuple(self.events), effects, answer, self.output)

    def _is_withdrawn(self, effect: Effect) -> bool:
        """Tell whether a step or gate that was opened in this decision was ended later in it."""
        if isinstance(effect, Notify):
            return effect.kind in _OF_OPEN_GATES and not self._is_waiting(effect)
        if not isinstance(effect, Dispatch):
            return False
        attempt = self.attempts.get((effect.ref.step, effect.ref.item))
        return attempt is None or attempt.status is not StepStatus.READY or self.ref(attempt) != effect.ref

    def _is_waiting(self, notice: Notify) -> bool:
        attempt = self.attempts.get((notice.step or "", NO_ITEM))
        return attempt is not None and attempt.attempt == notice.attempt and attempt.is_open

    def _write(
        self, after: Attempt, args: str | None, secrets: str | None, result: str | None
    ) -> Attempt | None:
        before = self.attempts.get(after.key)
        if before is not None and before.attempt != after.attempt:
            before = None
        self._recount(before, -1)
        self._recount(after, +1)
        if after.is_open:
            self.attempts[after.key] = after
        else:
            self.prepared.pop(after.key, None)
            if after.item == NO_ITEM:
                self.attempts[after.key] = after
            else:
                # An ended item matters no more: a foreach of 100,000 must not fill the memory.
                self.attempts.pop(after.key, None)
        place = (after.name, after.item, after.attempt)
        earlier = self._writes.get(place)
        if earlier is None:
            self._writes[place] = Write(before, after, args, secrets, result)
        else:
            self._writes[place] = Write(
                earlier.before,
                after,
                args or earlier.args,
                secrets or earlier.secrets,
                result or earlier.result,
            )
        return before

    def _recount(self, attempt: Attempt | None, by: int) -> None:
        if attempt is None or not attempt.is_open:
            return
        self._open += by
        if attempt.status in _ACTIVE:
            self._active += by
        elif attempt.waits_for in PEOPLE:
            self._people += by

    def _tell(
        self, event: str, attempt: Attempt | None, actor: str, data: Mapping[str, Json], *, transition: bool
    ) -> None:
        self._seq += 1
        if attempt is None:
            place: tuple[str | None, int, int] = (None, NO_ITEM, 0)
        else:
            place = (attempt.name, attempt.item, attempt.attempt)
        self.events.append(Event(self._seq, self.now, event, *place, actor, data, transition))


def changed(before: Attempt, after: Attempt) -> dict[str, Json]:
    """List the columns of `after` that differ from `before`, as events tell them."""
    changes: dict[str, Json] = {}
    for column, old, new in zip(Attempt._fields, before, after, strict=True):
        if old is not new and old != new and column not in UNTOLD:
            changes[column] = new.as_json() if isinstance(new, Error) else new
    return changes
