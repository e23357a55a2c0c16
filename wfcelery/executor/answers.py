"""Asking and being answered, from the asker's side: ids that it draws itself, refusals that are raised."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Final

from wfcelery.core import ids
from wfcelery.core.faults import Fault
from wfcelery.errors import Forbidden, InvalidFlow, NotFound, Refused
from wfcelery.store.commands import Command

_NOT_FOUND: Final = re.compile(r"no (?P<kind>\w+) (?P<name>.+?)(?:; (?P<hint>.+))?", re.DOTALL)


def new_run_id(now: float) -> str:
    """Draw a run's id."""
    return ids.run_id(now, secrets.token_bytes(10))


def new_command_id() -> str:
    """Draw a command's id."""
    return secrets.token_hex(16)


def raise_refusal(answer: Command) -> None:
    """Turn a refusal into the error that says so."""
    if answer.ok:
        return
    faults = answer.data.get("faults")
    if isinstance(faults, Sequence) and not isinstance(faults, str):
        raise InvalidFlow(tuple(Fault(**fault) for fault in faults if isinstance(fault, dict)))
    missing = _NOT_FOUND.fullmatch(answer.reason) if answer.code == NotFound.code else None
    if missing is not None:
        raise NotFound(missing["kind"], missing["name"], missing["hint"] or "")
    if answer.code == Forbidden.code:
        raise Forbidden(answer.reason)
    raise Refused(answer.reason, answer.code)
