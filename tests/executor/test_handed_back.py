"""A step that a worker hands back goes out once, whoever says it again, and only its new copy is watched."""

from __future__ import annotations

from collections.abc import Sequence

from tests.executor.desk import Desk, Recorder
from wfcelery.core.messages import StepReturned
from wfcelery.core.values import Json
from wfcelery.executor.executor import Executor
from wfcelery.executor.lookout import Lookout
from wfcelery.executor.packer import Packer
from wfcelery.executor.watch import Marker, Standing, Watch, Where

ONE: Json = {"name": "one", "start": "a", "steps": {"a": {"tool": "echo", "done": True}}}


class Post(Recorder):
    """A dispatcher with one line, whose markers come back to nobody."""

    def place(self, queue: str | None, priority: int | None) -> tuple[str, int]:
        return queue or "wfcelery.steps", priority or 3

    def mark(self, markers: Sequence[Marker]) -> None:
        pass


def test_the_copy_that_came_back_is_no_longer_watched(desk: Desk) -> None:
    post = Post()
    desk.out = post
    assert desk.lease is not None
    watch = Watch(desk.lease.epoch)
    lookout = Lookout(watch, post, Packer())
    desk.executor = Executor(desk.database, desk.lease, desk.mailbox, post, desk.clock, lookout=lookout)
    desk.start(ONE)
    first = desk.take("a").ref
    word = StepReturned(first, "its worker was stopped", "w1")
    desk.tell(word, word)
    desk.tell(word)
    second = desk.take("a").ref
    assert [each.ref for each in post.sent] == [first, second]
    assert second == first._replace(fence=second.fence)
    queued = Standing(Where.QUEUED, "wfcelery.steps", since=0.0)
    assert (len(watch), watch.standing(first), watch.standing(second)) == (1, Standing(Where.UNKNOWN), queued)
    desk.done("a", 1)
    assert len(watch) == 0
