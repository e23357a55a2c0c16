"""From what people write when they start or define something, to the message that travels."""

from __future__ import annotations

import dataclasses
import datetime as dt
import difflib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from wfcelery.core.messages import Principal
from wfcelery.core.reading import read
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.executor.answers import new_command_id, new_run_id
from wfcelery.executor.messages import Start

By: TypeAlias = str | Principal | None
FlowLike: TypeAlias = "Json | Path"
Beginning: TypeAlias = "Mapping[str, object] | Sequence[object]"
"""One of many starts: a map of what `start` takes, or (flow, input)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What `start` takes."""

    flow: FlowLike
    input: Json = None
    key: str | None = None
    tags: Iterable[str] = ()
    run_id: str | None = None
    at: dt.datetime | None = None
    by: By = None
    on_conflict: Literal["return", "error"] = "return"
    name: str | None = None


_FIELDS = tuple(each.name for each in dataclasses.fields(Wish))


def wish(given: Beginning, place: str) -> Wish:
    """Read one of many starts."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in _FIELDS:
                close = difflib.get_close_matches(str(name), _FIELDS, n=1)
                hint = f"did you mean {close[0]}?" if close else f"the known ones are {', '.join(_FIELDS)}"
                raise InvalidInput(f"{place}.{name}", f"is not known; {hint}")
        if "flow" not in given:
            raise InvalidInput(f"{place}.flow", "is missing")
        return Wish(**given)  # type: ignore[arg-type] # checked when it is written
    if isinstance(given, (list, tuple)) and len(given) in (1, 2):
        return Wish(flow=given[0], input=given[1] if len(given) > 1 else None)
    raise InvalidInput(place, "must be a map with `flow` and what else `start` takes, or (flow, input)")


def start(wanted: Wish, by: Principal) -> Start:
    """Make the request; its run's id is drawn here, unless it was given: a repeat is then harmless."""
    flow, stem = document(wanted.flow)
    if wanted.on_conflict not in ("return", "error"):
        raise InvalidInput("on_conflict", f'must be "return" or "error", not {wanted.on_conflict!r}')
    return Start(
        new_command_id(),
        wanted.run_id or new_run_id(time.time()),
        flow,
        {} if wanted.input is None else wanted.input,
        by,
        key=wanted.key,
        tags=(wanted.tags,) if isinstance(wanted.tags, str) else tuple(wanted.tags),
        name=wanted.name or stem,
        refuse_conflict=wanted.on_conflict == "error",
        at=moment(wanted.at),
    )


def document(flow: FlowLike) -> tuple[Json, str | None]:
    """Give a flow's document and the name of its file; a text of one line is the name of a flow."""
    if isinstance(flow, Path):
        try:
            text = flow.read_bytes()
        except OSError as exc:
            raise InvalidInput("flow", f"{flow} cannot be read: {exc.strerror}") from exc
        return read(text, source=str(flow)).data, flow.stem  # type: ignore[return-value] # checked by `read`
    if isinstance(flow, str) and "\n" in flow:
        return read(flow).data, None  # type: ignore[return-value] # same
    if not isinstance(flow, (str, Mapping)) or not flow:
        raise InvalidInput("flow", "must be the name of a flow, a document, or the path of one")
    return flow, None


def moment(at: dt.datetime | None) -> float | None:
    """Give a moment in seconds since 1970; what it means must not depend on where it is read."""
    if at is None:
        return None
    if not isinstance(at, dt.datetime):
        raise InvalidInput("at", f"must be a datetime with a time zone, not {type(at).__name__}")
    if at.tzinfo is None:
        raise InvalidInput("at", "has no time zone; write datetime(..., tzinfo=UTC)")
    return round(at.timestamp(), 3)
