"""From a flow's name or file to a run that has begun in the running system."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wfcelery.cli import files
from wfcelery.cli.checking import check_file
from wfcelery.cli.desk import RemoteDesk, links_of
from wfcelery.cli.siblings import in_order
from wfcelery.core.messages import Principal
from wfcelery.errors import NotReachable
from wfcelery.executor.answers import new_command_id, new_run_id
from wfcelery.executor.messages import Define, Start
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from wfcelery.cli.files import FlowFile
    from wfcelery.core.values import Json
    from wfcelery.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to begin. `confirm`: only when it is in the database it has begun."""

    flow: str
    input: Mapping[str, Json]
    key: str | None
    tags: tuple[str, ...]
    run_id: str | None
    at: float | None
    refuse_conflict: bool
    confirm: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """A run; `created` is None where nobody waited for the answer."""

    run_id: str
    created: bool | None


def begin(settings: Settings, wish: Wish) -> Begun:
    """Start the run; a file is checked here first, and the flows beside it that it calls are defined."""
    if settings.broker_url is None:
        reason = (
            "WFCELERY_BROKER_URL is not set; `wfcelery up` starts a whole system, `wfcelery run` needs none"
        )
        raise NotReachable("the broker", reason)
    file = _file(settings, wish.flow) if files.is_file_name(wish.flow) else None
    by = Principal(settings.user)
    with closing(links_of(settings)) as links:
        desk = RemoteDesk(links)
        for sibling in [] if file is None else in_order(file):
            desk.ask(Define(new_command_id(), sibling.data, by, sibling.name))
        request = Start(
            new_command_id(),
            wish.run_id or new_run_id(time.time()),
            wish.flow if file is None else file.data,
            wish.input,
            by,
            key=wish.key,
            tags=wish.tags,
            name=None if file is None else file.name,
            refuse_conflict=wish.refuse_conflict,
            at=wish.at,
        )
        if not wish.confirm:
            links.push([request])
            return Begun(request.run_id, None)
        data = desk.ask(request).data
        return Begun(str(data["run_id"]), bool(data.get("created", True)))


def _file(settings: Settings, name: str) -> FlowFile:
    """Read the flow and check it, so that its faults are told with their lines."""
    file = files.read_flow(Path(name))
    check_file(file, Catalogue(Registry.load(settings.tools)), settings)
    return file
