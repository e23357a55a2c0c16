"""A loopback server that takes what apprise sends to `json://`, and answers as the test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """One notice, as it came."""

    path: str
    title: str
    body: str


@dataclass
class Receiver:
    """Everything that came, in order. `answers`: what each path answers next, status by status; then 200."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answers: dict[str, list[int]] = field(default_factory=dict)
    let_go: threading.Event = field(default_factory=threading.Event)

    def address(self, path: str) -> str:
        return f"json://127.0.0.1:{self.port}/{path}"

    def at(self, path: str) -> list[Received]:
        return [each for each in self.received if each.path == f"/{path}"]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive until the end of the block. A path that begins with `/slow` answers when it is let go."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.received.append(Received(self.path, told["title"], told["message"]))
            if self.path.startswith("/slow"):
                receiver.let_go.wait(30)
            waiting = receiver.answers.get(self.path.lstrip("/"))
            status = waiting.pop(0) if waiting else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()
