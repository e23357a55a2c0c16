"""What may be allowed: our own permissions, and those that tools ask for by names of their own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Permission(StrEnum):
    """What wfcelery itself asks for. `ADMIN` covers all of them, and every tool."""

    READ = "read"
    START = "start"
    DEFINE = "define"
    DECIDE = "decide"
    SIGNAL = "signal"
    CANCEL = "cancel"
    RETRY = "retry"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Resource:
    """What something is done to; what is not known, or not about one flow or run, is empty."""

    flow: str = ""
    run_id: str = ""
    created_by: str = ""


SOMETHING: Final = Resource(flow="*")
"""Asks whether there is anything at all to which one may do it; no flow can have this name."""
