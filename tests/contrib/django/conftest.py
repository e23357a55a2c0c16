"""One shop for all tests of a process; and Django in it, without the variable at which Celery would look."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import django
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from playwright.sync_api import Browser

from tests.browser.browser import chromium
from tests.contrib.django.shop import PROJECT, Shop

if not settings.configured:
    sys.path.append(str(PROJECT))
    settings.configure(
        SECRET_KEY="for tests",  # noqa: S106 - opens nothing
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "wfcelery.contrib.django",
            "orders",
        ],
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
            "file": {"ENGINE": "django.db.backends.sqlite3", "NAME": "/data/shop.sqlite3"},
            "server": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": "the shop",
                "USER": "sam",
                "PASSWORD": "p@ss/word",
                "HOST": "db.example",
                "PORT": 5433,
                "OPTIONS": {"sslmode": "require", "pool": True},
            },
            "socket": {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "HOST": "/run/pg"},
            "none": {"ENGINE": "django.db.backends.dummy", "NAME": "x"},
        },
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        USE_TZ=True,
        WFCELERY={
            "database_url": "sqlite:////data/wfcelery.db",
            "broker_url": "redis://broker",
            "secret_key": "a secret of thirty-two characters",
        },
    )
    django.setup()


@pytest.fixture(scope="session")
def migrated() -> None:
    call_command("migrate", verbosity=0)


@pytest.fixture
def tables(migrated: None) -> Iterator[None]:
    """Django's tables; what the test writes is undone."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    made = Shop(tmp_path_factory.mktemp("shop"))
    try:
        made.prepare()
        yield made
        made.check()
    finally:
        made.close()


@pytest.fixture(scope="session")
def wsgi(shop: Shop) -> str:
    """The address of the site."""
    return shop.serve("wsgi")


@pytest.fixture(scope="session")
def asgi(shop: Shop) -> str:
    """The address of the same site, otherwise served."""
    return shop.serve("asgi")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened
