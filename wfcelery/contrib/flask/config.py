"""What the application sets: `app.config["WFCELERY"]`, over the environment and the files of settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wfcelery.core.faults import nearest
from wfcelery.errors import InvalidSettings
from wfcelery.settings import NAMES, PREFIX, Settings, from_map, load

WHERE: Final = 'app.config["WFCELERY"]'
MOST_STREAMS: Final = 2
"""How many live pages may be open at once: each keeps a thread of the server busy."""

_OWN: Final = ("url_prefix", "streams")


@dataclass(frozen=True, slots=True)
class Config:
    """What was set. `given` are settings in words, as the environment would hold them.

    `url_prefix`: where the console is mounted; None: nowhere.
    """

    given: Mapping[str, str]
    url_prefix: str | None = None
    streams: int = MOST_STREAMS

    def settings(self) -> Settings:
        """Put the settings together as they are now: `wfcelery up` may have begun since."""
        return load(dict(self.given), os.environ, Path.cwd())

    def environment(self) -> dict[str, str]:
        """Give what was set as variables, for processes that do not know the application."""
        return {f"{PREFIX}{name.upper()}": value for name, value in self.given.items()}


def read_config(found: object) -> Config:
    """Check what the application has set. Raises `InvalidSettings`, for an unknown name with the nearest."""
    if found is None:
        return Config({})
    if not isinstance(found, Mapping):
        raise InvalidSettings(WHERE, "must be a map of settings")
    known = (*NAMES, *_OWN)
    for name in found:
        if name not in known:
            hint = nearest(str(name), known) or f"the known ones are {', '.join(known)}"
            raise InvalidSettings(str(name), f"is not known (in {WHERE}); {hint}")
    ours = {
        name: _plain(name, value) for name, value in found.items() if name not in _OWN and value is not None
    }
    config = Config(
        from_map(ours, WHERE), _url_prefix(found.get("url_prefix")), _streams(found.get("streams"))
    )
    # What can be known to be wrong is said when the application is made, not at its first request.
    load(dict(config.given), os.environ, Path.cwd(), system=False)
    if "base_url" in config.given and config.url_prefix is not None:
        _check_mount(config.given["base_url"], config.url_prefix)
    return config


def _plain(name: str, value: object) -> object:
    """Read what Python has more words for than TOML."""
    if name == "authorize" and not isinstance(value, str):
        return _named(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _named(hook: object) -> str:
    """Give `module:name` of a function or class: the executor is another process, and must find it too."""
    module, name = getattr(hook, "__module__", None), getattr(hook, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name or module == "__main__":
        reason = "must be a function or class at the top of a module, or its name as module:name"
        raise InvalidSettings("authorize", f"{reason}: the executor imports it, too")
    return f"{module}:{name}"


def _url_prefix(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith("/") or not value.strip("/") or "//" in value:
        raise InvalidSettings("url_prefix", "must be a path like /flows")
    if not value.isascii() or any(each in value for each in "<>?#% ") or not value.isprintable():
        raise InvalidSettings(
            "url_prefix", "must be a plain path like /flows, of letters that need no quotes"
        )
    return value.rstrip("/")


def _streams(value: object) -> int:
    if value is None:
        return MOST_STREAMS
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidSettings("streams", f"must be a number of live pages, 0 or more, not {value!r}")
    return value


def _check_mount(base_url: str, url_prefix: str) -> None:
    """Links that are sent begin with the base URL, and must lead to where the console is."""
    path = urlsplit(base_url).path.rstrip("/")
    if path != url_prefix and not path.endswith(url_prefix):
        reason = f"must end with {url_prefix}, where this application mounts the console, and is {base_url}"
        raise InvalidSettings("base_url", reason)
