from __future__ import annotations

from collections.abc import Callable

import pytest
from kombu.transport.redis import Channel

from wfcelery.broker.names import PRIORITY_SEPARATOR, PRIORITY_STEPS, Names


def test_every_key_stands_under_the_prefix() -> None:
    names = Names("app:")
    assert [
        names.mailbox,
        names.inflight,
        names.epoch,
        names.bell,
        names.nonce,
        names.stops,
        names.pulse,
        names.figures,
        names.queue_key("gpu"),
    ] == [
        "app:wfcelery.mailbox",
        "app:wfcelery.inflight",
        "app:wfcelery.epoch",
        "app:wfcelery.bell",
        "app:wfcelery.nonce",
        "app:wfcelery.stops",
        "app:wfcelery.pulse",
        "app:wfcelery.figures",
        "app:gpu",
    ]


@pytest.mark.parametrize("priority", range(10))
def test_the_list_of_a_priority_is_the_one_that_kombu_uses(priority: int) -> None:
    kombu = Channel.__new__(Channel)
    key_of: Callable[[str, int], str] = kombu._q_for_pri
    assert Names().queue_key("q", priority) == key_of("q", priority)
    assert (list(PRIORITY_STEPS), PRIORITY_SEPARATOR) == (kombu.priority_steps, kombu.sep)
