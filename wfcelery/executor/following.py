"""What a decision means for other runs: sub-runs begin, parents hear of their end, signals are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from wfcelery.core.effects import CancelChild, FindSignal, HoldChild, StartChild, TellParent
from wfcelery.core.messages import Cancel, ChildEnded, Hold, Kind, NewRun, Principal, Resume, Signal
from wfcelery.core.state import Error, RunStatus
from wfcelery.errors import NotReachable, StoreError
from wfcelery.executor import asking, starting
from wfcelery.store import runs, signals

if TYPE_CHECKING:
    from wfcelery.executor.batch import Batch

ENGINE = Principal("engine", Kind.SYSTEM)

ForOthers: TypeAlias = StartChild | TellParent | CancelChild | HoldChild | FindSignal


def follow(batch: Batch, effect: ForOthers) -> None:
    """Do, in the same transaction, what a decision asks for beyond its own run."""
    match effect:
        case StartChild():
            _begin_child(batch, effect)
        case TellParent():
            batch.tell(effect.ended.parent.run_id, [effect.ended])
        case CancelChild():
            asking.request(batch, Cancel("", effect.child_id, ENGINE, effect.reason))
        case HoldChild():
            held = (Hold if effect.hold else Resume)("", effect.child_id, ENGINE)
            asking.request(batch, held)
        case FindSignal():
            _find_signal(batch, effect)


def _begin_child(batch: Batch, effect: StartChild) -> None:
    """Begin a sub-run; one whose input does not fit begins too, and fails at once, for everybody to see."""
    if effect.child_id in batch.runs or runs.owners(batch.conn, [effect.child_id]):
        # Whoever starts a run may name its id, and that of a sub-run can be worked out beforehand.
        taken = Error("conflict", f"another run has the id {effect.child_id}, which is that of the sub-run")
        batch.tell(effect.parent.run_id, [ChildEnded(effect.parent, RunStatus.FAILED, None, taken)])
        return
    try:
        defined = batch.catalogue.get(batch.conn, effect.definition_id)
        batch.begin(
            NewRun(
                run_id=effect.child_id,
                definition_id=effect.definition_id,
                version=defined.version,
                input=effect.input,
                by=Principal(effect.created_by),
                parent=effect.parent if effect.wait else None,
                root_id=effect.root_id,
                objection=starting.objection(defined.flow, effect.input),
            )
        )
    except (StoreError, NotReachable):
        raise
    except Exception as error:  # noqa: BLE001 - a sub-flow that cannot begin must not stop the others
        reason = batch.set_aside(effect.child_id, str(effect), error)
        ended = ChildEnded(effect.parent, RunStatus.FAILED, None, Error("internal", reason))
        batch.tell(effect.parent.run_id, [ended])


def _find_signal(batch: Batch, effect: FindSignal) -> None:
    if not batch.waits(effect.run_id, effect.name, effect.key):
        return  # It was cancelled in the very decision that opened it.
    stored = signals.find(batch.conn, effect.name, effect.key, now=batch.now)
    if stored is not None:
        signal = Signal(stored.id, effect.run_id, effect.name, ENGINE, stored.payload, effect.key)
        if asking.request(batch, signal).ok:
            # At once, so that the next who waits for this key finds the next signal.
            signals.use(batch.conn, [stored.id], now=batch.now)
