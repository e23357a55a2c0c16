"""One page: the orders, and a form for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.shortcuts import redirect, render

from orders.models import Order
from orders.placing import place_order

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class OrderForm(forms.Form):
    """What a customer says."""

    customer = forms.CharField(max_length=200)
    amount = forms.DecimalField(min_value=0, max_digits=10, decimal_places=2)


def orders(request: HttpRequest) -> HttpResponse:
    """Show the orders; take one."""
    form = OrderForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        place_order(form.cleaned_data["customer"], form.cleaned_data["amount"])
        return redirect("orders")
    return render(request, "orders/orders.html", {"form": form, "orders": Order.objects.order_by("-pk")[:50]})
