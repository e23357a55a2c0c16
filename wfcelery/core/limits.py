"""How large things may get. Settings; these are the defaults."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds that keep a hostile or careless flow from hurting the others."""

    flow_bytes: int = 256 * KIB
    depth: int = 32
    steps: int = 1_000
    edges: int = 10_000
    foreach_items: int = 100_000
    payload_bytes: int = MIB
    collected_bytes: int = 16 * MIB
    subflow_depth: int = 10
    stored_signals: int = 1_000
    losses: int = 3


DEFAULT = Limits()
