"""Handing out the OpenAPI document, as it is for this app."""

from __future__ import annotations

from wfcelery.web.api.fields import Nothing
from wfcelery.web.api.operation import ROOT, Call, Reply


def show(call: Call[Nothing, None]) -> Reply:
    """Give the document; its server is this one, behind whatever prefix."""
    from wfcelery.web.api.openapi import document  # noqa: PLC0415 - it describes this operation, too

    prefix = call.request.scope.get("root_path", "").rstrip("/")
    return Reply({**document(), "servers": [{"url": f"{prefix}{ROOT}"}]})
