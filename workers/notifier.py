"""The notifier: `python workers/notifier.py`, the same as `wfcelery notifier`.

For Celery's own command: `celery -A workers.notifier worker --pool threads --queues wfcelery.notify`.
It needs the database, the broker, the secret key, and apprise.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wfcelery.settings import load
from wfcelery.shell.celery_app import make_app
from wfcelery.shell.processes import run_notifier

if __name__ == "__main__":
    sys.exit(run_notifier(load({}, os.environ, Path.cwd())))
else:
    app = make_app(load({}, os.environ, Path.cwd()))
