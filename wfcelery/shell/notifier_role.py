"""The notifier: takes the ids of notices from its queue, sends them, and tells the executor how it went."""

from __future__ import annotations

import contextlib
import logging
import re
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from wfcelery.broker.client import connect, key_prefix
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse
from wfcelery.broker.sender import Sender
from wfcelery.errors import InvalidSettings, NotReachable, StoreError
from wfcelery.executor.messages import NoticeTried
from wfcelery.notify.notifier import Notifier
from wfcelery.notify.post import NoApprise, Post, is_installed
from wfcelery.rights.loading import load_authority
from wfcelery.settings import check_base_url
from wfcelery.store.database import open_database
from wfcelery.wire.keys import keyring
from wfcelery.wire.seal import Seal

if TYPE_CHECKING:
    from celery import Celery

    from wfcelery.settings import Settings

logger: Final = logging.getLogger("wfcelery.notifier")

NAME: Final = "notifier"
_ID: Final = re.compile(r"[!-~]{1,255}")


class NotifierRole:
    """One process that sends notices. It holds the link key, reads the tables, and writes none."""

    def __init__(self, app: Celery, settings: Settings) -> None:
        check(settings)
        ring = keyring(settings.secret_key)
        options = app.conf.broker_transport_options
        names = Names(key_prefix(options))
        self._client = connect(str(app.conf.broker_url), options)
        self._sender = Sender(self._client, names)
        self._pulse = Pulse(self._client, names)
        self._seal = Seal(ring)
        self._database = open_database(settings.database_url)
        self._notifier = Notifier(self._database, load_authority(settings), ring, settings, Post().send)
        if settings.base_url is None:
            logger.warning(
                "WFCELERY_BASE_URL is not set: notices go out without links; set it to where people reach "
                "`wfcelery web`, like https://flows.example.org"
            )

    def tell(self, notice_ids: Sequence[object]) -> None:
        """Send notices, one after the other. What cannot be done now is asked for again by the executor."""
        for notice_id in notice_ids:
            if not isinstance(notice_id, str) or _ID.fullmatch(notice_id) is None:
                logger.error("a message was dropped: it names no notice")
                continue
            try:
                tried = self._tried(notice_id)
                if tried is not None:
                    self._sender.push([self._seal.write(tried)])
            except (NotReachable, StoreError) as error:
                logger.warning("notice %s waits: %s", notice_id, error)

    def _tried(self, notice_id: str) -> NoticeTried | None:
        try:
            return self._notifier.deliver(notice_id, time.time())
        except (NotReachable, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - one notice must not keep those behind it from being sent
            # Its words, and those of whoever asked, may hold what was to be sent: only the place is told.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
            logger.error("notice %s could not be handled: %s", notice_id, what)  # noqa: TRY400 - same
            return NoticeTried(notice_id, error=f"the notifier failed: {type(error).__name__}")

    def beat(self) -> None:
        """Say that this process takes messages."""
        with contextlib.suppress(NotReachable):
            self._pulse.beat(NAME, time.time())

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()


def check(settings: Settings) -> None:
    """Refuse to start without what sends and the key for links, or with what no link can begin with."""
    if not is_installed():
        raise NoApprise
    if not settings.secret_key:
        reason = "is not set; the notifier needs it to sign links (`wfcelery keys --new` prints a good one)"
        raise InvalidSettings("secret_key", reason)
    if settings.base_url is not None:
        check_base_url(settings.base_url)
