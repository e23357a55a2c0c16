"""Orders: what a worker is asked to do, sealed, and the short text that names one step everywhere else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Final

from wfcelery.core import ids
from wfcelery.core.effects import Dispatch
from wfcelery.core.state import NO_ITEM, StepRef
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.wire import codec, envelope, fields
from wfcelery.wire.keys import Keyring

TAKEN_S: Final = 7 * 86_400.0
"""How old an order may be when it is read: as long as a step may wait in its queue.

One that is refused is found lost by the executor, and sent anew: nothing is forgotten.
"""

_LONGEST: Final = codec.MAX_BYTES + envelope.HEAD + envelope.STAMP
_NUMBER: Final = "0|[1-9][0-9]{0,18}"
_TOGETHER: Final = "+"
_REF: Final = re.compile(
    rf"([{ids.ALPHABET}]{{{ids.LENGTH}}}):((?:undo:)?[A-Za-z0-9_-]{{1,64}})(?:\[({_NUMBER})\])?:({_NUMBER}):({_NUMBER})"
)


def write_order(step: Dispatch, ring: Keyring, *, now: Callable[[], float] = time.time) -> str:
    """Write and seal what a worker is asked to do."""
    if not ring.workers:
        hint = "set WFCELERY_SECRET_KEY; `wfcelery keys --new` prints a good one"
        raise InvalidSettings("secret_key", f"this process has no worker key to seal orders with; {hint}")
    payload = envelope.stamp(codec.encode_order(step), now())
    return envelope.close(envelope.ORDERED, ring.workers[0], payload).decode()


def read_order(text: str, ring: Keyring, *, now: Callable[[], float] = time.time) -> Dispatch:
    """Read an order that one of the worker keys has sealed in the last week; else raises `InvalidInput`."""
    if len(text) > _LONGEST:
        raise InvalidInput("order", f"is {len(text):,} characters; at most {_LONGEST:,} are allowed")
    try:
        data = text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput("order", "holds a lone surrogate, which is not valid text") from exc
    _, payload = envelope.unseal(data, {envelope.ORDERED: ring.workers})
    age, rest = envelope.unstamp(payload, now())
    if age > TAKEN_S:
        raise envelope.too_old(age, "orders", TAKEN_S)
    return codec.decode_order(rest)


def ref_text(ref: StepRef) -> str:
    """Name one handing-over in one text: `RUN:STEP:ATTEMPT:FENCE`, or `RUN:STEP[ITEM]:ATTEMPT:FENCE`."""
    return f"{ids.step_id(ref.run_id, ref.step, ref.item, ref.attempt)}:{ref.fence}"


def ref_from(text: str) -> StepRef:
    """Read what `ref_text` wrote; anything else raises `InvalidInput`."""
    match = _REF.fullmatch(text)
    if match is None:
        raise InvalidInput(
            "ref", f"{fields.shown(text)} is not RUN:STEP:ATTEMPT:FENCE or RUN:STEP[ITEM]:ATTEMPT:FENCE"
        )
    run_id, step, item, attempt, fence = match.groups()
    found = StepRef(run_id, step, NO_ITEM if item is None else int(item), int(attempt), int(fence))
    fault = fields.faults_of_ref(*found)
    if fault:
        raise InvalidInput("ref", fault)
    return found


def task_id_of(refs: Iterable[StepRef]) -> str:
    """Name a message by the steps that travel in it, one or several."""
    return _TOGETHER.join(map(ref_text, refs))


def names_in(task_id: str) -> list[str]:
    """Give the names of the steps that a message says it holds; nothing is checked."""
    return task_id.split(_TOGETHER)


def refs_in(task_id: str) -> tuple[StepRef, ...]:
    """Read which steps a message says it holds. Raises `InvalidInput`."""
    return tuple(map(ref_from, names_in(task_id)))
