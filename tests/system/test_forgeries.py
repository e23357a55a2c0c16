"""Whoever reaches the broker can put anything there: none of it runs a tool, none of it stops a process."""

from __future__ import annotations

import base64
import functools
import itertools
import json
import pickle
import time
from collections.abc import Mapping

import pytest

from tests.system.flows import chain, single
from tests.system.system import SECRET, Process, System
from wfcelery.broker.names import EXECUTOR_QUEUE, MARKER_TASK, STEP_TASK, STEPS_QUEUE, Names
from wfcelery.broker.task_message import task_message
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import Cancel, Principal, StepDone
from wfcelery.core.state import Prepared, StepRef
from wfcelery.executor.answers import new_command_id, new_run_id
from wfcelery.executor.messages import Start
from wfcelery.wire import codec
from wfcelery.wire.envelope import ASKED, ORDERED, SAID, close, stamp
from wfcelery.wire.keys import keyring
from wfcelery.wire.orders import ref_text, write_order
from wfcelery.wire.seal import Seal

FRESH = 10
OURS = keyring((SECRET,))
THEIRS = keyring(("another secret of thirty-two characters",))
ANN = Principal("ann")
PICKLE = "application/x-python-serialize"
_TURNS = itertools.count()


def _ref() -> StepRef:
    """Of a run that there is not; each time another."""
    return StepRef(new_run_id(next(_TURNS)), "only", -1, 1, 1)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _message(task: object = STEP_TASK, args: object = (), **changed: object) -> bytes:
    """A Celery message as kombu keeps it, with parts of it changed: `headers__eta` is that of its headers."""
    message = json.loads(task_message(STEP_TASK, STEPS_QUEUE, task_id=ref_text(_ref())))
    message["headers"]["task"] = task
    message["body"] = _b64(json.dumps([args, {}, {}]).encode())
    for part, value in changed.items():
        owner = message
        *path, last = part.split("__")
        for key in path:
            owner = owner[key]
        owner[last if path else last.replace("_", "-")] = value
    return json.dumps(message).encode()


GARBAGE: Mapping[str, bytes] = {
    "not JSON": b"garbage",
    "not UTF-8": b"\xff\xfe\x00",
    "empty": b"",
    "a list": b"[]",
    "a text": b'"text"',
    "a number": b"1",
    "null": b"null",
    "an empty object": b"{}",
    "no properties": _message(properties=None),
    "empty properties": _message(properties={}),
    "no headers": _message(headers=None),
    "empty headers": _message(headers={}),
    "headers that are a text": _message(headers="text"),
    "bad base64": _message(body="!!!"),
    "no body": _message(body=None),
    "a body that is an object": _message(body={}),
    "a body that is not JSON": _message(body=_b64(b"garbage")),
    "pickle": _message(body=_b64(pickle.dumps([["x"], {}, {}])), content_type=PICKLE),
    "an unknown content type": _message(content_type="application/x-nothing"),
    "an unknown encoding": _message(content_encoding="nothing"),
    "an unknown body encoding": _message(properties__body_encoding="nothing"),
    "deep": b"[" * 100_000,
    "a date that is none": _message(headers__eta={"__type__": "datetime", "__value__": 5}),
    "an unknown task": _message("os.system", ["true"]),
    "a task that is a list": _message(["wfcelery.step"]),
    "a task that is null": _message(None),
    "no order": _message(),
    "two orders": _message(args=["one", "two"]),
    "an order that is a number": _message(args=[1]),
    "an order that is nothing": _message(args=["text"]),
    "arguments that are a text": _message(args="text"),
    "an id that is null": _message(headers__id=None),
    "an id that is a list": _message(headers__id=[1]),
    "an id that is no step": _message(headers__id="nothing", args=["text"]),
    "an eta that is a text": _message(headers__eta="soon"),
    "an eta that is a number": _message(headers__eta=5),
    "an expiry that is a text": _message(headers__expires="soon"),
    "limits that are a text": _message(headers__timelimit="soon"),
    "limits that are texts": _message(headers__timelimit=["soon", "late"]),
    "retries that are a text": _message(headers__retries="many"),
    "an argsrepr that is a list": _message(headers__argsrepr=[1]),
    "a reply_to that is a list": _message(properties__reply_to=[1]),
    "a delivery info that is a text": _message(properties__delivery_info="x"),
    "a marker without text": _message(MARKER_TASK),
    "a marker of half a character": _message(MARKER_TASK, ["\ud800"]),
    "a marker that is not JSON": _message(MARKER_TASK, body=_b64(b"garbage")),
    "a marker that is pickled": _message(MARKER_TASK, content_type=PICKLE),
}


@pytest.mark.parametrize("queue", [STEPS_QUEUE, EXECUTOR_QUEUE])
def test_garbage_in_a_queue_runs_nothing_and_stops_nobody(sqlite_system: System, queue: str) -> None:
    system = sqlite_system
    both = system.executor(), system.worker()
    _put(system, queue, *GARBAGE.values())
    system.until(lambda: _length(system, queue) == 0, "the garbage to be taken")
    _goes_on(system, both)


