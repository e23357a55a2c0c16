"""Starts that are written down in the application's own transaction, and sent once it has committed.

The row is the application's: it commits with the order that it belongs to, whether or not a broker is there,
and goes with it if that is rolled back. What is written is the request itself, with the ids of its run and of
its command, so that however often it is sent there is one run. It is sealed only when it is sent.

A row is removed after its answer was read from our tables, and never before.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol

from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, NotReachable, WfceleryError
from wfcelery.executor.answers import new_command_id, raise_refusal
from wfcelery.executor.messages import Start
from wfcelery.store import commands
from wfcelery.wire import codec
from wfcelery.workflows import starts
from wfcelery.workflows.asking import LONGEST_S, SHORTEST_S, pauses
from wfcelery.workflows.links import Links
from wfcelery.workflows.starts import FlowLike, Wish

if TYPE_CHECKING:
    from wfcelery.store.commands import Command

logger: Final = logging.getLogger("wfcelery.outbox")

AT_ONCE: Final = 100
"""How many rows are sent together."""
PATIENCE_S: Final = 2.0
"""How long their answers are waited for, before they are left for later."""
EVERY_S: Final = 1.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
LONGEST_ERROR: Final = 2_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. `id` is that of its run; `request` is JSON text.

    `next_at`: when it is to be sent (again). None: it was refused for the reason `error`, and stays until
    somebody looks at it.
    """

    id: str
    request: str
    created_at: float
    tries: int = 0
    next_at: float | None = 0.0
    error: str = ""


class Rows(Protocol):
    """The application's table. Every call is a transaction of its own."""

    def due(self, now: float, limit: int) -> Sequence[Entry]:
        """Give the rows whose `next_at` has come, the oldest first."""

    def remove(self, ids: Sequence[str]) -> None:
        """Delete rows; one that is gone already is no trouble."""

    def keep(self, entries: Sequence[Entry]) -> None:
        """Write `request`, `tries`, `next_at` and `error` of rows that are still there."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of a round, by the ids of runs.

    `answered` rows may go. `waiting` were not confirmed and are sent again later. `refused` stay, with the
    reason, and are not sent again.
    """

    answered: tuple[str, ...] = ()
    waiting: tuple[Entry, ...] = ()
    refused: tuple[Entry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.answered or self.waiting or self.refused)


def entry(
    flow: FlowLike,
    input: Json = None,  # noqa: A002 - the word of the flow language
    *,
    by: str | Principal,
    now: float,
    key: str | None = None,
    tags: Iterable[str] = (),
    run_id: str | None = None,
    at: dt.datetime | None = None,
    on_conflict: Literal["return", "error"] = "return",
    name: str | None = None,
) -> Entry:
    """Make a row of what `Workflows.start` takes. Raises `InvalidInput` for what could never be sent.

    Whether there is such a flow, and whether the input fits it, only the executor knows: see `refused`.
    """
    wish = Wish(
        flow=flow, input=input, key=key, tags=tags, run_id=run_id, at=at, on_conflict=on_conflict, name=name
    )
    request = starts.start(wish, by if isinstance(by, Principal) else Principal(by))
    return Entry(request.run_id, codec.encode(request).decode(), now, next_at=now)


def request_of(kept: Entry) -> Start:
    """Read what a row asks for."""
    message = codec.decode(kept.request.encode())
    if not isinstance(message, Start) or message.run_id != kept.id:
        raise InvalidInput("request", f"is not the start of run {kept.id}")
    return message


def renewed(kept: Entry, now: float) -> Entry:
    """Give a refused row another chance: as a new question about the same run, so that it can begin once."""
    request = replace(request_of(kept), command_id=new_command_id())
    return replace(kept, request=codec.encode(request).decode(), tries=0, next_at=now, error="")


def postponed(kept: Entry, now: float, error: str) -> Entry:
    """Give the row as it is kept when it was not confirmed: each pause is twice the one before."""
    pause = min(FIRST_PAUSE_S * 2.0 ** min(kept.tries, 10), LONGEST_PAUSE_S)
    return replace(kept, tries=kept.tries + 1, next_at=now + pause, error=error[:LONGEST_ERROR])


