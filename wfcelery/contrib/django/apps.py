"""What Django knows of us."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class WfceleryConfig(AppConfig):  # type: ignore[misc] # Django ships no types
    """Our app: its tables and permissions are called `wfcelery`."""

    name = "wfcelery.contrib.django"
    label = "wfcelery"
    verbose_name = "Workflows"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let `manage.py check` look at our settings."""
        from wfcelery.contrib.django.checks import check_settings  # noqa: PLC0415 - after the apps are there

        checks.register(check_settings, "wfcelery")
