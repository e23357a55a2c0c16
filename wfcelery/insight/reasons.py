"""Why a run is not moving, from what was read of it: a pure function, and the sentences it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from wfcelery.broker.names import STEPS_QUEUE
from wfcelery.core import ids
from wfcelery.core.flow import Gate, OnTimeout, Wait
from wfcelery.core.gate_clock import deadline
from wfcelery.core.state import LIVE, NO_ITEM, RunStatus, StepStatus, WaitsFor
from wfcelery.core.words import brief
from wfcelery.settings import DEFAULT_LEASE_S
from wfcelery.store.times import iso

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.store.explain import Facts, OpenStep

_UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that a run waits for. `code` is for programs, `since` and `until` are moments."""

    code: str
    message: str
    step: str | None = None
    item: int | None = None
    since: float | None = None
    until: float | None = None

    def as_json(self) -> dict[str, Json]:
        """Write it as the documented object."""
        return {
            "code": self.code,
            "message": self.message,
            "step": self.step,
            "item": self.item,
            "since": iso(self.since),
            "until": iso(self.until),
        }


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """What the broker told: how many messages wait in each queue; or, as `trouble`, why it told nothing."""

    lengths: Mapping[str, int] = field(default_factory=dict)
    trouble: str | None = None


def reasons(
    facts: Facts, now: float, broker: BrokerSeen | None = None, *, lease_s: float = DEFAULT_LEASE_S
) -> list[Reason]:
    """Say what a run waits for: first what holds up everything, then one reason for each open step.

    A worker that was not heard of for `lease_s` is not counted on.
    """
    run = facts.run
    if run.status not in LIVE:
        return [_ended(facts)]
    overall = list(_overall(facts, now, broker))
    steps = _Steps(facts, now, broker, lease_s)
    each = _grouped(map(steps.reason, facts.open))
    # Who waits for a person does not wait for an executor yet.
    found = each + overall if run.status is RunStatus.PAUSED and not run.held else overall + each
    if facts.others:
        found.append(Reason("more", f"{facts.others:,} more steps are open"))
    if not found:
        found.append(Reason("moving", "nothing holds it up: it goes on right now"))
    return found


def _ended(facts: Facts) -> Reason:
    run = facts.run
    why = f": {run.error.type}: {brief(run.error.message, 200)}" if run.error is not None else ""
    match run.status:
        case RunStatus.COMPLETED:
            return Reason("completed", "it is completed", since=run.completed_at)
        case RunStatus.CANCELLED:
            moment = run.cancelled_at or run.completed_at
            return Reason("cancelled", f"it was cancelled{why}", since=moment)
        case _:
            again = f"`wfcelery retry {run.id}` tries again what failed"
            return Reason("failed", f"it has failed{why}; {again}", since=run.completed_at)


def _overall(facts: Facts, now: float, broker: BrokerSeen | None) -> Iterator[Reason]:
    run, seen = facts.run, facts.executor
    if run.held:
        go_on = f"`wfcelery resume {run.id}` lets it go on"
        yield Reason("held", f"held by an operator; {go_on}", since=run.updated_at)
    if seen is None or not seen.is_alive(now):
        last = f" since {about(now - seen.renewed_at)}" if seen is not None and seen.renewed_at else ""
        start = (
            f"start `wfcelery executor`, or go on here with `wfcelery run --resume {run.root_id or run.id}`"
        )
        yield Reason("no-executor", f"no executor is running{last}; {start}")
    if broker is not None and broker.trouble is not None:
        yield Reason("no-broker", broker.trouble)


