"""The executor: `python workers/executor.py`, the same as `wfcelery executor`.

For Celery's own command:
`celery -A workers.executor worker --pool solo --concurrency 1 --queues wfcelery.executor`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wfcelery.settings import load
from wfcelery.shell.celery_app import make_app
from wfcelery.shell.processes import run_executor

if __name__ == "__main__":
    sys.exit(run_executor(load({}, os.environ, Path.cwd())))
else:
    app = make_app(load({}, os.environ, Path.cwd()))
