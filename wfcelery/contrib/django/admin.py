"""What the admin of the project shows of us: runs, approvals, and the outbox."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from wfcelery.contrib.django.models import Approval, Outbox, Run, changes
from wfcelery.contrib.django.pages import ApprovalAdmin, RunAdmin
from wfcelery.errors import WfceleryError
from wfcelery.workflows.outbox import renewed


class OutboxAdmin(admin.ModelAdmin):  # type: ignore[misc] # Django ships no types
    """Starts that wait or were refused. They can be sent again, or deleted: then they never begin."""

    list_display = ("id", "created_at", "tries", "next_at", "is_refused", "error")
    readonly_fields = ("id", "request", "created_at", "tries", "next_at", "error")
    actions = ("send_again",)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        """Only `start(outbox=True)` adds rows."""
        return False

    @admin.display(boolean=True, description="refused")  # type: ignore[untyped-decorator] # Django ships no types
    def is_refused(self, row: Outbox) -> bool:
        """Tell whether nobody will send it by himself."""
        return row.next_at is None

    @admin.action(description="Send again", permissions=["change"])  # type: ignore[untyped-decorator] # same
    def send_again(self, request: HttpRequest, rows: Any) -> None:  # noqa: ANN401 - a query of Django's
        """Give rows that were refused another chance."""
        for row in rows:
            try:
                again = renewed(row.entry(), time.time())
            except WfceleryError as error:
                messages.error(request, f"{row.pk}: {error}")
            else:
                rows.model.objects.using(rows.db).filter(pk=row.pk).update(**changes(again))
                messages.success(request, f"the relay will send {row.pk} again")


admin.site.register(Run, RunAdmin)
admin.site.register(Approval, ApprovalAdmin)
admin.site.register(Outbox, OutboxAdmin)