class _Steps:
    """The reason of one open step after the other."""

    def __init__(self, facts: Facts, now: float, broker: BrokerSeen | None, lease_s: float) -> None:
        workers = facts.workers
        self._now = now
        self._lease_s = lease_s
        # Workers are heard by the executor: without one nobody knows who is there.
        self._is_heard = facts.executor is not None and facts.executor.is_alive(now)
        self._lengths = {} if broker is None else broker.lengths
        self._workers = {each.name: each for each in workers}
        alive = [each for each in workers if now - each.seen_at <= lease_s]
        self._consumed = {queue for each in alive for queue in each.queues}
        self._active = {step: each.name for each in alive for step in each.active}

    def reason(self, each: OpenStep) -> Reason:
        """Say what an open step waits for."""
        code, message, since, until = self._said(each)
        item = None if each.attempt.item == NO_ITEM else each.attempt.item
        return Reason(code, message, each.attempt.name, item, since, until)

    def _said(self, each: OpenStep) -> tuple[str, str, float | None, float | None]:
        attempt = each.attempt
        since = each.opened_at
        if attempt.status is StepStatus.RUNNING and attempt.started_at is not None:
            return "running", self._runs(each, attempt.worker), attempt.started_at, None
        if attempt.status in (StepStatus.READY, StepStatus.RUNNING) and self._holder(each) is not None:
            return "running", self._runs(each, self._holder(each)), None, None
        if attempt.status in (StepStatus.READY, StepStatus.RUNNING):
            since = attempt.sent_at or attempt.ready_at
            return (*self._queued(each, since), since, None)
        code, message = self._waits(each)
        action = each.step.action
        until = deadline(action, attempt) if isinstance(action, Gate) else attempt.due_at
        return code, message, since, until

    def _holder(self, each: OpenStep) -> str | None:
        """Name the worker that has said it runs the step, before the tables were told."""
        attempt = each.attempt
        return self._active.get(ids.step_id(each.run.id, attempt.name, attempt.item, attempt.attempt))

    def _runs(self, each: OpenStep, worker: str | None) -> str:
        on = "a worker" if worker is None else f"worker {worker}"
        text = f"step {_place(each)} runs on {on}{self._since(each.attempt.started_at)}"
        seen = self._workers.get(worker or "")
        if self._is_heard and seen is not None and self._now - seen.seen_at > self._lease_s:
            text += f", which was last heard of {about(self._now - seen.seen_at)} ago"
        return text

    def _queued(self, each: OpenStep, since: float | None) -> tuple[str, str]:
        queue = each.step.queue or STEPS_QUEUE
        waited = self._since(since)
        if self._is_heard and queue not in self._consumed:
            start = f"start `wfcelery worker --queues {queue}`"
            return "no-worker", f"no worker consumes queue `{queue}`: {_place(each)} waits{waited}; {start}"
        if each.attempt.status is StepStatus.READY:
            return "ready", f"{_place(each)} is about to be handed to queue `{queue}`{waited}"
        length = self._lengths.get(queue, 0)
        behind = f" behind about {length - 1:,} others" if length > 1 else ""
        return "queued", f"{_place(each)} waits in queue `{queue}`{behind}{waited}"

    def _waits(self, each: OpenStep) -> tuple[str, str]:
        attempt = each.attempt
        due = attempt.due_at
        left = "now" if due is None or due <= self._now else f"in {about(due - self._now)}"
        match attempt.waits_for:
            case WaitsFor.APPROVAL:
                return "approval", self._gate(each)
            case WaitsFor.SIGNAL:
                return "signal", self._signal(each)
            case WaitsFor.TIME if attempt.missing:
                return "starts-later", f"starts at {_moment(due)}, {left}"
            case WaitsFor.TIME:
                return "timer", f"{_place(each)} goes on at {_moment(due)}, {left}"
            case WaitsFor.RETRY:
                tries = f"{attempt.tries + 1}/{each.step.retry.max_attempts}"
                why = f": {each.before.type}: {brief(each.before.message, 200)}" if each.before else ""
                return "retry", f"retry {tries} of {_place(each)} {left}{why}"
            case WaitsFor.REPORT:
                waited = self._since(each.opened_at)
                return "report", f"{_place(each)} waits for its result to be reported from outside{waited}"
            case WaitsFor.PERSON:
                again = f"`wfcelery approve {each.run.id} {attempt.name}` lets it run again"
                return "person", f"{_place(each)} lost its worker and waits for a person; {again}"
            case _:
                return "waits", f"{_place(each)} waits for other steps"

    def _gate(self, each: OpenStep) -> str:
        gate, attempt = each.step.action, each.attempt
        whose, given, more = "a person", "", ""
        if isinstance(gate, Gate):
            named = gate.approvers + (gate.escalate_to if attempt.escalated else ())
            voted = [vote.voter for vote in each.votes if vote.approve]
            missing = [name for name in named if name not in voted]
            whose = _either(missing) if missing else whose
            given = f" ({len(voted)} of {gate.quorum} given)" if gate.quorum > 1 else ""
            ends = deadline(gate, attempt)
            if ends is not None:
                what = {OnTimeout.DENY: "denied", OnTimeout.APPROVE: "approved"}.get(
                    gate.on_timeout, "denied" if attempt.escalated else "escalated"
                )
                more = f", {what} by itself in {about(max(0.0, ends - self._now))}"
        return (
            f"waits for the approval of {whose} at {_place(each)}{given}{self._since(each.opened_at)}{more}"
        )

    def _signal(self, each: OpenStep) -> str:
        action, shown = each.step.action, each.shown
        name = action.signal if isinstance(action, Wait) else "?"
        key = shown.get("key") if isinstance(shown, Mapping) else None
        keyed = f" with key {key}" if key is not None else ""
        due = each.attempt.due_at
        until = f", for {about(due - self._now)} more" if due is not None and due > self._now else ""
        return f"waits for signal `{name}`{keyed} at {_place(each)}{self._since(each.opened_at)}{until}"

    def _since(self, moment: float | None) -> str:
        return "" if moment is None else f" since {about(max(0.0, self._now - moment))}"


def _grouped(found: Iterable[Reason]) -> list[Reason]:
    """Tell of the items of a foreach that wait for the same thing once, with how many they are."""
    told: dict[object, Reason] = {}
    counts: dict[object, int] = {}
    for each in found:
        place = id(each) if each.item is None else (each.code, each.step)
        counts[place] = counts.get(place, 0) + 1
        told.setdefault(place, each)
    return [
        each if counts[place] == 1 else _with_others(each, counts[place] - 1) for place, each in told.items()
    ]


def _with_others(reason: Reason, others: int) -> Reason:
    more = f"{reason.message} (and {others:,} more items)"
    return Reason(reason.code, more, reason.step, reason.item, reason.since, reason.until)


def _place(each: OpenStep) -> str:
    item = "" if each.attempt.item == NO_ITEM else f"[{each.attempt.item}]"
    inside = "" if each.run.parent is None else f" of sub-run {each.run.id}"
    return f"`{each.attempt.name}{item}`{inside}"


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _moment(moment: float | None) -> str:
    if moment is None:
        return "?"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def about(seconds: float) -> str:
    """Write a length of time as one would say it: in its largest unit, two where the first is small."""
    whole = round(max(0.0, seconds))
    for size, unit, part, smaller in _UNITS:
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
        if whole >= size:
            rest = (whole - size) // part
            return f"1 {unit} {rest} {smaller}" if rest else f"1 {unit}"
    return f"{whole} s"
