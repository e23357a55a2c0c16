"""Words for the tests of the watch: steps, what workers say, what is judged."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from wfcelery.core.messages import StepLost
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.executor.messages import Holding, MarkerSeen
from wfcelery.executor.watch import Marker, Watch

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = 7
MOMENTS = count(1_000)
"""The clock of all workers: no two words are of the same moment."""
Q = "wfcelery.steps"
LEFT = "its message has left the queue, and no worker has it"


def ref(name: str, fence: int = 1) -> StepRef:
    return StepRef("run", name, NO_ITEM, 1, fence)


A, B, C = ref("a"), ref("b"), ref("c")


def out(*refs: StepRef, queue: str = Q, priority: int = 0) -> list[tuple[StepRef, str, int]]:
    return [(one, queue, priority) for one in refs]


def says(
    worker: str = "w1",
    *,
    boot: str = "boot-1",
    reserved: Iterable[StepRef] = (),
    active: Iterable[StepRef] = (),
    unsent: Iterable[StepRef] = (),
    leaving: bool = False,
) -> Holding:
    running = tuple((one, 1_000.0) for one in active)
    return Holding(
        worker,
        boot,
        float(next(MOMENTS)),
        reserved=tuple(reserved),
        active=running,
        unsent=tuple(unsent),
        leaving=leaving,
    )


def back(marker: Marker, worker: str | None = None) -> MarkerSeen:
    return MarkerSeen(marker.queue, marker.priority, marker.epoch, marker.number, worker)


def gone(step: StepRef) -> StepLost:
    return StepLost(step, counted=False, begun=False, reason=LEFT)


def silent(step: StepRef, worker: str = "w1", *, begun: bool = False, counted: bool = False) -> StepLost:
    reason = f"worker {worker} had it, and no worker has named it for 30 s"
    return StepLost(step, counted=counted, begun=begun, reason=reason, worker=worker)


def watching(*refs: StepRef) -> Watch:
    """A watch at 0 s with steps just sent."""
    watch = Watch(EPOCH)
    watch.sent(out(*refs), 0.0)
    return watch


def passed(watch: Watch, now: float) -> None:
    """Send every marker that is due, and let it come back in the same moment."""
    for marker in watch.markers(now):
        watch.hear(back(marker), now)
