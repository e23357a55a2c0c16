"""What installed apps bring: tools in `tools.py`, flows in `flows/`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from django.apps import apps

FLOWS: Final = "flows"
OUR_APP: Final = "wfcelery.contrib.django"


def tool_modules() -> tuple[str, ...]:
    """Name the modules of tools, in the order of INSTALLED_APPS; none of them is imported."""
    names = (f"{config.name}.tools" for config in apps.get_app_configs() if config.name != OUR_APP)
    return tuple(name for name in names if importlib.util.find_spec(name) is not None)


def flow_folders() -> tuple[Path, ...]:
    """Give the folders of flows, in the order of INSTALLED_APPS."""
    folders = (Path(config.path) / FLOWS for config in apps.get_app_configs())
    return tuple(folder for folder in folders if folder.is_dir() and not (folder / "__init__.py").exists())
