"""Asking the person at the terminal, while the run goes on behind the question."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from wfcelery.cli.output import as_json, plain
from wfcelery.cli.progress import span
from wfcelery.cli.symbols import signs_for
from wfcelery.core.values import Json

if TYPE_CHECKING:
    from wfcelery.embedded.waiting import Waiting

_YES: Final = frozenset({"a", "approve", "y", "yes"})
_NO: Final = frozenset({"d", "deny", "n", "no"})
_COMMENT: Final = frozenset({"c", "comment"})


@dataclass(frozen=True, slots=True)
class Decision:
    """What the person said."""

    approve: bool
    comment: str = ""


class Gone(Exception):
    """Raised by `keep_going`: somebody else, or the clock, has answered."""


class Prompt:
    """Reads answers from a descriptor. `keep_going` is called while waiting; it must return soon."""

    def __init__(self, stream: TextIO, descriptor: int, keep_going: Callable[[Waiting], None]) -> None:
        self._stream = stream
        self._descriptor = descriptor
        self._keep_going = keep_going
        self._read = b""

    def ask(self, waiting: Waiting, started_by: str, description: str, now: float) -> Decision | None:
        """Show what is asked and wait for the answer; None if there will be none."""
        head, *lines = question(waiting, started_by, description, now)
        self._say("\n".join(["", f"{signs_for(self._stream).gate} {head}", *lines, ""]))
        comment = ""
        try:
            while True:
                word = self._line(waiting, "approve / deny / comment? ")
                if word is None:
                    return None
                word, _, rest = word.strip().partition(" ")
                if word.lower() in _COMMENT:
                    comment = rest.strip() or (self._line(waiting, "comment: ") or "").strip()
                elif word.lower() in _YES | _NO:
                    comment = rest.strip() or comment
                    if waiting.gate is not None and waiting.gate.require_comment and not comment:
                        comment = (self._line(waiting, "a comment is required: ") or "").strip()
                    return Decision(word.lower() in _YES, comment)
                elif word:
                    self._say("Please type approve, deny or comment (a, d, c).\n")
        except Gone:
            self._say("\nThis gate has been decided meanwhile.\n")
            return None

    def _line(self, waiting: Waiting, prompt: str) -> str | None:
        self._say(prompt)
        while b"\n" not in self._read:
            readable, _, _ = select.select([self._descriptor], [], [], 0)
            if not readable:
                self._keep_going(waiting)
                continue
            try:
                read = os.read(self._descriptor, 4096)
            except OSError:
                read = b""
            if not read:
                self._say("\n")
                return None
            self._read += read
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace")

    def _say(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def question(waiting: Waiting, started_by: str, description: str, now: float) -> list[str]:
    """Say who asks, for what, what follows, and until when."""
    asks = "asks for your approval" if waiting.gate is not None else "lost its worker; shall it run again?"
    lines = [f"{waiting.name} {asks}  (flow {waiting.flow}, started by {started_by})"]
    lines += [f"  {line}" for line in (*description.strip().splitlines(), *_following(waiting.shown))]
    if waiting.due_at is not None:
        lines.append(f"  decided without you in {span(max(0.0, waiting.due_at - now))}")
    return [plain(line) for line in lines]


def _following(shown: Json) -> list[str]:
    if not isinstance(shown, Mapping):
        return []
    lines = []
    for name, step in shown.items():
        args = step.get("args") if isinstance(step, Mapping) else step
        first, *rest = as_json(args).splitlines()
        lines += [f"then {name}: {first}", *rest]
    return lines
