"""The settings of a Django project, as ours: `WFCELERY` over the environment over `wfcelery.toml`.

What nobody sets is taken from Django: the database from DATABASES, rights from its users and groups, tools
from the apps that have a `tools.py`.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.conf import settings as django_settings
from django.db import connections

from wfcelery.contrib.django import discovery
from wfcelery.errors import InvalidSettings
from wfcelery.settings import DEFAULT_DATABASE, NAMES, PREFIX, Settings, load

SETTING: Final = "WFCELERY"
OWN: Final = ("database", "mail_url")
"""Settings that only a Django project has: the alias of our database, and how mail to users is sent."""
KNOWN: Final = (*OWN, *NAMES)
AUTHORITY: Final = "wfcelery.contrib.django.rights:DjangoAuthority"
TOOLS: Final = "wfcelery.contrib.django.tools"
APPLICATION: Final = "app:django"
"""Who acts where the application does: no user of Django's own forms can have a colon in the name."""
_SQLITE: Final = ("sqlite3", "spatialite")
_POSTGRESQL: Final = ("postgresql", "postgis", "postgresql_psycopg2")
# Options of psycopg that a URL can say; those of Django itself are no concern of ours.
_PASSED: Final = frozenset(
    {"sslmode", "sslcert", "sslkey", "sslrootcert", "passfile", "service", "target_session_attrs", "options"}
)


def given() -> Mapping[str, Any]:
    """Give what the project has written, as it has written it. Raises if it is no map."""
    found = getattr(django_settings, SETTING, {})
    if not isinstance(found, Mapping):
        raise InvalidSettings(SETTING, f"must be a dictionary, not {type(found).__name__}")
    return found


def unknown() -> dict[str, str]:
    """Name what is written and means nothing, with what was probably meant."""
    hints = {}
    for name in given():
        if name not in KNOWN:
            close = difflib.get_close_matches(str(name).lower(), KNOWN, n=1, cutoff=0.6)
            hints[str(name)] = (
                f"did you mean {close[0]}?" if close else f"the known ones are {', '.join(sorted(KNOWN))}"
            )
    return hints


def load_settings(*, system: bool = True) -> Settings:
    """Put the settings together. Raises `InvalidSettings`.

    Without `system`, what `wfcelery up` has noted in the project's folder is left out.
    """
    for name, hint in unknown().items():
        raise InvalidSettings(f"{SETTING}[{name!r}]", f"is not known; {hint}")
    written = {name: value for name, value in given().items() if name not in OWN}
    flags = {name: _text(name, value) for name, value in written.items() if value is not None}
    if given().get("database") is not None:
        if "database_url" in flags:
            raise InvalidSettings("database", "and database_url cannot both be set; leave one of them out")
        flags["database_url"] = database_url(str(given()["database"]))
    flags.setdefault("user", os.environ.get(f"{PREFIX}USER") or APPLICATION)
    made = load(flags, os.environ, folder(), system=system)
    if made.database_url == DEFAULT_DATABASE and "database_url" not in flags:
        made = dataclasses.replace(made, database_url=database_url("default"))
    if made.policy is None and made.authorize is None and "authorize" not in written:
        made = dataclasses.replace(made, authorize=AUTHORITY)
    if not made.tools and "tools" not in written and discovery.tool_modules():
        made = dataclasses.replace(made, tools=(TOOLS,))
    return made


def environment(*, system: bool = True) -> dict[str, str]:
    """Give the settings as variables, for processes that are not Django's."""
    made = load_settings(system=system)
    known = {field.name: field.default for field in dataclasses.fields(Settings)}
    return {
        f"{PREFIX}{name.upper()}": _text(name, value)
        for name, default in known.items()
        if (value := getattr(made, name)) is not None and value not in (default, ())
    }


def folder() -> Path:
    """Give the folder of the project, where `wfcelery.toml` may stand."""
    return Path(getattr(django_settings, "BASE_DIR", None) or Path.cwd())


def mail_url() -> str | None:
    """Give how users are told things by mail; None: they are not."""
    found = given().get("mail_url")
    return str(found) if found else None


def database_url(alias: str) -> str:
    """Write a database of DATABASES as our URL. Raises `InvalidSettings`."""
    if alias not in connections.settings:
        known = ", ".join(sorted(connections.settings))
        raise InvalidSettings("database", f"{alias} is not in DATABASES; there are {known}")
    # As it is now: while tests run, Django has put the name of the test's database here.
    described = connections[alias].settings_dict
    kind = str(described["ENGINE"]).rpartition(".")[2]
    if kind in _SQLITE:
        return _sqlite(alias, str(described["NAME"]))
    if kind in _POSTGRESQL:
        return _postgresql(described)
    reason = f"{alias} is of the kind {kind}; wfcelery speaks sqlite and postgresql"
    raise InvalidSettings("database", f"{reason}. Name another alias, or give database_url")


def _sqlite(alias: str, name: str) -> str:
    if not name or ":memory:" in name or "mode=memory" in name or name.startswith("file:"):
        reason = f"{alias} is not a plain file, and other processes cannot see it"
        raise InvalidSettings("database", f"{reason}. Name another alias, or give database_url")
    return f"sqlite:///{Path(name).absolute()}"


def _postgresql(described: Mapping[str, Any]) -> str:
    host = str(described.get("HOST") or "")
    options = described.get("OPTIONS") or {}
    more = {name: str(options[name]) for name in sorted(_PASSED & options.keys())}
    user = quote(str(described.get("USER") or ""), safe="")
    password = quote(str(described.get("PASSWORD") or ""), safe="")
    who = f"{user}{':' if password else ''}{password}@" if user else ""
    port = f":{described['PORT']}" if described.get("PORT") else ""
    if host.startswith("/"):
        # A folder with a socket in it, which a URL can only say as a parameter.
        more = {"host": host, **({"port": port[1:]} if port else {}), **more}
        host = port = ""
    asked = f"?{urlencode(more, quote_via=quote)}" if more else ""
    return f"postgresql://{who}{host}{port}/{quote(str(described['NAME']), safe='')}{asked}"


def _text(name: str, value: object) -> str:
    """Write a value as a flag or a variable would say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | Path | int | float):
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ("\n" if name == "notify" else ",").join(value)
    raise InvalidSettings(
        f"{SETTING}[{name!r}]", f"must be text, a number or a list, not {type(value).__name__}"
    )
