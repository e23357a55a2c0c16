"""The list of runs: filtered, by pages, and live."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from wfcelery.core.state import Attempt, RunStatus
from wfcelery.core.values import Json, digest
from wfcelery.errors import InvalidInput
from wfcelery.rights import Permission, Resource
from wfcelery.store import run_page, views
from wfcelery.web import words
from wfcelery.web.doors import Door
from wfcelery.web.guard import desk_of, visitor_of
from wfcelery.web.rendering import path_to, render
from wfcelery.web.streams import Sight

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from wfcelery.core.messages import Principal
    from wfcelery.store import Connection
    from wfcelery.web.desk import Desk

PAGE: Final = 50
LONGEST_FILTER: Final = 200
_TEXTS: Final = ("flow", "key", "tag", "user")
_MOMENTS: Final = ("since", "until")


@dataclass(frozen=True, slots=True)
class Filter:
    """What is wanted, as it was typed; `before` and `after` are the ids where a page begins."""

    status: str = ""
    flow: str = ""
    key: str = ""
    tag: str = ""
    user: str = ""
    since: str = ""
    until: str = ""
    before: str = ""
    after: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Filter:
        """Read the query of an address."""
        return cls(**{name: asked.get(name, "").strip()[:LONGEST_FILTER] for name in cls.__slots__})

    @property
    def is_narrowed(self) -> bool:
        """Tell whether anything but the status is asked for."""
        return any(getattr(self, name) for name in (*_TEXTS, *_MOMENTS))

    def query(self, **other: str) -> str:
        """Write it as the query of an address, with changes; a page begins anew unless it is said where."""
        kept = {name: getattr(self, name) for name in ("status", *_TEXTS, *_MOMENTS)}
        return urlencode({name: value for name, value in (kept | other).items() if value})

    def read(self, conn: Connection, limit: int) -> list[dict[str, Json]]:
        """Read those runs. Raises `InvalidInput`."""
        if self.status and self.status not in set(RunStatus):
            raise InvalidInput("status", f"must be one of {', '.join(RunStatus)}")
        return views.runs(
            conn,
            status=self.status or None,
            name=self.flow or None,
            key=self.key or None,
            tag=self.tag or None,
            created_by=self.user or None,
            since=_moment("since", self.since),
            until=_moment("until", self.until),
            before=self.before or None,
            after=self.after or None,
            limit=limit,
            payloads=False,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """A run as the list shows it."""

    id: str
    flow: str
    version: int
    status: str
    sign: str
    key: str
    tags: tuple[str, ...]
    who: str
    started: str
    took: str
    waits: str


def home(request: Request) -> Response:
    """Lead to the list of runs."""
    return RedirectResponse(path_to(request, "runs"), 303)


def listing(request: Request) -> Response:
    """Show the runs that are asked for, the newest first."""
    desk, who = desk_of(request), visitor_of(request).who
    wanted = Filter.of(request.query_params)
    rows, seen, message, older, newer = [], "", "", "", ""
    try:
        with desk.reading() as conn:
            found = wanted.read(conn, PAGE + 1)
            # Who walks upwards sees one too many at the top, who walks downwards at the bottom.
            more, page = len(found) > PAGE, found[-PAGE:] if wanted.after else found[:PAGE]
            allowed = [each for each in page if desk.may(who, Permission.READ, resource_of(each))]
            rows = _rows(desk, conn, allowed)
            seen = _sight(desk, conn, who, wanted).position
        if page and (more or wanted.after):
            older = wanted.query(before=str(page[-1]["id"]))
        if page and (wanted.before or (wanted.after and more)):
            newer = wanted.query(after=str(page[0]["id"]))
    except InvalidInput as error:
        message = str(error)
    return render(
        request,
        "runs.html",
        status=422 if message else 200,
        wanted=wanted,
        statuses=[status.value for status in RunStatus],
        rows=rows,
        message=message,
        older=older,
        newer=newer,
        live=f"{path_to(request, 'runs_stream')}?{wanted.query(seen=seen)}" if _is_live(wanted) else "",
    )


async def stream(request: Request) -> Response:
    """Tell when the first page of this list changes."""
    desk, who = desk_of(request), visitor_of(request).who
    wanted = Filter.of(request.query_params)
    # Each user's own: what somebody may not read must not be heard of either.
    whose = "" if who is None else f"{who.kind.value}:{who.id}"
    key = f"runs:{wanted.query()}:{whose}"
    return await desk.streams.response(request, key, lambda conn: _sight(desk, conn, who, wanted))


def resource_of(run: Mapping[str, Json]) -> Resource:
    """Say what a listed run is to the rights."""
    return Resource(str(run["name"]), str(run["id"]), str(run["created_by"]))


def _is_live(wanted: Filter) -> bool:
    """Only the first page can get new runs."""
    return not wanted.before and not wanted.after


def _sight(desk: Desk, conn: Connection, who: Principal | None, wanted: Filter) -> Sight:
    found = [each for each in wanted.read(conn, PAGE) if desk.may(who, Permission.READ, resource_of(each))]
    waits = run_page.waits(conn, _paused(found))
    told = [
        (run["id"], run["status"], *(each.name for _, each in waits.get(str(run["id"]), ()))) for run in found
    ]
    return Sight(digest(repr(told))[:16])


def _paused(found: Sequence[Mapping[str, Json]]) -> list[str]:
    return [str(run["id"]) for run in found if run["status"] == RunStatus.PAUSED]


def _rows(desk: Desk, conn: Connection, found: Sequence[Mapping[str, Json]]) -> list[Row]:
    now = time.time()
    waits = run_page.waits(conn, _paused(found))
    rows = []
    for run in found:
        began = datetime.fromisoformat(str(run["created_at"])).timestamp()
        ended = run["completed_at"]
        until = now if ended is None else datetime.fromisoformat(str(ended)).timestamp()
        tags = run["tags"]
        status = str(run["status"])
        rows.append(
            Row(
                id=str(run["id"]),
                flow=str(run["name"]),
                version=int(str(run["version"])),
                status=status,
                sign=words.sign_of_run(status),
                key=str(run["key"] or ""),
                tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
                who=str(run["created_by"]),
                started=str(run["created_at"]),
                took=words.took(until - began),
                waits=_waits(desk, conn, run, waits.get(str(run["id"]), ()), now),
            )
        )
    return rows


def _waits(
    desk: Desk,
    conn: Connection,
    run: Mapping[str, Json],
    waits: Sequence[tuple[str, Attempt]],
    now: float,
) -> str:
    error = run["error"]
    if isinstance(error, Mapping):
        return f"{error['type']}: {error['message']}"
    if run["status"] != RunStatus.PAUSED:
        return ""
    if not waits:
        return "held by an operator"
    definition, first = waits[0]
    said = words.waits_for(desk.flow_of(conn, definition), first, now)
    others = f" and {len(waits) - 1} more" if len(waits) > 1 else ""
    return f"{said} at {first.name}{others}"


def _moment(name: str, text: str) -> float | None:
    """Read a moment; one without a zone is in UTC, as everything that is shown."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(name, "must be a time like 2030-01-31T09:00, in UTC") from None


DOORS: Final = (
    Door("GET", "/", home, "home", Permission.READ),
    Door("GET", "/runs", listing, "runs", Permission.READ),
    Door("GET", "/runs/stream", stream, "runs_stream", Permission.READ),
)
