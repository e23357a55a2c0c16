"""One batch of messages: decided one after the other, written together.

`handle` decides; `write` puts everything that was decided into the tables with a handful of statements.
Nothing here commits or publishes: that is the executor's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from wfcelery.core import decide as core
from wfcelery.core.effects import (
    CancelChild,
    CastVote,
    Dispatch,
    Effect,
    FindSignal,
    HoldChild,
    KeepSignal,
    Notify,
    StartChild,
    StopStep,
    TellParent,
    UseSignal,
)
from wfcelery.core.flow import Flow
from wfcelery.core.limits import Limits
from wfcelery.core.messages import (
    Answer,
    Broken,
    NewRun,
    RunMessage,
    StepDone,
    StepFailed,
    StepPostponed,
    StepSent,
)
from wfcelery.core.state import (
    NO_ITEM,
    Attempt,
    Key,
    Run,
    StepRef,
    StepStatus,
    WaitsFor,
)
from wfcelery.errors import NotReachable, StoreError
from wfcelery.executor import asking, following
from wfcelery.executor.definitions import Definitions
from wfcelery.executor.messages import (
    Asked,
    Holding,
    MarkerSeen,
    Message,
    NoticeTried,
    Told,
    Unreadable,
    is_asked,
    is_sign,
    run_of,
    text_of,
)
from wfcelery.store import changes, commands, dead_letters, runs, signals, steps, votes
from wfcelery.store.changes import RunChange

if TYPE_CHECKING:
    from sqlalchemy import Connection

NOT_ABOUT_RUNS = (Unreadable, Holding, MarkerSeen, NoticeTried)
_NOTHING: Mapping[str, Answer] = {}
_REPORTS = (StepDone, StepFailed, StepPostponed)


@dataclass(frozen=True, slots=True)
class Letter:
    """A message that was set aside, with the reason."""

    run_id: str | None
    message: str
    error: str


class Batch:
    """What a batch of messages comes to, on one connection, at one moment.

    `cached` are the runs that the executor remembers; `unmarked` the steps it has handed over without the
    tables saying so yet; `refused` the requests, by id, that their askers have no right to make.
    """

    def __init__(
        self,
        conn: Connection,
        catalogue: Definitions,
        *,
        cached: Mapping[str, Run],
        unmarked: Mapping[str, list[StepRef]],
        now: float,
        limits: Limits,
        refused: Mapping[str, Answer] = _NOTHING,
    ) -> None:
        self.conn = conn
        self.catalogue = catalogue
        self.now = now
        self.limits = limits
        self.runs: dict[str, Run] = {}
        self.changes: dict[str, RunChange] = {}
        self.written: list[RunChange] = []
        self.answers: dict[str, commands.Command] = {}
        self.dispatches: list[Dispatch] = []
        self.stops: list[StepRef] = []
        self.letters: list[Letter] = []
        self.notices: list[Notify] = []
        self.tried: list[NoticeTried] = []
        self.unmarked = dict(unmarked)
        self._cached = cached
        self._refused = refused
        self._absent: set[str] = set()
        self._votes: list[CastVote] = []
        self._kept: list[KeepSignal] = []
        self._used: list[str] = []
        self._effects: deque[Effect] = deque()
        self._answered: dict[str, commands.Command] = {}

    def preload(self, messages: Iterable[Message]) -> None:
        """Read what the messages are about, with one query for each table."""
        asked = [message.command_id for message in messages if is_asked(message)]
        if asked:
            self._answered = commands.get_many(self.conn, asked)
        named = {run_of(message) for message in messages if not isinstance(message, NOT_ABOUT_RUNS)}
        # What this batch has decided already is newer than what the tables say.
        unknown = [run for run in named if run and run not in self._cached and run not in self.runs]
        if unknown:
            self.runs.update(self._load(unknown))

    def handle(self, messages: Iterable[Message]) -> None:
        """Decide the messages, and everything that follows from them inside the engine.

        The order is kept for each run. What workers report about one run is decided together: a foreach with
        hundreds of items out is then copied once for all of them.
        """
        told: dict[str, list[Told]] = {}
        for message in messages:
            if is_sign(message):
                continue
            if isinstance(message, Unreadable):
                self.letters.append(Letter(None, text_of(message), message.reason))
            elif is_asked(message):
                self._tell_all(told)
                if message.command_id not in self._answered and message.command_id not in self.answers:
                    self._answer(message)
                    self._follow_all()
            elif isinstance(message, NoticeTried):
                self.tried.append(message)
            else:
                told.setdefault(run_of(message) or "", []).append(message)
        self._tell_all(told)

    def write(self) -> None:
        """Write everything that was decided."""
        self.write_runs()
        if self.answers:
            commands.put_many(self.conn, list(self.answers.values()))
        for letter in self.letters:
            dead_letters.put(
                self.conn, at=self.now, run_id=letter.run_id, message=letter.message, error=letter.error
            )

    def write_runs(self) -> None:
        """Write what was decided about runs so far: from here on the tables can be asked about them."""
        changes.write(self.conn, list(self.changes.values()))
        self.written += self.changes.values()
        self.changes.clear()
        if self._votes:
            votes.put_many(self.conn, self._votes, now=self.now)
            self._votes.clear()
        if self._kept:
            signals.keep(self.conn, self._kept, now=self.now)
            self._kept.clear()
        if self._used:
            signals.use(self.conn, self._used, now=self.now)
            self._used.clear()

    def mark_all(self) -> None:
        """Write down of every step that was handed over that it was."""
        for run_id in list(self.unmarked):
            self.tell(run_id, [])
            self._follow_all()

    def to_send(self) -> list[Dispatch]:
        """Give the steps to hand over, each once: those that no later message of the batch has taken back."""
        asked = {each.ref: each for each in self.dispatches}
        return [each for ref, each in asked.items() if self._is_ready(ref)]

    def run(self, run_id: str) -> Run | None:
        """Give the run as this batch has left it so far."""
        known = self.runs.get(run_id) or self._cached.get(run_id)
        if known is None and run_id not in self._absent:
            self.runs.update(self._load([run_id]))
            known = self.runs.get(run_id)
        return known

    def reload(self, run_id: str) -> None:
        """Read a run again, in full; what was decided about it so far is written first."""
        self.write_runs()
        self.runs.update(self._load([run_id], full=True))

    def decide(self, run: Run, message: RunMessage) -> core.Decision | None:
        """Decide, or set the message aside: whatever a message does to `decide`, the others go on."""
        flow = self._flow_of(run.definition_id)
        try:
            return core.decide(flow, run, message, self.now, self.limits)
        except Exception as error:  # noqa: BLE001 - the one place where a message may turn out to be poison
            reason = self.set_aside(run.id, text_of(message), error)
            if not isinstance(message, Broken):
                broken = self.decide(run, Broken(run.id, reason))
                if broken is not None:
                    self.take(run, broken)
            return None

    def take(self, before: Run | None, decision: core.Decision) -> None:
        """Make a decision part of the batch."""
        after = decision.run
        self.runs[after.id] = after
        if decision.events or decision.writes:
            earlier = self.changes.get(after.id)
            self.changes[after.id] = (
                changes.first(before, decision) if earlier is None else changes.merge(earlier, decision)
            )
        self._effects.extend(decision.effects)

    def marked_run(self, run_id: str) -> Run | None:
        """Give the run as it is once it knows what of it was handed over."""
        if run_id in self.unmarked:
            self.tell(run_id, [])
        return self.run(run_id)

    def waits(self, run_id: str, name: str, key: str) -> bool:
        """Tell whether a step of the run waits for this signal with this key."""
        run = self.run(run_id)
        return run is not None and any(
            attempt.waits_for is WaitsFor.SIGNAL and run.prepared[place].args == {"signal": name, "key": key}
            for place, attempt in run.attempts.items()
        )

    def set_aside(self, run_id: str | None, message: str, error: Exception) -> str:
        """Keep a message that could not be decided as a dead letter; give the reason in words."""
        reason = f"{type(error).__name__}: {error}"
        self.letters.append(Letter(run_id, message, reason))
        return reason

    def begin(self, new: NewRun) -> Answer:
        """Begin a run whose definition is known and whose input was checked."""
        flow = self.catalogue.get(self.conn, new.definition_id).flow
        decision = core.start(flow, new, self.now, self.limits)
        self.take(None, decision)
        return decision.answer or Answer(ok=True)

    def _answer(self, message: Asked) -> None:
        try:
            answer = self._refused.get(message.command_id) or asking.answer(self, message)
        except (StoreError, NotReachable):
            raise
        except Exception as error:  # noqa: BLE001 - a request that cannot even be refused is poison too
            reason = self.set_aside(run_of(message), text_of(message), error)
            answer = Answer(ok=False, reason=f"it could not be decided: {reason}", code="internal")
        self.answers[message.command_id] = asking.answered(message, answer, self.now)

    # -- reports and findings

    def _tell_all(self, told: dict[str, list[Told]]) -> None:
        for run_id, messages in told.items():
            for together in _without_repeats(messages):
                self.tell(run_id, together)
                self._follow_all()
        told.clear()

    def tell(self, run_id: str, messages: Sequence[Told]) -> None:
        """Decide what a run is told, marks first."""
        messages = self._with_marks(run_id, messages)
        run = self.run(run_id)
        if run is None:
            reason = f"there is no run {run_id}"
            self.letters.extend(Letter(run_id, text_of(message), reason) for message in messages)
            return
        ended = self._ended_items(run, messages)
        if ended:
            run = run._replace(attempts={**run.attempts, **ended})
        flow = self._flow_of(run.definition_id)
        try:
            decision = core.decide_in_turn(flow, run, messages, self.now, self.limits)
        except Exception:  # noqa: BLE001 - one of them is poison: `_decide` finds out which
            for message in messages:
                single = self.decide(run, message)
                if single is not None:
                    self.take(run, _without(single, ended))
                run = self.runs.get(run_id, run)
        else:
            self.take(run, _without(decision, ended))

    def _with_marks(self, run_id: str, messages: Sequence[Told]) -> Sequence[Told]:
        """Let a run know first what of it was handed over, unless all there is to know is how that ended."""
        sent = self.unmarked.pop(run_id, [])
        if (
            len(sent) == 1 == len(messages)
            and isinstance(messages[0], _REPORTS)
            and messages[0].ref == sent[0]
        ):
            return messages
        return [*(StepSent(ref) for ref in sent), *messages] if sent else messages

    def _ended_items(self, run: Run, messages: Iterable[Told]) -> dict[Key, Attempt]:
        """Bring back the rows of items that have ended, so that late reports of them meet the truth."""
        ended = {}
        for message in messages:
            if not isinstance(message, _REPORTS):
                continue
            key = (message.ref.step, message.ref.item)
            if message.ref.item == NO_ITEM or key in run.attempts:
                continue
            change = self.changes.get(run.id)
            row = (change.newest(*key) if change is not None else None) or steps.find(self.conn, run.id, *key)
            if row is not None:
                ended[key] = row
        return ended

    def _follow_all(self) -> None:
        while self._effects:
            self._follow(self._effects.popleft())

    def _follow(self, effect: Effect) -> None:
        match effect:
            case Dispatch():
                self.dispatches.append(effect)
            case StopStep():
                self.stops.append(effect.ref)
            case CastVote():
                self._votes.append(effect)
            case KeepSignal():
                self._kept.append(effect)
            case UseSignal():
                self._used.append(effect.signal_id)
            case Notify():
                self.notices.append(effect)
            case StartChild() | TellParent() | CancelChild() | HoldChild() | FindSignal():
                following.follow(self, effect)
            case _:
                assert_never(effect)

    # -- the tables

    def _load(self, run_ids: list[str], *, full: bool = False) -> dict[str, Run]:
        found = runs.load(self.conn, self._flow_of, run_ids, full=full)
        self._absent.update(run_id for run_id in run_ids if run_id not in found)
        return found

    def _flow_of(self, definition_id: str) -> Flow:
        return self.catalogue.get(self.conn, definition_id).flow

    def _is_ready(self, ref: StepRef) -> bool:
        attempt = self.runs[ref.run_id].attempts.get((ref.step, ref.item))
        return attempt is not None and attempt.status is StepStatus.READY and attempt.fence == ref.fence


def _without_repeats(messages: list[Told]) -> Iterator[list[Told]]:
    """Split messages so that no two reports of one item are decided together."""
    together: list[Told] = []
    seen: set[Key] = set()
    for message in messages:
        if isinstance(message, _REPORTS) and message.ref.item != NO_ITEM:
            key = (message.ref.step, message.ref.item)
            if key in seen:
                yield together
                together, seen = [], set()
            seen.add(key)
        together.append(message)
    yield together


def _without(decision: core.Decision, ended: Mapping[Key, Attempt]) -> core.Decision:
    """Forget the ended items that were brought back for this decision."""
    if not ended:
        return decision
    attempts = {
        key: attempt for key, attempt in decision.run.attempts.items() if key not in ended or attempt.is_open
    }
    return decision._replace(run=decision.run._replace(attempts=attempts))
