"""Reading runs: from the tables, which are the truth; no broker is needed for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeAlias

from wfcelery.core.state import LIVE
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, NotFound, TimedOut
from wfcelery.store import runs, views
from wfcelery.workflows.asking import pauses
from wfcelery.workflows.links import Links, NoTables
from wfcelery.workflows.run import Run

if TYPE_CHECKING:
    from wfcelery.store import Connection

SHORTEST_S: Final = 0.005
LONGEST_S: Final = 0.5
MOST_OF_A_KEY: Final = 1_000

RunLike: TypeAlias = str | Run | None
Object: TypeAlias = dict[str, Json]
Objects: TypeAlias = list[dict[str, Json]]


class Reading:
    """The part of `Workflows` that reads."""

    def __init__(self, links: Links, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._links = links

    @property
    def links(self) -> Links:
        """The ways to the system, for those who read more of it than is offered here."""
        return self._links

    def get(self, run: RunLike = None, *, flow: str | None = None, key: str | None = None) -> Object:
        """Read a run with all its steps, as the documented object."""
        run_id = self._id(run, flow, key)
        with self._links.reading() as conn:
            found = views.run(conn, run_id)
        if found is None:
            raise NotFound("run", run_id)
        return found

    def status(self, run: RunLike = None, *, flow: str | None = None, key: str | None = None) -> str:
        """Read how a run stands: running, paused, completed, failed or cancelled."""
        run_id = self._id(run, flow, key)
        with self._links.reading() as conn:
            found = runs.standing(conn, run_id)
        if found is None:
            raise NotFound("run", run_id)
        return str(found.status)

    def wait(
        self,
        run: RunLike = None,
        timeout_s: float | None = None,
        *,
        flow: str | None = None,
        key: str | None = None,
    ) -> Object:
        """Wait until a run is completed, failed or cancelled, and read it. Raises `TimedOut`.

        A run that was started without waiting for the answer may take a moment to appear.
        """
        run_id = self._id(run, flow, key)
        began = time.monotonic()
        waits = pauses(SHORTEST_S, LONGEST_S)
        while True:
            found = self._standing(run_id)
            if found is not None and found.status not in LIVE:
                return self.get(run_id)
            passed = time.monotonic() - began
            if timeout_s is not None and passed >= timeout_s:
                raise TimedOut(run_id, "not there yet" if found is None else found.status, timeout_s)
            if found is None and passed >= self.timeout_s:
                return self.get(run_id)
            pause = next(waits)
            time.sleep(pause if timeout_s is None else min(pause, timeout_s - passed))

    def list(
        self,
        *,
        status: str | None = None,
        flow: str | None = None,
        key: str | None = None,
        created_by: str | None = None,
        tag: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Objects:
        """List runs without their steps, the newest first; `before` is the last id of the page before."""
        with self._links.reading() as conn:
            return views.runs(
                conn,
                status=status,
                name=flow,
                key=key,
                created_by=created_by,
                tag=tag,
                limit=limit,
                before=before,
            )

    def events(
        self, run: RunLike = None, after: int = 0, *, flow: str | None = None, key: str | None = None
    ) -> Objects:
        """Read what has happened in a run after the event of that number: up to 1,000 events."""
        run_id = self._id(run, flow, key)
        with self._links.reading() as conn:
            if runs.standing(conn, run_id) is None:
                raise NotFound("run", run_id)
            return views.events(conn, run_id, after_seq=after)

    def _standing(self, run_id: str) -> runs.Standing | None:
        try:
            with self._links.reading() as conn:
                return runs.standing(conn, run_id)
        except NoTables:
            return None

    def _id(self, run: RunLike, flow: str | None, key: str | None) -> str:
        """Find out which run is meant."""
        if run is not None:
            if flow is not None or key is not None:
                raise InvalidInput("run", "is named twice; give its id, or flow and key")
            return run.id if isinstance(run, Run) else run
        if flow is None or key is None:
            raise InvalidInput("run", "is missing; give its id, or flow= and key=")
        with self._links.reading() as conn:
            return _by_key(conn, flow, key)


def _by_key(conn: Connection, flow: str, key: str) -> str:
    name, _, version = flow.partition("@")
    found = [
        run
        for status in (*sorted(LIVE), None)
        for run in views.runs(conn, name=name, key=key, status=status, limit=MOST_OF_A_KEY if version else 1)
        if not version or str(run["version"]) == version
    ]
    if not found:
        raise NotFound("run", f"of {flow} with the key {key}")
    live = [run for run in found if run["status"] in LIVE]
    newest = max(live or found, key=lambda run: (str(run["created_at"]), str(run["id"])))
    return str(newest["id"])
