"""What `wfcelery run` was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wfcelery.cli.session import Answers
from wfcelery.core.values import Json
from wfcelery.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line, read. Either `flow` or `resume` is given; `flags` are repeated in hints."""

    flow: str | None
    input: Mapping[str, Json]
    resume: str | None
    answers: Answers
    may_ask: bool
    key: str | None
    tags: tuple[str, ...]
    workers: int
    settings: Settings
    flags: Mapping[str, str | None]
    as_json: bool
    is_quiet: bool