def test_garbage_in_place_of_remote_control_stops_nobody(sqlite_system: System) -> None:
    system = sqlite_system
    both = system.executor(), system.worker()
    with system.redis() as client:
        for name, message in GARBAGE.items():
            # One that ends a subscription is followed by a new one.
            heard = functools.partial(client.publish, "/0.celery.pidbox", message)
            system.until(lambda: heard() == len(both), f"both to hear {name}")  # noqa: B023 - called at once
    _goes_on(system, both)


def test_orders_that_the_executor_has_not_sealed_run_nothing(sqlite_system: System) -> None:
    system = sqlite_system
    both = system.executor(), system.worker()
    ref = _ref()
    order = Dispatch(ref, "one-act", "act", Prepared({}), "ann", None, None, None)
    sealed = write_order(order, OURS)
    forged = {
        "of another key": write_order(order, THEIRS),
        "not sealed": codec.encode_order(order).decode(),
        "of another purpose": close(SAID, OURS.workers[0], codec.encode_order(order)).decode(),
        "changed": sealed.replace('"act"', '"die"'),
    }
    assert forged["changed"] != sealed
    names = [ref_text(ref), ref_text(_ref())]
    _put(
        system,
        STEPS_QUEUE,
        *(_message(args=[text], headers__id=name) for text in forged.values() for name in names),
    )
    # A good order, under the name of another step.
    _put(system, STEPS_QUEUE, _message(args=[sealed], headers__id=names[1]))
    system.until(lambda: _length(system, STEPS_QUEUE) == 0, "the orders to be taken")
    _goes_on(system, both)


def test_a_step_whose_order_was_captured_and_changed_runs_all_the_same(sqlite_system: System) -> None:
    system = sqlite_system
    executor = system.executor()
    run = system.start(single("act", {"value": "good"}))
    key = Names().queue_key(STEPS_QUEUE, 5)
    with system.redis() as client:
        captured = system.until(lambda: client.lindex(key, -1), "the order to be in its queue")
        message = json.loads(captured)
        body = base64.b64decode(message["body"])
        message["body"] = _b64(body.replace(b"good", b"evil"))
        assert b"good" in body
        client.rpush(key, json.dumps(message))  # taken before the true one
    worker = system.worker()
    system.finish([run])
    assert system.workflows.get(run)["output"] == "good"
    assert len(system.ledger.lines("begin")) == 1
    system.ledger.path.unlink()
    _goes_on(system, (executor, worker), before=1)


def test_what_is_forged_in_the_mailbox_is_a_dead_letter_and_changes_nothing(system: System) -> None:
    executor = system.executor()
    waiting = system.start(single("act"))
    ref = StepRef(waiting, "only", -1, 1, 1)
    done, cancel = StepDone(ref, "forged"), Cancel(new_command_id(), waiting, ANN)
    start = Start(new_command_id(), new_run_id(0.0), single("die"), {}, ANN)
    true = Seal(OURS).write(done)
    forged = [
        b"",
        b"garbage",
        b"\xff\xfe",
        b"{}",
        b"w1:" + b"0" * 64 + b":{}",
        *(codec.encode(message) for message in (done, cancel, start)),
        *(Seal(THEIRS).write(message) for message in (done, cancel, start)),
        true.replace(b"forged", b"forgot"),
        # A worker's key does not ask for anything, and nobody's key says what only an executor finds out.
        close(SAID, OURS.workers[0], codec.encode(cancel)),
        close(ASKED, OURS.commands[0], stamp(codec.encode(done), time.time())),
        close(ORDERED, OURS.workers[0], stamp(codec.encode(done), time.time())),
        close(ASKED, OURS.commands[0], stamp(b'{"kind":"StepSent"}', time.time())),
    ]
    system.push(*forged)
    system.until(lambda: _letters(system) == len(forged), "all forgeries to be set aside")
    assert system.statuses() == {"running": 1}
    worker = system.worker()
    system.finish([waiting])
    assert system.workflows.get(waiting)["output"] is None
    system.ledger.path.unlink()
    _goes_on(system, (executor, worker), before=1)
    assert _letters(system) == len(forged)


def _goes_on(system: System, processes: tuple[Process, Process], before: int = 0) -> None:
    """Nobody has died, no tool but those of fresh runs is called, and nothing stays in the queues."""
    runs = system.start_many(chain(2), FRESH)
    system.finish(runs)
    assert [process.popen.poll() for process in processes] == [None, None]
    assert system.statuses() == {"completed": FRESH + before}
    assert {line.run for line in system.ledger.lines()} == set(runs)
    assert len(system.ledger.lines("begin")) == 2 * FRESH
    assert _length(system, STEPS_QUEUE) == 0


def _put(system: System, queue: str, *messages: bytes) -> None:
    with system.redis() as client:
        client.lpush(queue, *messages)


def _length(system: System, queue: str) -> int:
    with system.redis() as client:
        return int(client.llen(queue))


def _letters(system: System) -> int:
    return int(str(system.query("SELECT count(*) FROM dead_letters")[0][0]))
