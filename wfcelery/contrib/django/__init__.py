"""wfcelery in a Django project: put `wfcelery.contrib.django` into INSTALLED_APPS and set WFCELERY.

    from wfcelery.contrib.django import start

    with transaction.atomic():
        order.save()
        start("order", {"id": order.pk}, outbox=True)

`start` begins runs with the caller's transaction; `workflows` gives the facade for everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfcelery.contrib.django.place import workflows
    from wfcelery.contrib.django.rights import principal_of
    from wfcelery.contrib.django.starting import start

__all__ = ["principal_of", "start", "workflows"]

_HOMES = {"start": "starting", "workflows": "place", "principal_of": "rights"}


def __getattr__(name: str) -> object:
    """Load names when they are first used: Django imports this package before its models can be."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    import importlib  # noqa: PLC0415 - same

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
