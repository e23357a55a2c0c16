"""Asking the executor, and reading its answers back: what is not in the tables was not confirmed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Final

from wfcelery.errors import NotConfirmed, NotReachable
from wfcelery.executor.messages import Asked, Start
from wfcelery.store import commands
from wfcelery.store.commands import Command
from wfcelery.workflows.links import Links, NoTables

SHORTEST_S: Final = 0.002
LONGEST_S: Final = 0.1
GROWTH: Final = 1.5
AT_ONCE: Final = 500
"""How many answers one query asks for."""


def ask(links: Links, requests: Sequence[Asked], timeout_s: float) -> list[Command]:
    """Send requests and give their answers, in order, once all of them are in the tables.

    Raises `NotConfirmed` when no further answer has come for `timeout_s`: those sent may happen yet.
    """
    if not requests:
        return []
    _reach(links)
    links.push(requests)
    answers: dict[str, Command] = {}
    waits = pauses(SHORTEST_S, LONGEST_S)
    deadline = time.monotonic() + timeout_s
    while missing := [request for request in requests if request.command_id not in answers]:
        trouble = ""
        try:
            found = _answers(links, missing[:AT_ONCE])
        except NotReachable as error:
            found, trouble = {}, str(error)
        if found:
            answers |= found
            waits = pauses(SHORTEST_S, LONGEST_S)
            deadline = time.monotonic() + timeout_s
            continue
        left = deadline - time.monotonic()
        if left <= 0:
            raise _not_confirmed(missing, len(requests), timeout_s, trouble)
        time.sleep(min(next(waits), left))
    return [answers[request.command_id] for request in requests]


def pauses(shortest: float, longest: float) -> Iterator[float]:
    """Give pauses that grow: a quick answer is seen at once, a slow one costs few looks."""
    growing = (shortest * GROWTH**power for power in itertools.count())
    return itertools.chain(
        itertools.takewhile(lambda pause: pause < longest, growing), itertools.repeat(longest)
    )


def _reach(links: Links) -> None:
    """Fail before anything is sent if the database is away; that it has no tables yet is another matter."""
    try:
        with links.reading():
            return
    except NoTables:
        return


def _answers(links: Links, requests: Sequence[Asked]) -> dict[str, Command]:
    with links.reading() as conn:
        return commands.get_many(conn, [request.command_id for request in requests])


def _not_confirmed(missing: Sequence[Asked], total: int, seconds: float, trouble: str) -> NotConfirmed:
    ids = tuple(each.run_id if isinstance(each, Start) else each.command_id for each in missing)
    if total == 1:
        what = f"the request {type(missing[0]).__name__}"
    else:
        what = f"a part of what was asked for ({len(missing):,} of {total:,})"
    return NotConfirmed(what, ids, seconds, trouble)
