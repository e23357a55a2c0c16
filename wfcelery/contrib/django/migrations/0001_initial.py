"""The outbox, and the permissions."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):  # type: ignore[misc] # Django ships no types
    """The first tables."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[object]] = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.CharField(max_length=200, primary_key=True, serialize=False)),
            ],
            options={
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ],
            options={
                "permissions": [
                    ("read", "Can see runs and flows"),
                    ("start", "Can start runs"),
                    ("define", "Can define flows"),
                    ("decide", "Can approve and deny"),
                    ("signal", "Can signal runs"),
                    ("cancel", "Can cancel, pause and resume runs"),
                    ("retry", "Can retry runs"),
                    ("admin", "Can do everything with workflows"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Outbox",
            fields=[
                (
                    "id",
                    models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name="run"),
                ),
                ("request", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("tries", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField(db_index=True, null=True)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "verbose_name": "start that waits",
                "verbose_name_plural": "outbox",
                "ordering": ["created_at"],
            },
        ),
    ]
