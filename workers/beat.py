"""Beat: `python workers/beat.py`, the same as `wfcelery beat`.

For Celery's own command: `celery -A workers.beat beat`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wfcelery.settings import load
from wfcelery.shell.celery_app import make_app
from wfcelery.shell.processes import run_beat

if __name__ == "__main__":
    sys.exit(run_beat(load({}, os.environ, Path.cwd())))
else:
    app = make_app(load({}, os.environ, Path.cwd()))
