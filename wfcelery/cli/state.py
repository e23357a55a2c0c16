"""What the parts of one invocation share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class State:
    """Set while the arguments are read. `debug`: show tracebacks."""

    debug: bool = False
