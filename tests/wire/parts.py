"""Messages of every kind that travels, one example each and at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from wfcelery.core import ids
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import (
    Cancel,
    Decide,
    EndStep,
    Hold,
    Kind,
    Principal,
    Resume,
    RetryRun,
    Signal,
    StepBegun,
    StepDone,
    StepFailed,
    StepLost,
    StepPostponed,
    StepReady,
    StepReturned,
)
from wfcelery.core.state import Error, Prepared, StepRef
from wfcelery.executor.messages import (
    Broadcast,
    Define,
    Holding,
    MarkerSeen,
    Message,
    NoticeTried,
    Retire,
    Start,
)
from wfcelery.wire import keys

SECRET = "a secret of good length"  # noqa: S105 - of no system
OLD_SECRET = "the secret before that one"  # noqa: S105 - of no system
RING = keys.keyring((SECRET,))
WORKER_RING = keys.worker_keyring(keys.worker_keys((SECRET,)))

RUN = "01jcqr5h2k7m9n3p4q5r6s7t8v"
REF = StepRef(RUN, "fetch", -1, 1, 0)
ANN = Principal("ann", groups=("ops",))

SAID: tuple[Message, ...] = (
    StepDone(REF, {"value": 1}, "found", "celery@one", 1000.5),
    StepFailed(REF, Error("ValueError", "no"), ("ValueError",), retry=False, retry_after=2.5, worker="w"),
    StepPostponed(REF, "celery@one", 1000.5),
    StepBegun(REF, "celery@one", 1000.5),
    StepReturned(REF, "leaving", "celery@one"),
    StepLost(REF, counted=False, begun=False, reason="killed", worker="celery@one"),
    Holding("celery@one", "boot", 1000.0, ("q",), "prefork", (REF,), ((REF, 999.0),), (REF,), leaving=True),
    MarkerSeen("wfcelery.steps", 5, 2, 17, "celery@one"),
)
ASKED: tuple[Message, ...] = (
    Define("c1", {"start": {"tool": "echo", "done": True}}, ANN, "greet"),
    Start("c1", RUN, "greet@2", {"n": 1}, ANN, "k", ("t",), "name", refuse_conflict=True, at=2000.0),
    Broadcast("c1", "paid", "order-7", ANN, {"sum": 5}),
    Retire("c1", "greet", ANN),
    Decide("c1", RUN, "gate", approve=True, by=ANN, comment="fine", form={"a": 1}, attempt=2, via="link"),
    Signal("c1", RUN, "paid", ANN, [1, 2], "k"),
    Cancel("c1", RUN, ANN, "no longer wanted"),
    Hold("c1", RUN, ANN),
    Resume("c1", RUN, ANN),
    RetryRun("c1", RUN, ANN),
    StepReady("c1", RUN, "nap", ANN, 3),
    EndStep("c1", RUN, "call", ANN, 3, {"a": 1}, "found", Error("refused", "no")),
)
NOTED: tuple[Message, ...] = (NoticeTried("n1", ("bob", "json://there"), "no route to host", final=True),)
ORDER = Dispatch(
    StepRef(RUN, "undo:fetch", 3, 2, 7),
    "greet",
    "http.request",
    Prepared({"token": "{{secret.KEY}}"}, {"/token": [{"secret": "KEY"}]}),
    "ann",
    2.5,
    "slow",
    9,
    again=True,
)

storable = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
texts = st.text(storable, min_size=1, max_size=20)
free = st.text(storable, max_size=20)
whole = st.integers(0, 2**63 - 1)
counts = st.integers(1, 2**31 - 1)
items = st.integers(-1, 2**31 - 1)
moments = st.floats(0, 32_503_680_000)
names = st.text("abcXYZ019_-", min_size=1, max_size=64)
steps = names | names.map("undo:{}".format)
run_ids = st.text(ids.ALPHABET, min_size=26, max_size=26)
refs = st.builds(StepRef, run_ids, steps, items, counts, whole)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | free
)
payloads = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(free, inner, max_size=3),
    max_leaves=6,
)
principals = st.builds(
    Principal, texts, st.sampled_from(Kind), st.lists(texts, max_size=3).map(tuple), st.just(value=False)
)
errors = st.builds(Error, free, free)

_BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "active": st.lists(st.tuples(refs, moments), max_size=3).map(tuple),
    "ancestors": st.lists(free, max_size=3).map(tuple),
    "at": moments,
    "attempt": counts,
    "by": principals,
    "document": payloads,
    "error": errors,
    "form": payloads,
    "input": payloads,
    "item": items,
    "number": whole,
    "epoch": whole,
    "payload": payloads,
    "priority": st.integers(0, 9),
    "queues": st.lists(texts, max_size=3).map(tuple),
    "reached": st.lists(texts, max_size=3).map(tuple),
    "ref": refs,
    "reserved": st.lists(refs, max_size=3).map(tuple),
    "result": payloads,
    "retry_after": st.floats(0, 366 * 86_400),
    "started_at": moments,
    "tags": st.lists(texts, max_size=3).map(tuple),
    "timeout_s": st.floats(0, 1e6),
    "unsent": st.lists(refs, max_size=3).map(tuple),
    "prepared": st.builds(Prepared, payloads, st.dictionaries(free, st.lists(free, max_size=2), max_size=2)),
}


def field(name: str, kind: str) -> st.SearchStrategy[Any]:
    """Draw what a field of that name and type may hold."""
    if kind.startswith("bool"):
        return st.booleans()
    if kind == "str":
        return texts
    drawn = _BY_NAME.get(name, texts)
    return drawn | st.none() if kind.endswith("| None") else drawn
