"""What a worker has taken from the queues: which steps it knows, and which wait for the pool."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wfcelery.core.state import StepRef
from wfcelery.shell.orders import Reader
from wfcelery.wire.orders import names_in

if TYPE_CHECKING:
    from billiard.pool import ApplyResult

MOST_SEEN: Final = 100_000


@dataclass(slots=True)
class Waiting:
    """A message that waits for the pool; `job` is what the pool made of it, once it was given to the pool."""

    refs: tuple[StepRef, ...]
    read: Reader
    job: Any = None


class Intake:
    """Knows the last 100,000 steps by name, and the messages that wait by id."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._waiting: dict[str, Waiting] = {}

    def has_seen(self, name: str) -> bool:
        """Tell whether a step of this name was taken before."""
        return name in self._seen

    def see(self, names: Iterable[str]) -> None:
        """Remember that these were taken."""
        self._seen.update(dict.fromkeys(names))
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)

    def forget(self, names: Iterable[str]) -> None:
        """Take these as new when they come again."""
        for name in names:
            self._seen.pop(name, None)

    def wait(self, task_id: str, refs: tuple[StepRef, ...], read: Reader) -> None:
        """Take note of a message that waits for the pool."""
        self._waiting[task_id] = Waiting(refs, read)

    def give(self, task_id: str, job: ApplyResult) -> None:
        """Take note that a message was given to the pool, which has not begun with it."""
        waiting = self._waiting.get(task_id)
        if waiting is not None:
            waiting.job = job

    def waits(self, task_id: str) -> bool:
        """Tell whether a message waits for the pool."""
        return task_id in self._waiting

    def end(self, task_id: str) -> None:
        """Take note that a message waits no longer."""
        self._waiting.pop(task_id, None)

    def waiting(self) -> list[str]:
        """Give the messages that wait."""
        return list(self._waiting)

    def waiting_names(self) -> set[str]:
        """Name the steps that wait."""
        return {name for task_id in self.waiting() for name in names_in(task_id)}

    def reserved(self) -> tuple[StepRef, ...]:
        """Give the steps that wait."""
        return tuple(ref for waiting in list(self._waiting.values()) for ref in waiting.refs)

    def take_back(self, may_go: Callable[[Waiting], bool]) -> list[Waiting]:
        """Forget the messages that wait and may go; give them."""
        gone = []
        for task_id, waiting in list(self._waiting.items()):
            if may_go(waiting) and self._waiting.pop(task_id, None) is not None:
                self.forget(names_in(task_id))
                gone.append(waiting)
        return gone


def keep_with_child(job: Any) -> bool:  # noqa: ANN401 - billiard ships no types
    """Have the pool remember a job that it has written to a child; tell whether there is such a child.

    When the broker is lost Celery lets the pool forget every job that is not accepted, for an ordinary broker
    delivers them again. One that is in a child's pipe runs all the same, but nobody would hear of it.
    """
    child = getattr(job, "_write_to", None)
    if child is None or not child._is_alive():  # noqa: SLF001 - there is no other way to ask
        return False
    job._cache[job._job] = job  # noqa: SLF001 - where `discard` took it out
    return True
