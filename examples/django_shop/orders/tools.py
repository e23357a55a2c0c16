"""What the flow does to orders. Each may be called again after a crash, and then changes nothing more."""

from __future__ import annotations

from orders.models import Order
from wfcelery import tool


@tool
def reserve_goods(order: int) -> dict[str, object]:
    """Put the goods of an order aside."""
    return _set(order, "reserved")


@tool
def ship_goods(order: int) -> dict[str, object]:
    """Send the goods of an order."""
    return _set(order, "shipped")


@tool
def turn_down(order: int) -> dict[str, object]:
    """Put the goods back, and tell the customer."""
    return _set(order, "turned down")


def _set(order: int, status: str) -> dict[str, object]:
    Order.objects.filter(pk=order).update(status=status)
    return {"order": order, "status": status}
