"""The orders of one message: what it asks for is believed only as far as the executor has sealed it.

A message's id and headers are not sealed. Nothing is called or reported on their word alone: whoever can
write to the broker could otherwise have a worker report on any step whose id he has read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wfcelery.core.effects import Dispatch
from wfcelery.errors import InvalidInput
from wfcelery.wire.keys import Keyring
from wfcelery.wire.orders import names_in, read_order, ref_text

logger: Final = logging.getLogger("wfcelery.worker")

Orders = Mapping[str, Dispatch]
"""Orders that the executor has sealed, by name."""
Reader = Callable[[], Orders]


def read_orders(texts: Sequence[object], task_id: str, limits: object, ring: Keyring) -> Orders:
    """Give the orders that are sealed and came under their names and with their own time limits."""
    named = names_in(task_id)
    orders = {}
    for text in texts:
        try:
            order = read_order(str(text), ring)
        except InvalidInput as error:
            logger.error("an order was dropped: %s", error)  # noqa: TRY400 - nothing of ours has failed
            continue
        name = ref_text(order.ref)
        if name not in named:
            logger.error("an order was dropped: it is for %s and came as %s", name, task_id)
        elif not _fit(limits, order.timeout_s):
            logger.error("an order was dropped: %s came with other time limits than its own", name)
        else:
            orders[name] = order
    return orders


def texts_in(payload: object) -> Sequence[object] | None:
    """Give what should be orders in the body of a message; None if it does not call the task as we do."""
    match payload:
        case [list(texts), {}, _] if not payload[1]:
            return texts
        case _:
            return None


def _fit(limits: object, timeout_s: float | None) -> bool:
    """Tell whether a message's hard and soft limit are those of an order that may take so long."""
    match limits:
        case [None | int() | float() as hard, None | int() | float() as soft]:
            return (soft or None) == timeout_s and (not hard or (timeout_s is not None and hard >= timeout_s))
        case _:
            return not limits and timeout_s is None
