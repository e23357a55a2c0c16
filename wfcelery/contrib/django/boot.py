"""Django's apps in processes of ours: an executor asks about users, a worker has tools."""

from __future__ import annotations

import django
from django.apps import apps


def set_up() -> None:
    """Load Django's apps, unless they are there. DJANGO_SETTINGS_MODULE says which."""
    if not apps.ready and not apps.loading:
        django.setup()
