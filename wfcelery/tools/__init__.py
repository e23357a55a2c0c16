"""Tools: the functions that steps call. What a person who writes one needs is here."""

from wfcelery.tools.context import Context, Later, Outcome
from wfcelery.tools.declare import Tool, tool
from wfcelery.tools.failures import Stopped
from wfcelery.tools.registry import Registry

__all__ = ["Context", "Later", "Outcome", "Registry", "Stopped", "Tool", "tool"]
