"""A host application's hooks, good and hostile, and a tool that logs; the tests of event hooks name it."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

from wfcelery.tools import tool
from wfcelery.tools.context import Context

HEARD = "WFCELERY_TEST_HEARD"


class Unspeakable(Exception):
    """An error that cannot even be told."""

    def __str__(self) -> str:
        raise SystemExit


def note(event: dict[str, Any]) -> None:
    """Write an event down."""
    with Path(os.environ[HEARD]).open("a") as file:
        file.write(json.dumps(event) + "\n")


def break_it(event: dict[str, Any]) -> None:
    """Spoil what one was given, and raise."""
    event["data"].clear()
    raise Unspeakable


def leave(_event: dict[str, Any]) -> None:
    """Try to end the process."""
    raise SystemExit(3)


def hang(_event: dict[str, Any]) -> None:
    """Never come back."""
    threading.Event().wait()


def spin(_event: dict[str, Any]) -> None:
    """Keep a core busy."""
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass


@tool
def speak(ctx: Context) -> None:
    """Log through a logger of one's own, and through that of the step."""
    logging.getLogger("shop").warning("packed %s", "it", extra={"order": 7, "level": "high"})
    ctx.logger.error("no tape left", extra={"odd": float("nan")})


no_function = 3