@dataclass(slots=True)
class Relay:
    """Sends rows. Any number of them may work on one table: what two of them send is still one run."""

    links: Links
    patience_s: float = PATIENCE_S
    _told: set[str] = field(default_factory=set)

    def once(self, rows: Rows, now: float | None = None, *, limit: int = AT_ONCE) -> Delivery:
        """Send what is due, and bring the table up to date with what came of it."""
        moment = time.time() if now is None else now
        made = self.deliver(rows.due(moment, limit), moment)
        if made.waiting or made.refused:
            rows.keep((*made.waiting, *made.refused))
        if made.answered:
            rows.remove(made.answered)
        return made

    def run(self, rows: Rows, stop: threading.Event, every_s: float = EVERY_S) -> None:
        """Go on until told to stop."""
        while not stop.is_set():
            made = self.once(rows)
            self._tell(made)
            if not made.answered:
                stop.wait(every_s)

    def deliver(self, entries: Sequence[Entry], now: float) -> Delivery:
        """Send rows, wait for their answers for a while, and say what came of each; no table is touched.

        Raises only for settings that cannot be used.
        """
        requests: dict[str, Start] = {}
        unread: list[Entry] = []
        for each in entries:
            try:
                requests[each.id] = request_of(each)
            except InvalidInput as error:
                unread.append(_refused(each, str(error)))
        # What was answered since the last try need not be sent again.
        tried = [requests[each.id].command_id for each in entries if each.tries and each.id in requests]
        answers, trouble = self._read(tried)
        unanswered = [request for request in requests.values() if request.command_id not in answers]
        if unanswered:
            try:
                self.links.push(unanswered)
            except NotReachable as error:
                trouble = str(error)
            else:
                found, trouble = self._wait(unanswered)
                answers |= found
        read = [each for each in entries if each.id in requests]
        known = {each.id: answers.get(requests[each.id].command_id) for each in read}
        made = _sorted(read, known, now, trouble)
        return replace(made, refused=(*made.refused, *unread))

    def _wait(self, requests: Sequence[Start]) -> tuple[dict[str, Command], str]:
        """Look for answers until all are there, or for as long as is worth it."""
        answers: dict[str, Command] = {}
        waits = pauses(SHORTEST_S, LONGEST_S)
        deadline = time.monotonic() + self.patience_s
        while True:
            found, trouble = self._read([each.command_id for each in requests])
            answers |= found
            left = deadline - time.monotonic()
            if len(answers) == len(requests) or left <= 0:
                said = trouble or f"no answer within {self.patience_s:g} s; perhaps no executor is running"
                return answers, said
            time.sleep(min(next(waits), left))

    def _read(self, ids: Sequence[str]) -> tuple[dict[str, Command], str]:
        if not ids:
            return {}, ""
        try:
            with self.links.reading() as conn:
                return commands.get_many(conn, ids), ""
        except NotReachable as error:
            return {}, str(error)

    def _tell(self, made: Delivery) -> None:
        """Say once what is wrong with a row, and again when it is something else."""
        for each in made.refused:
            logger.error("the start of run %s was refused: %s", each.id, each.error)
        troubles = {each.error for each in made.waiting}
        for trouble in sorted(troubles - self._told):
            logger.warning("starts wait in the outbox: %s", trouble)
        self._told = troubles if made else self._told


def _sorted(
    entries: Sequence[Entry], answers: dict[str, Command | None], now: float, trouble: str
) -> Delivery:
    answered, waiting, refused = [], [], []
    for each in entries:
        answer = answers[each.id]
        if answer is None:
            waiting.append(postponed(each, now, trouble))
        elif answer.ok:
            answered.append(each.id)
        else:
            refused.append(_refused(each, _reason(answer)))
    return Delivery(tuple(answered), tuple(waiting), tuple(refused))


def _reason(answer: Command) -> str:
    try:
        raise_refusal(answer)
    except WfceleryError as error:
        return str(error)
    return answer.reason


def _refused(kept: Entry, reason: str) -> Entry:
    return replace(kept, tries=kept.tries + 1, next_at=None, error=reason[:LONGEST_ERROR])
