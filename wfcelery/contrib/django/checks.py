"""`manage.py check`: what is wrong with WFCELERY, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Concern
from django.db import connections

from wfcelery.contrib.django import conf
from wfcelery.contrib.django.tools import installed
from wfcelery.errors import WfceleryError
from wfcelery.rights.loading import load_authority
from wfcelery.settings import Settings
from wfcelery.store.database import open_database
from wfcelery.wire.keys import keyring


def check_settings(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 - Django's signature
    """List every fault. Nothing is connected to."""
    try:
        unknown = conf.unknown()
    except WfceleryError as error:
        return [_error("E001", str(error), "Write WFCELERY = {...}; see docs/django.md.")]
    if unknown:
        return [
            _error("E001", f"WFCELERY has the unknown setting {name!r}", hint)
            for name, hint in sorted(unknown.items())
        ]
    try:
        settings = conf.load_settings()
    except WfceleryError as error:
        return [_error("E002", str(error), "Correct it in WFCELERY or in the environment.")]
    return [*_missing(settings), *_unusable(settings), *_doubtful(settings)]


def _missing(settings: Settings) -> Iterator[CheckMessage]:
    """Name what is missing: no error, for `migrate` needs neither, where it is run while a site is built."""
    if settings.broker_url is None:
        hint = "Give WFCELERY['broker_url'] or WFCELERY_BROKER_URL, like redis://localhost:6379/0."
        yield _concern("W002", "the broker is not named, so nothing can be started", hint)
    if not settings.secret_key:
        hint = "Give WFCELERY['secret_key'] or WFCELERY_SECRET_KEY: not Django's SECRET_KEY."
        yield _concern("W003", "there is no secret key, so nothing can be asked of the executor", hint)


def _unusable(settings: Settings) -> Iterator[CheckMessage]:
    trials = {
        "E003": lambda: open_database(settings.database_url).close(),
        "E004": lambda: keyring(settings.secret_key) if settings.secret_key else None,
        "E005": lambda: load_authority(settings),
        "E006": installed.tools,
    }
    hints = {
        "E003": "Name another alias in WFCELERY['database'], or give WFCELERY['database_url'].",
        "E004": "Use a long random text; several, the newest first, while you change it.",
        "E005": "Correct WFCELERY['authorize'] or WFCELERY['policy'], or leave both out.",
        "E006": "Correct the tools.py of the app that is named.",
    }
    for number, trial in trials.items():
        try:
            trial()
        except Exception as error:  # noqa: BLE001 - importing tools and hooks runs code of the project
            yield _error(number, str(error) or type(error).__name__, hints[number])


def _doubtful(settings: Settings) -> Iterator[CheckMessage]:
    shared = [
        alias
        for alias in connections.settings
        if connections[alias].vendor == "sqlite"
        and f"sqlite:///{connections[alias].settings_dict['NAME']}" == settings.database_url
    ]
    for alias in shared:
        if connections[alias].settings_dict.get("OPTIONS", {}).get("transaction_mode") is None:
            yield _concern(
                "W001",
                f"the SQLite database {alias} is shared with the executor, and transactions begin by reading",
                f"Set DATABASES[{alias!r}]['OPTIONS'] = {{'transaction_mode': 'IMMEDIATE'}}, "
                "else one that writes after it has read may fail with `database is locked`.",
            )


def _concern(number: str, message: str, hint: str) -> CheckMessage:
    return Concern(message, hint=hint, id=f"wfcelery.{number}")


def _error(number: str, message: str, hint: str) -> CheckMessage:
    return Error(message, hint=hint, id=f"wfcelery.{number}")
