"""Living in somebody's Celery app: our tasks and beat entries are added to it, and nothing of it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery import Celery


def install(app: Celery) -> None:
    """Add our tasks and beat entries as soon as the app is ready for them, without making it ready."""
    app.on_after_configure.connect(_when_configured, sender=app, weak=False)
    app.on_after_finalize.connect(_when_finalized, sender=app, weak=False)
    if app.configured:
        _when_configured(app)
    if app.finalized:
        _when_finalized(app)


def install_tasks(app: Celery) -> None:
    """Register our tasks in the app, for itself alone (`shared=False`)."""
    from wfcelery.shell.tasks import install as install_in  # noqa: PLC0415 - loads what only Celery's workers need

    install_in(app)


def add_beat_entries(app: Celery) -> None:
    """Put our entries beside those of the host; one that it has under the same name is its own to set."""
    from wfcelery.shell.celery_app import beat_schedule  # noqa: PLC0415 - same

    theirs = dict(app.conf.beat_schedule or {})
    app.conf.beat_schedule = {**beat_schedule(), **theirs}


def _when_configured(sender: Celery, **_kwargs: object) -> None:
    add_beat_entries(sender)


def _when_finalized(sender: Celery, **_kwargs: object) -> None:
    install_tasks(sender)
    add_beat_entries(sender)
