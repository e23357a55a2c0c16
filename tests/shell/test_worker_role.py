"""Messages that arrive at a worker: which may begin, and what is said about those that may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from billiard.pool import ApplyResult

from wfcelery.broker.client import connect
from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import Names
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import StepFailed, StepLost, StepReturned
from wfcelery.core.state import Prepared, StepRef
from wfcelery.executor.answers import new_run_id
from wfcelery.executor.messages import Message
from wfcelery.settings import Settings
from wfcelery.shell.bench import STOPPED
from wfcelery.shell.intake import keep_with_child
from wfcelery.shell.orders import Orders, texts_in
from wfcelery.shell.worker_role import HAD_BEFORE, WorkerRole
from wfcelery.wire.keys import keyring
from wfcelery.wire.orders import ref_text, write_order
from wfcelery.wire.seal import Seal

SECRET = "a secret of thirty-two characters"  # noqa: S105 - for tests
RING = keyring((SECRET,))
SEAL = Seal(RING)
NAMES = Names()
RUN = new_run_id(1.0)
FIRST, SECOND = (StepRef(RUN, step, -1, 1, 2) for step in ("first", "second"))


class Role:
    """A worker role, and what it has put into the mailbox."""

    def __init__(self, url: str) -> None:
        self.client = connect(url)
        self.client.flushall()
        conf = SimpleNamespace(broker_url=url, broker_transport_options={})
        worker = SimpleNamespace(hostname="w", pool_cls="prefork", app=SimpleNamespace(conf=conf))
        self.role = WorkerRole(cast("Any", worker), Settings(secret_key=(SECRET,)), ["wfcelery.steps"])

    def take(self, *refs: StepRef, redelivered: bool = False, sealed: bool = True) -> bool:
        """Let a message arrive that orders these steps; tell whether it may begin."""
        return self.role.admits(name(*refs), self.reader(*refs, sealed=sealed), redelivered=redelivered)

    def reader(self, *refs: StepRef, sealed: bool = True) -> Callable[[], Orders]:
        texts = [write_order(order(ref), RING) if sealed else "nonsense" for ref in refs]
        return lambda: self.role.orders(name(*refs), texts, None)

    def said(self) -> list[Message]:
        payloads = cast("list[bytes]", self.client.lrange(NAMES.mailbox, 0, -1))
        return [SEAL.read(payload) for payload in payloads]


def order(ref: StepRef) -> Dispatch:
    return Dispatch(ref, "flow", "echo", Prepared({}), "ann", None, None, None)


def name(*refs: StepRef) -> str:
    return "+".join(map(ref_text, refs))


def lost(ref: StepRef) -> StepLost:
    return StepLost(ref, counted=True, begun=True, reason=HAD_BEFORE, worker="w")


@pytest.fixture
def role(valkey_url: str) -> Iterator[Role]:
    made = Role(valkey_url)
    yield made
    made.client.close()


def test_a_second_copy_of_what_waits_is_dropped_without_a_word(role: Role) -> None:
    assert [role.take(FIRST), role.take(FIRST)] == [True, False]
    assert role.said() == []


def test_a_second_copy_of_what_is_over_is_reported_lost_for_its_report_may_be(role: Role) -> None:
    role.take(FIRST)
    role.role.accepted(name(FIRST))
    assert role.take(FIRST) is False
    assert role.said() == [lost(FIRST)]


def test_of_a_pack_that_is_known_in_part_the_rest_is_handed_back(role: Role) -> None:
    role.take(FIRST)
    role.role.accepted(name(FIRST))
    assert role.take(FIRST, SECOND) is False
    together = "it came together with a step that this worker has had before"
    assert role.said() == [lost(FIRST), StepReturned(SECOND, together, "w")]


def test_what_the_broker_delivers_again_is_handed_back(role: Role) -> None:
    assert role.take(FIRST, redelivered=True) is False
    assert role.said() == [StepReturned(FIRST, "the broker delivered it again", "w")]


def test_what_is_to_be_stopped_does_not_begin(role: Role) -> None:
    RedisMailbox(role.client, NAMES, 1, SEAL.read, SEAL.write).add_stops([name(FIRST)])
    role.role._learn_stops()
    assert [role.take(FIRST, sealed=False), role.take(FIRST)] == [False, False]
    assert role.said() == [StepFailed(FIRST, STOPPED, ("cancelled",), retry=False, worker="w")]


def test_nothing_is_said_on_the_word_of_a_message_that_nobody_has_sealed(role: Role) -> None:
    role.take(FIRST)
    role.role.accepted(name(FIRST))
    role.take(FIRST, sealed=False)
    role.take(SECOND, sealed=False, redelivered=True)
    role.take(SECOND, sealed=False)
    role.role.connected()
    assert [type(message).__name__ for message in role.said()] == ["Holding"]


def test_a_worker_that_leaves_hands_back_what_the_pool_does_not_have(role: Role) -> None:
    role.take(FIRST)
    role.take(SECOND)
    role.role.given(name(FIRST), ApplyResult({}, None))
    role.role.leave()
    assert role.said() == [StepReturned(SECOND, "its worker is stopping", "w")]
    assert [role.role.waits(name(FIRST)), role.role.waits(name(SECOND))] == [True, False]


def test_after_the_broker_was_lost_only_what_no_child_has_is_handed_back(role: Role) -> None:
    cache: dict[int, ApplyResult] = {}
    written, unwritten = ApplyResult(cache, None), ApplyResult(cache, None)
    written._write_to = SimpleNamespace(_is_alive=lambda: True)
    role.take(FIRST)
    role.take(SECOND)
    role.role.given(name(FIRST), written)
    role.role.given(name(SECOND), unwritten)
    for job in (written, unwritten):
        job.discard()  # as `AsynPool.flush` does with all that is not accepted
    role.role.connected()
    returned, holding = role.said()
    assert returned == StepReturned(SECOND, "its worker lost the broker", "w")
    assert getattr(holding, "reserved", None) == (FIRST,)
    assert cache == {written._job: written}


def test_a_job_of_a_child_that_has_died_is_in_nobodys_hands() -> None:
    job = ApplyResult({}, None)
    job._write_to = SimpleNamespace(_is_alive=lambda: False)
    assert [keep_with_child(job), keep_with_child(None)] == [False, False]


@pytest.mark.parametrize(
    ("payload", "texts"),
    [
        ([["a", "b"], {}, {"chain": None}], ["a", "b"]),
        ([["a"], {"kw": 1}, {}], None),
        ([["a"], {}], None),
        (["a", {}, {}], None),
        ({"args": ["a"], "expires": "2020-01-01"}, None),
        ("abc", None),
        (5, None),
        (None, None),
    ],
)
def test_a_message_that_does_not_call_the_task_as_we_do_is_nothing(payload: object, texts: object) -> None:
    assert texts_in(payload) == texts
