"""Which authority the settings name."""

from __future__ import annotations

from pathlib import Path

from wfcelery.rights.authority import Authority, Everybody
from wfcelery.rights.hook import load_hook
from wfcelery.rights.policy import PolicyFile
from wfcelery.settings import Settings


def load_authority(settings: Settings) -> Authority:
    """Give the policy file or the hook; without both, everybody may do everything.

    Paths are relative to the current folder. Raises `InvalidSettings`, for a policy file `InvalidPolicy`.
    """
    if settings.policy is not None:
        return PolicyFile(Path(settings.policy))
    if settings.authorize is not None:
        return load_hook(settings.authorize)
    return Everybody()
