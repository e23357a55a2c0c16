"""A worker for steps: `python workers/worker.py`, the same as `wfcelery worker`.

For Celery's own command: `celery -A workers.worker worker --queues wfcelery.steps`.
It needs the broker and the worker key, and no database.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wfcelery.settings import load
from wfcelery.shell.celery_app import make_app
from wfcelery.shell.processes import run_worker

if __name__ == "__main__":
    sys.exit(run_worker(load({}, os.environ, Path.cwd())))
else:
    app = make_app(load({}, os.environ, Path.cwd()))
