"""An application behind a real WSGI server, with a thread for each request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server


@contextmanager
def served(app: Flask, *, under: str = "") -> Iterator[str]:
    """Serve; give the address. `under`: a path below which the whole application is."""
    # As servers do it: the path goes into SCRIPT_NAME.
    whole: Any = DispatcherMiddleware(app, {under: app}) if under else app
    server = make_server("127.0.0.1", 0, whole, threaded=True)
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join(10)
        server.server_close()
