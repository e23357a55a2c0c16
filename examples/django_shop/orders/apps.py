"""What Django knows of the orders."""

from __future__ import annotations

from django.apps import AppConfig


class OrdersConfig(AppConfig):
    """The app of the orders."""

    name = "orders"
    default_auto_field = "django.db.models.BigAutoField"
