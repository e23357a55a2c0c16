"""An order, and how it stands."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """Somebody wants something."""

    customer = models.CharField(max_length=200)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    status = models.CharField(max_length=20, default="new")
    run = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"order {self.pk} of {self.customer}"
