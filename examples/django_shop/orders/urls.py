"""Pages of the orders."""

from __future__ import annotations

from django.urls import path

from orders.views import orders

urlpatterns = [path("", orders, name="orders")]
