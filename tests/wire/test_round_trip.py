from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire import parts
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import Hold, Principal, StepBegun, StepDone
from wfcelery.core.state import StepRef
from wfcelery.executor.messages import Message
from wfcelery.wire import codec, orders
from wfcelery.wire.seal import Seal

CLASSES = sorted(codec.SAID | codec.ASKED | codec.NOTED, key=lambda cls: cls.__name__)


def any_of(cls: type) -> st.SearchStrategy[Message]:
    return st.builds(
        cls, **{each.name: parts.field(each.name, str(each.type)) for each in dataclasses.fields(cls)}
    )


def test_there_is_an_example_of_each_kind_that_travels() -> None:
    assert {type(each) for each in parts.SAID} == codec.SAID
    assert {type(each) for each in parts.ASKED} == codec.ASKED
    assert {type(each) for each in parts.NOTED} == codec.NOTED


@pytest.mark.parametrize(
    "message", [*parts.SAID, *parts.ASKED, *parts.NOTED], ids=lambda each: type(each).__name__
)
def test_what_was_sealed_is_read_as_it_was(message: Message) -> None:
    seal = Seal(parts.RING)
    assert seal.read(seal.write(message)) == message


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_message_survives_the_journey(cls: type) -> None:
    @settings(max_examples=12, deadline=None, database=None)
    @given(any_of(cls))
    def survives(message: Message) -> None:
        assert codec.decode(codec.encode(message)) == message

    survives()


@settings(max_examples=30, deadline=None, database=None)
@given(any_of(Dispatch))
def test_every_order_survives_the_journey(order: Dispatch) -> None:
    assert orders.read_order(orders.write_order(order, parts.RING), parts.WORKER_RING) == order


@settings(max_examples=60, deadline=None, database=None)
@given(parts.refs)
def test_every_reference_survives_as_text(ref: StepRef) -> None:
    assert orders.ref_from(orders.ref_text(ref)) == ref


def test_references_as_text_are_short_and_tell_steps_from_their_undoing() -> None:
    refs = [
        StepRef(parts.RUN, "undo", -1, 1, 0),
        StepRef(parts.RUN, "undo:1", -1, 1, 0),
        StepRef(parts.RUN, "fetch", 0, 2, 9),
    ]
    assert [orders.ref_text(ref) for ref in refs] == [
        f"{parts.RUN}:undo:1:0",
        f"{parts.RUN}:undo:1:1:0",
        f"{parts.RUN}:fetch[0]:2:9",
    ]


def test_a_message_is_compact_json_without_what_goes_without_saying() -> None:
    assert codec.encode(StepDone(parts.REF, "größer")) == (
        '{"kind":"StepDone","ref":["01jcqr5h2k7m9n3p4q5r6s7t8v","fetch",-1,1,0],"result":"größer"}'.encode()
    )


def test_an_envelope_is_purpose_version_signature_and_json() -> None:
    head, signature, payload = Seal(parts.RING).write(StepBegun(parts.REF)).split(b":", 2)
    assert head == b"w1"
    assert len(bytes.fromhex(signature.decode())) == 32
    assert json.loads(payload) == {"kind": "StepBegun", "ref": [parts.RUN, "fetch", -1, 1, 0]}


def test_the_envelope_of_a_request_says_when_it_was_sealed() -> None:
    sealed = Seal(parts.RING, now=lambda: 1_700_000_000.9).write(Hold("c1", parts.RUN, Principal("ann")))
    head, _, at, payload = sealed.split(b":", 3)
    assert (head, at) == (b"c1", b"1700000000")
    assert json.loads(payload) == {
        "kind": "Hold",
        "command_id": "c1",
        "run_id": parts.RUN,
        "by": {"id": "ann"},
    }
