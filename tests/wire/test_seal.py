"""Forged, changed, swapped: who may say what."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.parts import ANN, ASKED, NOTED, ORDER, REF, RING, RUN, SAID, SECRET, WORKER_RING
from wfcelery.core.messages import Decide, StepBegun
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.executor.messages import Message, Unreadable
from wfcelery.executor.tidying import ANSWERS_KEPT_S
from wfcelery.wire import codec, envelope, keys, orders
from wfcelery.wire.keys import Keyring
from wfcelery.wire.seal import CLOCKS_DIFFER_S, REQUESTS_TAKEN_S, Seal

NOW = 1_700_000_000.5
DAY = 86_400.0
SEAL = Seal(RING, now=lambda: NOW)
BEGUN = SEAL.write(StepBegun(REF))
NOT_OURS = "it was forged or changed, or sealed with a key that is not (or no longer) in use here"
BEGUN_TEXT = '{"kind":"StepBegun","ref":["01jcqr5h2k7m9n3p4q5r6s7t8v","fetch",-1,1,0]}'


@pytest.mark.parametrize("message", SAID, ids=lambda each: type(each).__name__)
def test_what_workers_say_is_refused_under_the_command_key(message: Message) -> None:
    payload = envelope.stamp(codec.encode(message), NOW)
    sealed = envelope.close(envelope.ASKED, RING.commands[0], payload)
    name = type(message).__name__
    assert reason(sealed) == f"kind: {name} is not for requests to say"


@pytest.mark.parametrize("message", [*ASKED, *NOTED], ids=lambda each: type(each).__name__)
def test_no_request_is_taken_from_a_worker(message: Message) -> None:
    payload = codec.encode(message)
    honest = envelope.close(envelope.SAID, WORKER_RING.workers[0], payload)
    assert reason(honest) == f"kind: {type(message).__name__} is not for workers to say"
    pretended = envelope.close(envelope.ASKED, WORKER_RING.workers[0], payload)
    assert reason(pretended) == f"envelope: is not sealed by a key for a request: {NOT_OURS}"


def test_a_decision_under_the_worker_key_is_unreadable() -> None:
    payload = codec.encode(Decide("c1", RUN, "gate", approve=True, by=ANN))
    assert SEAL.read(envelope.close(envelope.SAID, WORKER_RING.workers[0], payload)) == Unreadable(
        'w1:...:{"kind":"Decide","command_id":"c1","run_id":"01jcqr5h2k7m9n3p4q5r6s7t8v","step":"gate",'
        '"approve":true,"by":{"id":"ann","groups":["ops"]}}',
        "kind: Decide is not for workers to say",
    )


@pytest.mark.parametrize(
    ("data", "text", "reason"),
    [
        (b"", "", "envelope: is not sealed: only what holds one of our keys may speak here"),
        (b"hello", "hello", "envelope: is not sealed: only what holds one of our keys may speak here"),
        (
            BEGUN_TEXT.encode(),
            BEGUN_TEXT,
            "envelope: is not sealed: only what holds one of our keys may speak here",
        ),
        (b"x" + BEGUN[1:], f"x1:...:{BEGUN_TEXT}", "envelope: has the unknown purpose 'x'"),
        (
            b"w2" + BEGUN[2:],
            f"w2:...:{BEGUN_TEXT}",
            "envelope: is of version '2', this wfcelery knows 1; upgrade whichever is older",
        ),
        (
            b"c" + BEGUN[1:],
            f"c1:...:{BEGUN_TEXT}",
            f"envelope: is not sealed by a key for a request: {NOT_OURS}",
        ),
        (
            b"o" + BEGUN[1:],
            f"o1:...:{BEGUN_TEXT}",
            "envelope: is sealed as an order to a worker, which does not belong here",
        ),
        (
            BEGUN.replace(b"fetch", b"steal"),
            f"w1:...:{BEGUN_TEXT.replace('fetch', 'steal')}",
            f"envelope: is not sealed by a key for a worker's message: {NOT_OURS}",
        ),
        (
            envelope.close(envelope.SAID, RING.workers[0], b"\xff\x00\x1b[2J"),
            "w1:...:\\xff\\x00\\x1b[2J",
            "message: is not UTF-8: invalid start byte (byte 0)",
        ),
        (
            b"w1:" + b"\xff" * 64 + b":{}",
            "w1:" + "\\xff" * 64 + ":{}",
            f"envelope: is not sealed by a key for a worker's message: {NOT_OURS}",
        ),
    ],
    ids=[
        "empty",
        "text",
        "bare",
        "purpose",
        "version",
        "swapped",
        "as order",
        "changed",
        "control",
        "no hex",
    ],
)
def test_what_is_not_sealed_by_who_may_is_kept_with_the_reason(data: bytes, text: str, reason: str) -> None:
    assert SEAL.read(data) == Unreadable(text, reason)


def test_an_order_is_no_report_and_a_report_no_order() -> None:
    order = orders.write_order(ORDER, RING)
    assert reason(order.encode()) == "envelope: is sealed as an order to a worker, which does not belong here"
    assert reason(b"w" + order[1:].encode()) == (
        f"envelope: is not sealed by a key for a worker's message: {NOT_OURS}"
    )
    assert order_fault(BEGUN.decode()) == (
        "envelope: is sealed as a worker's message, which does not belong here"
    )
    assert order_fault("o" + BEGUN[1:].decode()) == (
        f"envelope: is not sealed by a key for an order to a worker: {NOT_OURS}"
    )


# -- when


@pytest.mark.parametrize(
    ("age", "fault"),
    [
        (DAY - 1, None),
        (DAY + 1, "envelope: was sealed 1.0 days ago; requests are taken for 1 day"),
        (8 * DAY, "envelope: was sealed 8.0 days ago; requests are taken for 1 day"),
        (-3_599, None),
        (-5_400, "envelope: was sealed 1.5 hours in the future; set the clocks of the machines right"),
        (-40 * DAY, "envelope: was sealed 960.0 hours in the future; set the clocks of the machines right"),
    ],
)
@pytest.mark.parametrize("message", [*ASKED, *NOTED], ids=lambda each: type(each).__name__)
def test_a_request_is_taken_for_a_day(message: Message, age: float, fault: str | None) -> None:
    sealed = Seal(RING, now=lambda: NOW - age).write(message)
    read = SEAL.read(sealed)
    if fault is None:
        assert read == message
    else:
        assert isinstance(read, Unreadable)
        assert (read.text[:19], read.reason) == (f"c1:...:{int(NOW - age)}:{{", fault)


def test_the_answer_to_a_request_is_kept_for_longer_than_anybody_can_repeat_it() -> None:
    assert REQUESTS_TAKEN_S + CLOCKS_DIFFER_S < ANSWERS_KEPT_S / 2


def test_the_time_of_a_request_cannot_be_changed() -> None:
    old = Seal(RING, now=lambda: NOW - 8 * DAY).write(Decide("c1", RUN, "gate", approve=True, by=ANN))
    fresh = old.replace(b"%d:{" % (NOW - 8 * DAY), b"%d:{" % NOW)
    assert fresh != old
    assert reason(fresh) == f"envelope: is not sealed by a key for a request: {NOT_OURS}"


@pytest.mark.parametrize(
    "written", [b"{}", b":{}", b"-1:{}", b"1e9:{}", b"1.5:{}", b"999999999999:{}", b"\xd9\xa3:{}", b""]
)
def test_what_does_not_say_when_it_was_sealed_is_refused(written: bytes) -> None:
    request = envelope.close(envelope.ASKED, RING.commands[0], written)
    assert reason(request) == "envelope: does not say when it was sealed"
    if written.isascii():
        order = envelope.close(envelope.ORDERED, RING.workers[0], written)
        assert order_fault(order.decode()) == "envelope: does not say when it was sealed"


@pytest.mark.parametrize("message", SAID, ids=lambda each: type(each).__name__)
def test_what_a_worker_says_does_not_grow_old(message: Message) -> None:
    assert SEAL.read(Seal(RING, now=lambda: NOW - 400 * DAY).write(message)) == message


def test_an_order_is_taken_for_a_week() -> None:
    sealed = orders.write_order(ORDER, RING, now=lambda: NOW)
    for moment in (NOW + 7 * DAY - 1, NOW - 40 * DAY):
        assert orders.read_order(sealed, WORKER_RING, now=[moment].pop) == ORDER
    with pytest.raises(InvalidInput) as caught:
        orders.read_order(sealed, WORKER_RING, now=lambda: NOW + 7.1 * DAY)
    assert str(caught.value) == "envelope: was sealed 7.1 days ago; orders are taken for 7 days"


def test_without_a_key_nothing_is_believed() -> None:
    assert Seal(Keyring()).read(BEGUN) == Unreadable(
        f"w1:...:{BEGUN_TEXT}", f"envelope: is not sealed by a key for a worker's message: {NOT_OURS}"
    )


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    read = SEAL.read(b"x" * (16 * 1024 * 1024 + 81))
    assert read == Unreadable(
        "x" * 1_997 + "...", "envelope: is 16,777,297 bytes; at most 16,777,296 are allowed"
    )


def test_the_text_that_is_kept_is_short_and_shows_no_key() -> None:
    for data in (b"\x00" * 5_000, "ü".encode() * 2_001, b"x" * 2_001, b"\xff" * 700):
        read = SEAL.read(data)
        assert isinstance(read, Unreadable)
        assert (len(read.text), read.text[-3:]) == (2_000, "...")
    assert SEAL.read(b"x" * 2_000) == Unreadable("x" * 2_000, reason(b""))
    leaked = f"KEY={keys.worker_keys((SECRET,))[0].upper()} {RING.commands[0].hex()}"
    assert SEAL.read(leaked.encode()) == Unreadable("KEY=... ...", reason(leaked.encode()))


@settings(max_examples=80, deadline=None, database=None)
@given(st.binary(max_size=200), st.integers(0, len(BEGUN)), st.integers(0, 10))
def test_nothing_that_was_changed_is_believed_and_nothing_raises(junk: bytes, place: int, cut: int) -> None:
    changed = BEGUN[:place] + junk + BEGUN[place + cut :]
    read = SEAL.read(changed)
    assert isinstance(read, Unreadable) == (changed != BEGUN)
    signed = SEAL.read(envelope.close(envelope.SAID, RING.workers[0], junk))
    assert isinstance(signed, Unreadable)
    assert isinstance(SEAL.read(junk), Unreadable)


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        ({"ref": None}, "ref: must be a list of run_id, step, item, attempt, fence"),
        ({"tool": ""}, "tool: must have 1 to 255 characters; it has 0"),
        ({"timeout_s": True}, "timeout_s: must be a number, not true or false"),
        ({"priority": 11}, "priority: must be from 0 to 9"),
        ({"again": 1}, "again: must be true or false, not a number"),
        ({"prepared": {"args": 1}}, "prepared.secrets: is missing in Prepared"),
        ({"prepared": {"args": 1, "secrets": []}}, "prepared.secrets: must be a map, not a list"),
        (
            {"prepared": {"args": 1, "secrets": {"/a": [7]}}},
            "secrets/a: holds a piece that is neither text nor a secret",
        ),
        ({"kind": "StepDone"}, "'kind': is not a field of Dispatch"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else None,
)
def test_an_order_that_is_wrong_inside_is_refused(bend: dict[str, object], message: str) -> None:
    good = json.loads(codec.encode_order(ORDER))
    payload = envelope.stamp(json.dumps({**good, **bend}).encode(), time.time())
    sealed = envelope.close(envelope.ORDERED, RING.workers[0], payload)
    assert order_fault(sealed.decode()) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "envelope: is not sealed: only what holds one of our keys may speak here"),
        ("\ud800", "order: holds a lone surrogate, which is not valid text"),
        (
            "x" * (16 * 1024 * 1024 + 81),
            "order: is 16,777,297 characters; at most 16,777,296 are allowed",
        ),
    ],
    ids=["empty", "surrogate", "large"],
)
def test_what_is_no_order_is_refused(text: str, message: str) -> None:
    assert order_fault(text) == message


def test_a_ring_without_worker_keys_seals_no_order() -> None:
    with pytest.raises(InvalidSettings) as caught:
        orders.write_order(ORDER, Keyring())
    assert str(caught.value) == (
        "setting secret_key: this process has no worker key to seal orders with; set WFCELERY_SECRET_KEY; "
        "`wfcelery keys --new` prints a good one"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        RUN,
        f"{RUN}:fetch:1",
        f"{RUN}:fetch:01:0",
        f"{RUN}:fetch[-1]:1:0",
        f"{RUN}:fetch[]:1:0",
        f"{RUN}:fetch:1:0\n",
        f"{RUN}:fetch:\N{ARABIC-INDIC DIGIT THREE}:0",
        f"{RUN}:undo:undo:a:1:0",
        "r1:fetch:1:0",
        f"{RUN}:{'s' * 65}:1:0",
        f"{RUN}:fetch:1:{'9' * 5_000}",
    ],
)
def test_a_text_that_names_no_step_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        orders.ref_from(text)
    told = "is not RUN:STEP:ATTEMPT:FENCE or RUN:STEP[ITEM]:ATTEMPT:FENCE"
    shown = ascii(text[:64])
    assert str(caught.value) == f"ref: {shown if len(shown) <= 64 else shown[:64] + '...'} {told}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{RUN}:fetch:0:0", "ref: 0 is not an attempt: it must be from 1 to 2147483647"),
        (f"{RUN}:fetch[2147483648]:1:0", "ref: 2147483648 is not an item: it must be from -1 to 2147483647"),
        (f"{RUN}:fetch:1:{2**63}", f"ref: {2**63} is not a fence: it must be from 0 to {2**63 - 1}"),
    ],
)
def test_a_text_with_a_number_out_of_bounds_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        orders.ref_from(text)
    assert str(caught.value) == message


def reason(data: bytes) -> str:
    read = SEAL.read(data)
    return read.reason if isinstance(read, Unreadable) else f"read as {read}"


def order_fault(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        orders.read_order(text, WORKER_RING)
    return str(caught.value)
