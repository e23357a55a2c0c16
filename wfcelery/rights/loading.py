"""Which authority the settings name."""

from __future__ import annotations

import sys
from pathlib import Path

from wfcelery.rights.authority import Authority, Everybody
from wfcelery.rights.hook import load_hook
from wfcelery.rights.policy import PolicyFile
from wfcelery.settings import Settings


def load_authority(settings: Settings) -> Authority:
    """Give the policy file or the hook; without both, everybody may do everything.

    Paths are relative to the current folder, and the module of a hook may be in it. Raises
    `InvalidSettings`, for a policy file `InvalidPolicy`.
    """
    if settings.policy is not None:
        return PolicyFile(Path(settings.policy))
    if settings.authorize is not None:
        _see_modules_here()
        return load_hook(settings.authorize)
    return Everybody()


def _see_modules_here() -> None:
    """Find modules of the current folder, as `python -m` would and as it is with tools."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
