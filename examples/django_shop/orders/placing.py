"""Placing an order: the order and the start of its run are one transaction."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction

from orders.models import Order
from wfcelery.contrib.django import start


def place_order(customer: str, amount: Decimal) -> Order:
    """Save an order; its run begins exactly once, whether or not the broker is there now."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer, amount=amount)
        given = {"order": order.pk, "customer": customer, "amount": float(amount)}
        order.run = start("order", given, key=str(order.pk), outbox=True).id
        order.save(update_fields=["run"])
    return order
