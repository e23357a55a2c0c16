"""One table of the application's own, the outbox; and names for what the admin shows of ours.

Runs and approvals are in our tables, which only the executor writes. Their models here have no table: they
carry the permissions, and a place in the admin.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from wfcelery.workflows.outbox import Entry


class Outbox(models.Model):  # type: ignore[misc] # Django ships no types
    """A start that waits to be sent: written with the application's data, removed once it is answered."""

    id = models.CharField("run", primary_key=True, max_length=64)
    request = models.TextField()
    created_at = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True, db_index=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        """For Django."""

        verbose_name = "start that waits"
        verbose_name_plural = "outbox"
        ordering: ClassVar[list[str]] = ["created_at"]

    def __str__(self) -> str:
        return str(self.id)

    @classmethod
    def of(cls, entry: Entry) -> Outbox:
        """Make a row; it is not saved."""
        return cls(id=entry.id, created_at=moment(entry.created_at), **changes(entry))

    def entry(self) -> Entry:
        """Give the row as the relay knows it."""
        return Entry(
            self.id,
            self.request,
            seconds(self.created_at),
            self.tries,
            None if self.next_at is None else seconds(self.next_at),
            self.error,
        )


class Run(models.Model):  # type: ignore[misc] # same
    """A run, as the admin shows it."""

    id = models.CharField(primary_key=True, max_length=64)

    class Meta:
        """For Django."""

        managed = False
        default_permissions = ()
        permissions: ClassVar[list[tuple[str, str]]] = [
            ("read", "Can see runs and flows"),
            ("start", "Can start runs"),
            ("define", "Can define flows"),
            ("decide", "Can approve and deny"),
            ("signal", "Can signal runs"),
            ("cancel", "Can cancel, pause and resume runs"),
            ("retry", "Can retry runs"),
            ("admin", "Can do everything with workflows"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Approval(models.Model):  # type: ignore[misc] # same
    """A gate that waits for people, as the admin shows it."""

    id = models.CharField(primary_key=True, max_length=200)

    class Meta:
        """For Django."""

        managed = False
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.id)


def changes(entry: Entry) -> dict[str, Any]:
    """Give what of a row can change."""
    return {
        "request": entry.request,
        "tries": entry.tries,
        "next_at": None if entry.next_at is None else moment(entry.next_at),
        "error": entry.error,
    }


def moment(at: float) -> dt.datetime:
    """Give a moment as Django keeps it, with or without time zones."""
    aware = dt.datetime.fromtimestamp(at, dt.UTC)
    return aware if settings.USE_TZ else aware.replace(tzinfo=None)


def seconds(at: dt.datetime) -> float:
    """Give a moment that Django has kept in seconds since 1970."""
    return (at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)).timestamp()
