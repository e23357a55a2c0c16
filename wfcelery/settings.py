"""The settings: flags over environment over `wfcelery.toml` over what `wfcelery up` has noted in this folder.

What is unknown is refused, never ignored.
"""

from __future__ import annotations

import difflib
import getpass
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wfcelery.errors import InvalidSettings

FILE: Final = "wfcelery.toml"
# Written by `wfcelery up`: its keys and addresses, so that commands in the same folder find the system.
SYSTEM_FILE: Final = ".wfcelery/system.toml"
PREFIX: Final = "WFCELERY_"
# Variables that tests of wfcelery and of its users pass to their own helpers.
FREE_PREFIX: Final = "WFCELERY_TEST_"
# Before the name of a webhook: its secret. No setting, for it stands in no file, and only the web has it.
HOOK_PREFIX: Final = "WFHOOK_"
DEFAULT_DATABASE: Final = "sqlite:///.wfcelery/wfcelery.db"
DEFAULT_LEASE_S: Final = 30.0
DEFAULT_LINK_DAYS: Final = 14.0
NAMES: Final = (
    "database_url",
    "broker_url",
    "key_prefix",
    "secret_key",
    "worker_key",
    "tools",
    "base_url",
    "user",
    "lease_s",
    "policy",
    "authorize",
    "notify",
    "link_days",
    "link_login",
    "token",
    "log_format",
    "hooks",
)
# What stands between the parts of a list. URLs hold commas, so what may be a URL is parted by white space.
_LISTS: Final = {"secret_key": ",", "worker_key": ",", "tools": ",", "notify": None, "hooks": ","}
_NUMBERS: Final = {"lease_s": "seconds", "link_days": "days"}
_CHOICES: Final = frozenset({"link_login"})
LOG_FORMATS: Final = ("text", "json")
_YES: Final = frozenset({"yes", "true", "1"})
_NO: Final = frozenset({"no", "false", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Keys, and addresses that may hold them, are never shown by `repr`."""

    database_url: str = DEFAULT_DATABASE
    broker_url: str | None = None
    key_prefix: str = ""
    secret_key: tuple[str, ...] = field(default=(), repr=False)
    worker_key: tuple[str, ...] = field(default=(), repr=False)
    tools: tuple[str, ...] = ()
    base_url: str | None = None
    user: str = ""
    # What an agent's server (`wfcelery mcp`) signs in with: a token of the policy.
    token: str | None = field(default=None, repr=False)
    lease_s: float = DEFAULT_LEASE_S
    # Who may do what: the path of a policy file, or `module:name` of a hook. One of them, or neither.
    policy: str | None = None
    authorize: str | None = None
    # Who is told of everything, unless a flow says otherwise.
    notify: tuple[str, ...] = field(default=(), repr=False)
    # How long an approval link is good where its gate has no deadline.
    link_days: float = DEFAULT_LINK_DAYS
    # Whether an approval link also asks for a sign-in as the approver.
    link_login: bool = False
    # How processes log: lines for people, or a JSON object per line.
    log_format: str = LOG_FORMATS[0]
    # `module:function` of the host application, called by the executor with every event.
    hooks: tuple[str, ...] = ()


def load(
    flags: Mapping[str, str | None], environ: Mapping[str, str], folder: Path, *, system: bool = True
) -> Settings:
    """Put the settings together; a flag that is None was not given. Raises `InvalidSettings`.

    Without `system`, what `wfcelery up` has noted in the folder is left out.
    """
    given: dict[str, str] = from_file(folder, SYSTEM_FILE) if system else {}
    given |= from_file(folder, FILE)
    given |= _from_environment(environ)
    given |= {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        if not value.strip():
            raise InvalidSettings(name, "is empty; give it a value or leave it out")
    given.setdefault("user", _os_user())
    if "database_url" in given:
        given["database_url"] = as_database_url(given["database_url"])
    if "base_url" in given:
        check_base_url(given["base_url"])
    if given.get("log_format", LOG_FORMATS[0]) not in LOG_FORMATS:
        raise InvalidSettings("log_format", f"must be {' or '.join(LOG_FORMATS)}, not {given['log_format']}")
    if {"policy", "authorize"} <= given.keys():
        raise InvalidSettings("authorize", "and policy cannot both be set; leave one of them out")
    lists = {name: _several(name, given.pop(name)) for name in _LISTS.keys() & given.keys()}
    numbers = {name: _number(name, given.pop(name)) for name in _NUMBERS.keys() & given.keys()}
    choices = {name: _choice(name, given.pop(name)) for name in _CHOICES & given.keys()}
    return Settings(**given, **lists, **numbers, **choices)  # type: ignore[arg-type] # each kind apart from texts


def as_database_url(text: str) -> str:
    """Read the path of a file as the SQLite database in that file."""
    return text if ":" in text else f"sqlite:///{text}"


def check_base_url(url: str) -> None:
    """Refuse what no link can begin with."""
    if not _can_begin_a_link(url):
        reason = "must be where people reach `wfcelery web`, like https://example.org/flows"
        raise InvalidSettings("base_url", reason)


def _can_begin_a_link(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    is_plain = url.isprintable() and " " not in url and not parts.query and not parts.fragment
    return is_plain and parts.scheme in ("http", "https") and bool(parts.hostname)


def from_file(folder: Path, name: str) -> dict[str, str]:
    """Read one file of settings, without judging their values; none if it is not there."""
    try:
        text = (folder / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidSettings(name, f"cannot be read: {exc}") from exc
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidSettings(name, f"is not TOML: {exc}") from exc
    return from_map(found, name)


def from_map(found: Mapping[str, object], where: str) -> dict[str, str]:
    """Read settings as TOML and Python write them, for `load`; `where` says in an error where they stand."""
    return {_known(key, NAMES, where): _text(key, value, where) for key, value in found.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    known = [f"{PREFIX}{name.upper()}" for name in NAMES]
    found = {}
    for name, value in environ.items():
        if name.startswith(PREFIX) and not name.startswith(FREE_PREFIX):
            setting = _known(name, known, "the environment").removeprefix(PREFIX).lower()
            # An empty variable is how shells and compose files say "not set".
            if value:
                found[setting] = value
    return found


def _known(name: str, known: tuple[str, ...] | list[str], where: str) -> str:
    if name in known:
        return name
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else f"the known ones are {', '.join(known)}"
    raise InvalidSettings(name, f"is not known (in {where}); {hint}")


def _text(name: str, value: object, where: str) -> str:
    if isinstance(value, str):
        return value
    if name in _CHOICES and isinstance(value, bool):
        return "yes" if value else "no"
    if name in _NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if name in _LISTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return _joined(name, value, where)
    raise InvalidSettings(name, f"must be {_wanted(name)} in {where}")


def _wanted(name: str) -> str:
    if name in _LISTS:
        return "text or a list of texts"
    if name in _CHOICES:
        return "true or false"
    return "a number" if name in _NUMBERS else "text"


def _joined(name: str, parts: list[str], where: str) -> str:
    between = _LISTS[name]
    if between is not None:
        return between.join(parts)
    # The value itself may be a secret, so only its place is said.
    spaced = [number for number, part in enumerate(parts, 1) if len(part.split()) != 1]
    if spaced:
        raise InvalidSettings(
            name, f"must hold no white space inside its parts; number {spaced[0]} has, in {where}"
        )
    return "\n".join(parts)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and number > 0:
        return number
    raise InvalidSettings(name, f"must be a number of {_NUMBERS[name]} above 0, not {text}")


def _choice(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in _YES | _NO:
        return word in _YES
    raise InvalidSettings(name, f"must be yes or no, not {text}")


def _several(name: str, text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(_LISTS[name]) if part.strip())


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid-{os.getuid()}"
