"""The tools of all installed apps, as one module of tools: `WFCELERY_TOOLS=wfcelery.contrib.django.tools`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from wfcelery.contrib.django import boot, discovery
from wfcelery.tools import Registry
from wfcelery.tools.declare import AnyTool
from wfcelery.tools.registry import ToolSource


class InstalledTools(ToolSource):
    """Loads Django's apps when it is asked, and then every `tools.py` of theirs."""

    def tools(self) -> Iterable[AnyTool]:
        """Give the tools; two of one name are refused."""
        boot.set_up()
        found = Registry()
        for name in discovery.tool_modules():
            found.add_module(importlib.import_module(name))
        return tuple(found)


installed = InstalledTools()
