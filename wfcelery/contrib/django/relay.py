"""The outbox of this project, as the relay sees it; and sending right after the commit, if that goes."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError

from wfcelery.contrib.django.models import Outbox, changes, moment
from wfcelery.contrib.django.place import workflows
from wfcelery.errors import WfceleryError
from wfcelery.workflows.outbox import Entry, Relay

logger: Final = logging.getLogger("wfcelery.outbox")

SOON_S: Final = 0.5
"""How long somebody who has just committed is kept for the answer."""
QUIET_S: Final = 5.0
"""For so long after a failure nobody is kept at all: the relay will see to it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows in one database of the project."""

    using: str

    def due(self, now: float, limit: int) -> Sequence[Entry]:
        """Give the rows whose time has come, the oldest first."""
        found = Outbox.objects.using(self.using).filter(next_at__lte=moment(now))
        return [row.entry() for row in found.order_by("created_at", "id")[:limit]]

    def remove(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        Outbox.objects.using(self.using).filter(pk__in=list(ids)).delete()

    def keep(self, entries: Sequence[Entry]) -> None:
        """Write what came of rows that are still there."""
        for each in entries:
            Outbox.objects.using(self.using).filter(pk=each.id).update(**changes(each))


@dataclass(slots=True)
class _Haste:
    """Remembers that the broker or the executor is away, so that not every request waits for them."""

    quiet_until: float = 0.0

    def send(self, entry: Entry, using: str) -> None:
        """Send one row that was just committed. Whatever goes wrong, the relay tries again."""
        if time.monotonic() < self.quiet_until:
            return
        try:
            made = Relay(workflows().links, SOON_S).deliver([entry], time.time())
            rows = Rows(using)
            rows.keep((*made.waiting, *made.refused))
            rows.remove(made.answered)
        except (WfceleryError, DatabaseError) as error:
            trouble = str(error)
        else:
            trouble = made.waiting[0].error if made.waiting else ""
            for each in made.refused:
                logger.error("the start of run %s was refused: %s", each.id, each.error)
        if trouble:
            self.quiet_until = time.monotonic() + QUIET_S
            logger.warning("the start of run %s waits in the outbox: %s", entry.id, trouble)


soon: Final = _Haste()
