"""Handling one notice: read, see who is meant, make their links, send, and say how it went."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from wfcelery.core.limits import DEFAULT
from wfcelery.executor.definitions import Definitions
from wfcelery.executor.messages import NoticeTried
from wfcelery.notify import facts as notify_facts
from wfcelery.notify import words
from wfcelery.notify.post import NotSent
from wfcelery.notify.recipients import Recipient, recipients
from wfcelery.notify.texts import Text, Ways, text_of
from wfcelery.store import notices
from wfcelery.store.notices import Notice, NoticeStatus
from wfcelery.wire.link import Link, link_url, write_link

if TYPE_CHECKING:
    from wfcelery.notify.facts import Facts
    from wfcelery.rights import Authority
    from wfcelery.settings import Settings
    from wfcelery.store.database import Database
    from wfcelery.wire.keys import Keyring

logger: Final = logging.getLogger("wfcelery.notifier")

REMEMBERED: Final = 10_000
"""Notices of which this process knows whom it has reached, whatever has become of its reports."""

LONGEST_ERROR: Final = 1_000
_DAY_S: Final = 86_400.0

Send = Callable[[str, Text], None]
"""Sends a text to an address, or raises `NotSent`."""


class Notifier:
    """Sends notices. It reads the tables and never writes them. Threads may share it.

    Links are made here, at the last moment, and are in nothing but the text that is sent.
    """

    def __init__(
        self, database: Database, authority: Authority, ring: Keyring, settings: Settings, send: Send
    ) -> None:
        self._database = database
        self._authority = authority
        self._ring = ring
        self._base_url = settings.base_url
        self._link_s = settings.link_days * _DAY_S
        self._send = send
        self._definitions = Definitions(None, DEFAULT)
        self._turn = threading.Lock()
        self._in_hand: set[str] = set()
        self._complained: set[str] = set()
        self._reached: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def deliver(self, notice_id: str, now: float) -> NoticeTried | None:
        """Send a notice to everybody who has not got it yet; None if there is nothing to report.

        Raises `NotReachable` if the tables cannot be read: the notice waits in them, and is asked for again.
        """
        with self._turn:
            if notice_id in self._in_hand:
                return None
            self._in_hand.add(notice_id)
        try:
            return self._deliver(notice_id, now)
        finally:
            with self._turn:
                self._in_hand.discard(notice_id)

    def _deliver(self, notice_id: str, now: float) -> NoticeTried | None:
        with self._turn, self._database.reading() as conn:
            notice = notices.get(conn, notice_id)
            if notice is None or notice.status is not NoticeStatus.WAITING:
                return None
            facts = notify_facts.read(conn, self._definitions, notice)
        if facts is None or notify_facts.is_pointless(notice, facts):
            return NoticeTried(notice_id)
        return self._tell(notice, facts, now)

    def _tell(self, notice: Notice, facts: Facts, now: float) -> NoticeTried:
        reached = list(dict.fromkeys((*notice.reached, *self._reached.get(notice.id, ()))))
        faults: list[NotSent] = []
        for recipient in recipients(self._authority, notice, facts):
            if recipient.name in reached:
                continue
            fault = self._reach(recipient, text_of(notice, facts, self._ways(facts, recipient.decider, now)))
            if fault is None:
                reached.append(recipient.name)
                self._remember(notice.id, tuple(reached))
            else:
                faults.append(NotSent(f"{words.name(recipient.name)} {fault}", final=fault.final))
                self._complain(notice, faults[-1])
        error = "; ".join(map(str, faults))
        is_final = bool(faults) and all(fault.final for fault in faults)
        return NoticeTried(notice.id, tuple(reached), error[:LONGEST_ERROR], is_final)

    def _reach(self, recipient: Recipient, text: Text) -> NotSent | None:
        """Try every address: whoever has it at one of them is reached."""
        if not recipient.addresses:
            return NotSent(f"has no address: {recipient.lacks}", final=True)
        faults = []
        for address in recipient.addresses:
            try:
                self._send(address, text)
            except NotSent as fault:
                faults.append(fault)
        if len(faults) < len(recipient.addresses):
            return None
        said = ", ".join(dict.fromkeys(map(str, faults)))
        return NotSent(f"was not reached: {said}", final=all(fault.final for fault in faults))

    def _ways(self, facts: Facts, decider: str | None, now: float) -> Ways:
        if self._base_url is None:
            return Ways()
        console = f"{self._base_url.rstrip('/')}/runs/{quote(facts.run.id, safe='')}"
        closes_at = facts.closes_at
        until = round(now + self._link_s) if closes_at is None else closes_at
        if decider is None or facts.attempt is None or until <= now:
            return Ways(console=console)
        link = Link(facts.run.id, facts.attempt.name, facts.attempt.attempt, decider, until)
        return Ways(link_url(self._base_url, write_link(self._ring, link)), until, console)

    def _complain(self, notice: Notice, fault: NotSent) -> None:
        """Write a fault into the log; one that stays until somebody mends it, once."""
        said = str(fault)
        if said in self._complained:
            return
        if fault.final and len(self._complained) < REMEMBERED:
            self._complained.add(said)
        place = {"run_id": notice.run_id, "step": notice.step, "attempt": notice.attempt or None}
        logger.warning("notice %s (%s): %s", notice.id, notice.kind, said, extra=place)

    def _remember(self, notice_id: str, reached: tuple[str, ...]) -> None:
        with self._turn:
            self._reached[notice_id] = reached
            while len(self._reached) > REMEMBERED:
                self._reached.popitem(last=False)
