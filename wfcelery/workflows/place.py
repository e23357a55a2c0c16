"""Where the system is: what the application has said, and for the rest the settings, when it is needed.

An application may be imported where not all of it is known: a worker has no database and no secret key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from wfcelery.broker.client import key_prefix
from wfcelery.errors import InvalidSettings
from wfcelery.settings import Settings, as_database_url, load
from wfcelery.wire.keys import Keyring, keyring

if TYPE_CHECKING:
    from celery import Celery


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker's URL and Celery's options for it."""

    url: str = field(repr=False)
    options: Mapping[str, object]

    @property
    def prefix(self) -> str:
        """What stands before every key."""
        return key_prefix(self.options)


@dataclass(frozen=True, slots=True)
class Place:
    """What is known of the system; None is left to the settings."""

    app: Celery | None = None
    database_url: str | None = field(default=None, repr=False)
    broker_url: str | None = field(default=None, repr=False)
    secret_key: tuple[str, ...] | None = field(default=None, repr=False)
    key_prefix: str | None = None

    def database(self) -> str:
        """Give the URL of the tables."""
        return as_database_url(self.database_url) if self.database_url else _settings().database_url

    def broker(self) -> Broker:
        """Give the broker: that of the Celery app, unless another was named."""
        if self.broker_url is None and self.app is not None:
            conf = self.app.conf
            url, options = conf.broker_write_url, conf.broker_transport_options
            if url:
                # A list names several that stand in for one another; which of them has the mailbox?
                text = url if isinstance(url, str) else ";".join(url)
                named = {} if self.key_prefix is None else {"global_keyprefix": self.key_prefix}
                return Broker(text, {**(options or {}), **named})
        known = _settings()
        found = self.broker_url or known.broker_url
        if not found:
            reason = "is not set; give it as WFCELERY_BROKER_URL, like redis://localhost:6379/0"
            raise InvalidSettings("broker_url", reason)
        prefix = known.key_prefix if self.key_prefix is None else self.key_prefix
        return Broker(found, {"global_keyprefix": prefix})

    def ring(self) -> Keyring:
        """Give the keys; who talks to the executor needs the secret."""
        secrets = _settings().secret_key if self.secret_key is None else self.secret_key
        if not secrets:
            hint = "give it as WFCELERY_SECRET_KEY, the same as the executor's"
            raise InvalidSettings("secret_key", f"is not set; {hint}")
        return keyring(secrets)


def user() -> str:
    """Name the user that the settings name."""
    return _settings().user


def _settings() -> Settings:
    return load({}, os.environ, Path.cwd())
