"""The system that this project talks to: one facade for each process, made when it is first wanted."""

from __future__ import annotations

import threading
from typing import Final

from django.core.signals import setting_changed

from wfcelery.contrib.django import conf
from wfcelery.core.messages import Kind, Principal
from wfcelery.rights import Authority
from wfcelery.rights.loading import load_authority
from wfcelery.settings import Settings
from wfcelery.workflows import Workflows


class Place:
    """What is known of the system, read once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.workflows = Workflows.from_settings(settings)
        self.application = Principal(settings.user, Kind.SYSTEM)
        self._authority: Authority | None = None

    @property
    def authority(self) -> Authority:
        """Give whom to ask who may do what."""
        if self._authority is None:
            self._authority = load_authority(self.settings)
        return self._authority


_kept: Final[dict[str, Place]] = {}
_making: Final = threading.Lock()


def place() -> Place:
    """Give the system. Raises `InvalidSettings`."""
    found = _kept.get("")
    if found is not None:
        return found
    with _making:
        return _kept.get("") or _kept.setdefault("", Place(conf.load_settings()))


def workflows() -> Workflows:
    """Give the facade: all that can be asked of the system. Threads share it, and it survives a fork."""
    return place().workflows


def forget() -> None:
    """Let the settings be read anew when the system is next wanted."""
    found = _kept.pop("", None)
    if found is not None:
        found.workflows.close()


def _changed(*, setting: str, **_: object) -> None:
    if setting in (conf.SETTING, "DATABASES"):
        forget()


setting_changed.connect(_changed)
