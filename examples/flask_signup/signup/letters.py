"""A letter box for trying it out: shows on the terminal what people would get by mail.

`python -m signup.letters` listens on port 5001; `--notify json://127.0.0.1:5001` writes to it.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Box(BaseHTTPRequestHandler):
    """Takes letters."""

    def do_POST(self) -> None:
        """Show one."""
        letter = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        sys.stdout.write(f"--- {letter.get('title')}\n{letter.get('message')}\n\n")
        sys.stdout.flush()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Say nothing else."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", 5001), Box).serve_forever()
