"""Each class of fault that a message can have, and the one error that it gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.parts import ANN, REF, RUN
from wfcelery.core.limits import Limits
from wfcelery.core.messages import Decide, Principal, StepDone, StepFailed, StepSent
from wfcelery.core.state import Error
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.executor.messages import Define, Message, Start, Unreadable
from wfcelery.wire import codec

GOOD: dict[str, dict[str, Any]] = {
    "StepDone": {"ref": [RUN, "fetch", -1, 1, 0], "result": None},
    "StepFailed": {"ref": [RUN, "fetch", -1, 1, 0], "error": {"type": "E", "message": "m"}},
    "Holding": {"worker": "w", "boot_id": "b", "at": 1.0},
    "MarkerSeen": {"queue": "q", "priority": 0, "epoch": 0, "number": 0},
    "Decide": {"command_id": "c", "run_id": RUN, "step": "gate", "approve": True, "by": {"id": "ann"}},
    "Start": {"command_id": "c", "run_id": RUN, "flow": "greet", "input": None, "by": {"id": "ann"}},
    "StepReady": {"command_id": "c", "run_id": RUN, "step": "gate", "by": {"id": "ann"}},
}

TOO_LARGE = (
    "is 1,048,578 bytes of JSON; at most 1,048,576 are allowed. "
    "Store large data elsewhere and pass a reference"
)


def fault(data: bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        codec.decode(data)
    return str(caught.value)


def bent(kind: str, **fields: object) -> bytes:
    return json.dumps({"kind": kind, **GOOD[kind], **fields}).encode()


def ref(**changed: object) -> list[object]:
    return list({**REF._asdict(), **changed}.values())


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("kind", GOOD)
def test_what_the_corpus_bends_is_good(kind: str) -> None:
    assert type(codec.decode(bent(kind))).__name__ == kind


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "message: is not JSON: Expecting value (character 0)"),
        (b"\xff\xfe{}", "message: is not UTF-8: invalid start byte (byte 0)"),
        (b'{"kind": "\xed\xa0\x80"}', "message: is not UTF-8: invalid continuation byte (byte 10)"),
        (b"hello", "message: is not JSON: Expecting value (character 0)"),
        (b"{} {}", "message: is not JSON: Extra data (character 3)"),
        (b"{}\x00", "message: is not JSON: Extra data (character 2)"),
        (b'{"kind": "a\x00b"}', "message: is not JSON: Invalid control character at (character 11)"),
        (b"[]", "message: must be a map, not a list"),
        (b"null", "message: must be a map, not null"),
        (b"[" * 100_000, "message: is nested too deeply to be read"),
        (b'{"a":' * 100_000, "message: is nested too deeply to be read"),
        (b"9" * 5_000, "message: holds a number of thousands of digits"),
        (b'{"result": NaN}', "message: holds NaN, which JSON does not have"),
        (b'{"result": -Infinity}', "message: holds -Infinity, which JSON does not have"),
        (b" " * (16 * 1024 * 1024 + 1), "message: is 16,777,217 bytes; at most 16,777,216 are allowed"),
        (b"{}", "kind: None is not a message that travels"),
        (b'{"kind": 7}', "kind: 7 is not a message that travels"),
        (b'{"kind": ["StepDone"]}', "kind: a list is not a message that travels"),
        (b'{"kind": "Rubbish"}', "kind: 'Rubbish' is not a message that travels"),
        (b'{"kind": "StepSent"}', "kind: 'StepSent' is not a message that travels"),
        (b'{"kind": "ChildEnded"}', "kind: 'ChildEnded' is not a message that travels"),
        (b'{"kind": "Unreadable"}', "kind: 'Unreadable' is not a message that travels"),
        (b'{"kind": "Dispatch"}', "kind: 'Dispatch' is not a message that travels"),
        (
            '{"kind": "' + "ü" * 500 + '"}',
            "kind: '" + "\\xfc" * 15 + "\\xf... is not a message that travels",
        ),
        (b'{"kind": "Cancel"}', "by, command_id, run_id: is missing in Cancel"),
        (b'{"kind": "StepDone"}', "ref, result: is missing in StepDone"),
        (bent("StepDone", extra=1), "'extra': is not a field of StepDone"),
        (bent("StepDone", evnt="x"), "'evnt': is not a field of StepDone; did you mean event?"),
        (bent("Decide", by={"id": "a", "root": True}), "by.'root': is not a field of Principal"),
        (bent("Decide", by={}), "by.id: is missing in Principal"),
    ],
    ids=lambda each: repr(each) if len(each) < 60 else f"{len(each)} long",
)
def test_what_is_no_message_is_refused(data: bytes | str, message: str) -> None:
    assert fault(data if isinstance(data, bytes) else data.encode()) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bent("StepDone", event=7), "event: must be text, not a number"),
        (bent("StepDone", event=""), "event: must have 1 to 255 characters; it has 0"),
        (bent("StepDone", worker="w" * 256), "worker: must have 1 to 255 characters; it has 256"),
        (bent("StepDone", worker="a\x00b"), "worker: holds a NUL character"),
        (bent("StepDone", worker="\ud800"), "worker: holds a lone surrogate, which is not valid text"),
        (bent("StepDone", started_at=True), "started_at: must be a number, not true or false"),
        (bent("StepDone", started_at="now"), "started_at: must be a number, not text"),
        (bent("StepDone", started_at=-1), "started_at: must be from 0 to 32503680000"),
        (bent("StepDone", started_at=1e12), "started_at: must be from 0 to 32503680000"),
        (
            bent("StepDone").replace(b"null", b'null, "started_at": 1e999'),
            "started_at: must be from 0 to 32503680000",
        ),
        (bent("StepFailed", retry=1), "retry: must be true or false, not a number"),
        (bent("StepFailed", retry=None), "retry: must be true or false, not null"),
        (bent("StepFailed", retry_after=-0.5), "retry_after: must be from 0 to 31622400"),
        (bent("StepFailed", error=None), "error: must be a map, not null"),
        (bent("StepFailed", error={"type": "E", "message": 3}), "error.message: must be text, not a number"),
        (
            bent("StepFailed", error={"type": "E", "message": "m" * 65_537}),
            "error.message: must have 0 to 65,536 characters; it has 65,537",
        ),
        (bent("StepFailed", ancestors="E"), "ancestors: must be a list, not text"),
        (bent("StepFailed", ancestors=["E"] * 65), "ancestors: must have at most 64 items; it has 65"),
        (bent("StepFailed", ancestors=["E", 1]), "ancestors[1]: must be text, not a number"),
        (bent("Holding", at=None), "at: must be a number, not null"),
        (
            bent("Holding", reserved=[ref(), "x"]),
            "reserved[1]: must be a list of run_id, step, item, attempt, fence",
        ),
        (bent("Holding", active=[ref()]), "active[0]: must be a list of a step's reference and a moment"),
        (bent("Holding", active=[[ref(), -1]]), "active[0][1]: must be from 0 to 32503680000"),
        (
            bent("Holding", active=[[ref(item=-2), 1]]),
            "active[0][0]: -2 is not an item: it must be from -1 to 2147483647",
        ),
        (bent("MarkerSeen", priority=10), "priority: must be from 0 to 9"),
        (bent("MarkerSeen", number=1.0), "number: must be a whole number, not a fraction"),
        (bent("MarkerSeen", epoch=2**63), f"epoch: must be from 0 to {2**63 - 1}"),
        (bent("Decide", approve="yes"), "approve: must be true or false, not text"),
        (bent("Decide", command_id=None), "command_id: must be text, not null"),
        (bent("Decide", command_id="c" * 256), "command_id: must have 1 to 255 characters; it has 256"),
        (bent("Decide", by="ann"), "by: must be a map, not text"),
        (bent("Decide", by={"id": ""}), "by.id: must have 1 to 200 characters; it has 0"),
        (bent("Decide", by={"id": "a" * 201}), "by.id: must have 1 to 200 characters; it has 201"),
        (bent("Decide", by={"id": "a", "kind": "god"}), "by.kind: must be one of person, agent, system"),
        (bent("Decide", by={"id": "a", "kind": ["person"]}), "by.kind: must be one of person, agent, system"),
        (
            bent("Decide", by={"id": "a", "groups": ["g"] * 1_001}),
            "by.groups: must have at most 1,000 items; it has 1,001",
        ),
        (
            bent("Decide", by={"id": "a", "groups": [""]}),
            "by.groups[0]: must have 1 to 200 characters; it has 0",
        ),
        (
            bent("Decide", by={"id": "a", "at_terminal": True}),
            "by.at_terminal: never travels: it is for runs in the process of the person",
        ),
        (bent("StepReady", item=-2), "item: must be from -1 to 2147483647"),
        (bent("StepReady", item=False), "item: must be a whole number, not true or false"),
        (bent("Start", at=float(10**11)), "at: must be from 0 to 32503680000"),
        (bent("Start", tags=["t"] * 1_001), "tags: must have at most 1,000 items; it has 1,001"),
        (bent("Start", flow="f" * 256), "flow: must have 1 to 255 characters; it has 256"),
        (bent("Start", flow=nested(101)), "flow: is nested deeper than 100 levels"),
    ],
)
def test_a_field_that_is_not_what_it_must_be_is_refused(data: bytes, message: str) -> None:
    assert fault(data) == message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"run_id": "r1"}, "ref: 'r1' is not the id of a run"),
        ({"run_id": 7}, "ref: 7 is not the id of a run"),
        ({"run_id": RUN + "\n"}, f"ref: '{RUN}\\n' is not the id of a run"),
        ({"step": ""}, "ref: '' is not the name of a step"),
        ({"step": "a b"}, "ref: 'a b' is not the name of a step"),
        ({"step": "redo:a"}, "ref: 'redo:a' is not the name of a step"),
        ({"step": "s" * 65}, f"ref: '{'s' * 63}... is not the name of a step"),
        ({"item": -2}, "ref: -2 is not an item: it must be from -1 to 2147483647"),
        ({"item": True}, "ref: True is not an item: it must be from -1 to 2147483647"),
        ({"attempt": 0}, "ref: 0 is not an attempt: it must be from 1 to 2147483647"),
        ({"attempt": 1.0}, "ref: 1.0 is not an attempt: it must be from 1 to 2147483647"),
        ({"attempt": 2**31}, "ref: 2147483648 is not an attempt: it must be from 1 to 2147483647"),
        ({"fence": -1}, f"ref: -1 is not a fence: it must be from 0 to {2**63 - 1}"),
        ({"fence": None}, f"ref: None is not a fence: it must be from 0 to {2**63 - 1}"),
        ({"more": 1}, "ref: must be a list of run_id, step, item, attempt, fence"),
    ],
)
def test_a_reference_to_no_step_is_refused(changed: dict[str, object], message: str) -> None:
    assert fault(bent("StepDone", ref=ref(**changed))) == message


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (b'{"a": ["\\u0000"]}', "result.a[0]: holds a NUL character"),
        (b'{"\\ud800": 1}', "result: holds a lone surrogate, which is not valid text"),
        (b"[9223372036854775808]", "result[0]: is an integer beyond 64 bits; write it as text"),
        (b'{"a": 1e999}', "result.a: is inf, which JSON does not have"),
        (b"[" * 33 + b"]" * 33, "result" + "[0]" * 32 + ": is nested deeper than 32 levels"),
        (
            b'"' + b"x" * 1024 * 1024 + b'"',
            f"result: {TOO_LARGE}",
        ),
    ],
    ids=["nul", "surrogate", "integer", "infinity", "depth", "size"],
)
def test_a_payload_that_no_table_can_keep_is_refused(result: bytes, message: str) -> None:
    assert fault(bent("StepDone").replace(b"null", result)) == message


def test_a_payload_as_deep_and_large_as_allowed_passes() -> None:
    deep = StepDone(REF, nested(32))
    assert codec.decode(codec.encode(deep)) == deep
    large = StepDone(REF, "x" * (1024 * 1024 - 2))
    assert codec.decode(codec.encode(large)) == large


def test_the_bounds_can_be_set() -> None:
    with pytest.raises(InvalidInput, match="result: is 22 bytes of JSON; at most 10 are allowed"):
        codec.decode(bent("StepDone", result="x" * 20), limits=Limits(payload_bytes=10))
    with pytest.raises(InvalidInput, match="message: is 94 bytes; at most 50 are allowed"):
        codec.decode(bent("StepDone"), max_bytes=50)


def test_a_document_may_be_wrong_in_ways_that_the_check_of_flows_explains() -> None:
    for document in (nested(40), "\x00", {"start": "x" * 300_000}):
        message = Define("c", document, ANN)
        assert codec.decode(codec.encode(message)) == message


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (StepSent(REF), "kind: StepSent is not a message that travels"),
        (Unreadable("x", "y"), "kind: Unreadable is not a message that travels"),
        (Start("c", RUN, "greet", {"a": {1: 2}}, ANN), "input.a: has the key 1, which is not text"),  # type: ignore[dict-item]
        (Start("c", RUN, "greet", {"a": float("nan")}, ANN), "input.a: is nan, which JSON does not have"),
        (
            Start("c", RUN, "greet", "x" * 1024 * 1024, ANN),
            f"input: {TOO_LARGE}",
        ),
        (
            Decide("c", RUN, "gate", approve=True, by=Principal("ann", at_terminal=True)),
            "by.at_terminal: never travels: it is for runs in the process of the person",
        ),
        (
            Decide("c", RUN, "gate", approve=True, by=ANN, comment="x" * 65_537),
            "comment: must have 0 to 65,536 characters; it has 65,537",
        ),
        (
            StepDone(REF, float("inf")),
            "message: holds NaN or Infinity, which JSON does not have",
        ),
        (
            StepFailed(REF, Error("E", "\ud800")),
            "message: holds a lone surrogate, which is not valid text",
        ),
        (StepDone(REF, {1, 2}), "message: cannot be written as JSON: set is not JSON"),  # type: ignore[arg-type]
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, str) else None,
)
def test_who_sends_what_could_not_be_read_is_told(message: Message, fault: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        codec.encode(message)
    assert str(caught.value) == fault


def test_a_result_that_holds_itself_is_refused() -> None:
    endless: list[Json] = []
    endless.append(endless)
    with pytest.raises(InvalidInput) as caught:
        codec.encode(StepDone(REF, endless))
    assert str(caught.value) == "message: is nested too deeply to be written"


@pytest.mark.parametrize("kind", ["kind", "ref", "result", "by", "flow", "error", "reserved"])
def test_no_depth_gets_through_as_anything_but_a_typed_error(kind: str) -> None:
    holders = [*GOOD, "Nothing"] if kind != "kind" else ["StepDone"]
    for depth in (34, 101, 500, *range(800, 1_000, 20), 5_000):
        deep = b"[" * depth + b"]" * depth
        for holder in holders:
            data = b'{"kind": "%b", "%b": %b}' % (holder.encode(), kind.encode(), deep)
            assert fault(data) != ""


RUBBISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [(kind, name) for kind in GOOD for name in codec._SHAPES[kind].checks]


@settings(max_examples=80, deadline=None, database=None)
@given(st.sampled_from(PLACES), RUBBISH)
def test_random_bends_give_a_message_or_one_typed_error(place: tuple[str, str], rubbish: Json) -> None:
    kind, name = place
    try:
        message = codec.decode(bent(kind, **{name: rubbish}))
    except InvalidInput:
        return
    assert codec.decode(codec.encode(message)) == message
