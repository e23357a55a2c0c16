"""Durable, approvable, observable workflows for Celery.

Importing this loads neither SQL nor Celery: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfcelery.errors import NoRetry, ToolError, WfceleryError
    from wfcelery.tools import Context, Outcome, Registry, Tool, tool
    from wfcelery.workflows import Run, Workflows

__all__ = [
    "Context",
    "NoRetry",
    "Outcome",
    "Registry",
    "Run",
    "Tool",
    "ToolError",
    "WfceleryError",
    "Workflows",
    "tool",
]

_HOME = {
    "Context": "wfcelery.tools",
    "NoRetry": "wfcelery.errors",
    "Outcome": "wfcelery.tools",
    "Registry": "wfcelery.tools",
    "Run": "wfcelery.workflows",
    "Tool": "wfcelery.tools",
    "ToolError": "wfcelery.errors",
    "WfceleryError": "wfcelery.errors",
    "Workflows": "wfcelery.workflows",
    "tool": "wfcelery.tools",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    message = f"module 'wfcelery' has no attribute {name!r}"
    raise AttributeError(message)
