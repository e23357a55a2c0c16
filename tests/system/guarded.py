"""Tools that are not for everybody, beside those of the ledger."""

from __future__ import annotations

from tests.system.ledger import write
from wfcelery.tools import tool
from wfcelery.tools.context import Context


@tool(permission="billing.pay")
def pay(ctx: Context) -> None:
    """Take money."""
    write(ctx, "begin")
    write(ctx, "end")


@tool(requires_approval=True)
def erase(ctx: Context) -> None:
    """Do what cannot be undone."""
    write(ctx, "begin")
    write(ctx, "end")
