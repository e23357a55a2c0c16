"""Reports on their way to the mailbox: kept until they are there, and pushed again after a flush.

The mailbox has a nonce, which whoever looks first makes anew when it is gone. When it is another than this
process saw last, the broker has lost its data: what was pushed during the last two leases may not have been
read, and is pushed again, once. A report that was read twice is harmless.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from wfcelery.broker.sender import Sender
from wfcelery.core.messages import Report, Trace
from wfcelery.core.state import StepRef
from wfcelery.errors import NotReachable
from wfcelery.wire.seal import Seal

MOST_BYTES_KEPT: Final = 64 * 2**20


class Outbox:
    """Pushes reports; safe to be used by several threads."""

    def __init__(self, sender: Sender, seal: Seal, *, keep_s: float) -> None:
        self._sender = sender
        self._seal = seal
        self._keep_s = keep_s
        self._lock = threading.Lock()
        self._sending = threading.Lock()  # held during a push: two threads would push one report twice
        self._unsent: list[tuple[StepRef, bytes]] = []
        self._recent: deque[tuple[float, bytes]] = deque()
        self._bytes = 0
        self._nonce: str | None = None

    @property
    def unsent(self) -> tuple[StepRef, ...]:
        """Name the steps whose reports the broker has not taken yet."""
        return tuple(ref for ref, _ in self._unsent)

    def push(self, *reports: Report | Trace) -> None:
        """Push reports; when the broker is away they are kept, and pushed by `tend`."""
        sealed = [(report.ref, self._seal.write(report)) for report in reports]
        with self._lock:
            self._unsent += sealed
        self._send_kept()

    def push_raw(self, payload: bytes) -> None:
        """Push what is sealed already and need not be kept."""
        self._note(self._sender.push([payload]))

    def tend(self) -> None:
        """Try again what could not be pushed, and look whether the broker has lost its data."""
        if self._unsent:
            self._send_kept()
        elif self._recent:
            self._forget_old()
            try:
                self._note(self._sender.push([]))
            except NotReachable:
                return

    def close(self, timeout_s: float) -> None:
        """Push what is left, for so long at most."""
        until = time.monotonic() + timeout_s
        pause = threading.Event()
        while self._unsent and time.monotonic() < until:
            self._send_kept()
            if self._unsent:
                pause.wait(0.2)

    def _send_kept(self) -> None:
        with self._sending:
            self._send_all()

    def _send_all(self) -> None:
        with self._lock:
            sending = list(self._unsent)
        if not sending:
            return
        payloads = [payload for _, payload in sending]
        try:
            nonce = self._sender.push(payloads)
        except NotReachable:
            return
        now = time.monotonic()
        with self._lock:
            sent = {id(payload) for payload in payloads}
            self._unsent = [each for each in self._unsent if id(each[1]) not in sent]
            self._recent.extend((now, payload) for payload in payloads)
            self._bytes += sum(map(len, payloads))
        self._forget_old()
        self._note(nonce, payloads)

    def _note(self, nonce: str, but: Sequence[bytes] = ()) -> None:
        """Push again what may be lost, if the nonce is another than before."""
        before, self._nonce = self._nonce, nonce
        if nonce != before:
            self._push_again(but)

    def _push_again(self, but: Sequence[bytes]) -> None:
        done = {id(payload) for payload in but}
        with self._lock:
            again = [payload for _, payload in self._recent if id(payload) not in done]
        if again:
            try:
                # Its nonce is not noted: if it is another once more, the next look shall see that.
                self._sender.push(again)
            except NotReachable:
                self._nonce = None  # so that the next look comes here again

    def _forget_old(self) -> None:
        oldest = time.monotonic() - self._keep_s
        with self._lock:
            while self._recent and (self._recent[0][0] < oldest or self._bytes > MOST_BYTES_KEPT):
                self._bytes -= len(self._recent.popleft()[1])
