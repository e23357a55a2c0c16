"""When a failed attempt is followed by another: pure arithmetic on the policy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from wfcelery.core.flow import Exponential, Retry


def may_retry(policy: Retry, failures: int, ancestors: Iterable[str]) -> bool:
    """Tell whether another attempt follows `failures` failures, the last by an error of these `ancestors`."""
    return failures < policy.max_attempts and not set(policy.no_retry_on).intersection(ancestors)


def wait_before(policy: Retry, failures: int, seed: str) -> float:
    """Give the seconds to wait after the `failures`-th failure; jitter is derived from `seed`, not drawn."""
    backoff = policy.backoff
    if isinstance(backoff, Exponential):
        return _exponential(backoff, failures, seed)
    if not backoff:
        return 0.0
    return backoff[min(failures, len(backoff)) - 1]


def _exponential(backoff: Exponential, failures: int, seed: str) -> float:
    # Beyond 64 doublings any real max_s has been reached; the bound keeps the power finite.
    wait = min(backoff.initial_s * backoff.factor ** min(failures - 1, 64), backoff.max_s)
    share = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4]) / 2**32
    return round(wait * (1 - backoff.jitter * share), 3)
