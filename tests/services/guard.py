"""The guard's process: `python -m tests.services.guard LAUNCHER DIRECTORY READY_FD OPTIONS`."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path

from tests.services import shared


def main() -> None:
    launcher, directory, ready, options = sys.argv[1:]
    os.setsid()  # Ctrl-C in the terminal is for pytest; the guard sees pytest end
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.set_inheritable(int(ready), False)
    try:
        server = importlib.import_module(f"tests.services.{launcher}").start(**json.loads(options))
    except shared.ServiceMissing as missing:
        sys.exit(str(missing))
    shared.guard(server, Path(directory), int(ready))


if __name__ == "__main__":
    main()
