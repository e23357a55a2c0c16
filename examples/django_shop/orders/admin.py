"""Orders in the admin; runs and approvals are there by themselves."""

from __future__ import annotations

from django.contrib import admin

from orders.models import Order


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    """The list of orders."""

    list_display = ("id", "customer", "amount", "status", "run", "created_at")
    list_filter = ("status",)
