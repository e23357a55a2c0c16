"""The web: `python workers/web.py`, the same as `wfcelery web`.

For a server of your own: `uvicorn --factory workers.web:app`; it must not log addresses, for they hold links.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wfcelery.settings import load
from wfcelery.web.app import make_app
from wfcelery.web.serving import serve

if TYPE_CHECKING:
    from starlette.applications import Starlette


def app() -> Starlette:
    """Make the app from the settings."""
    return make_app(load({}, os.environ, Path.cwd()))


if __name__ == "__main__":
    sys.exit(serve(load({}, os.environ, Path.cwd())))
