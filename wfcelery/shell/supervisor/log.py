"""The lines of many processes as one stream, each behind the name of whose it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import Final, TextIO

OURS: Final = "up"
# Distinct on dark and light grounds; red is for trouble.
_COLOURS: Final = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")


class Log:
    """Writes whole lines as `name | line`. `gone` turns true when nobody can read them any more."""

    def __init__(
        self,
        stream: TextIO,
        names: Iterable[str],
        *,
        colour: bool = False,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._stream = stream
        self._clean = clean
        self._heads = _heads((OURS, *names), colour=colour)
        self.gone = False

    def write(self, name: str, line: str) -> None:
        """Write one line of the program `name`."""
        if self.gone:
            return
        try:
            self._stream.write(f"{self._heads[name]}{self._clean(line)}".rstrip() + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self.gone = True
            self._lead_nowhere()
        except OSError:  # A full disk: the line is lost, the system goes on.
            return

    def _lead_nowhere(self) -> None:
        """Let what is left in the buffer be flushed in peace at the end: else the exit code is 120."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def say(self, line: str) -> None:
        """Write a line of the supervisor itself."""
        self.write(OURS, line)


def _heads(names: tuple[str, ...], *, colour: bool) -> dict[str, str]:
    width = max(map(len, names))
    padded = {name: f"{name:{width}} |" for name in names}
    if not colour:
        return {name: f"{head} " for name, head in padded.items()}
    codes = ("1", *(_COLOURS[at % len(_COLOURS)] for at in range(len(names) - 1)))
    return {
        name: f"\x1b[{code}m{head}\x1b[0m " for (name, head), code in zip(padded.items(), codes, strict=True)
    }


class Lines:
    """Cuts bytes, as they come, into lines."""

    LONGEST: Final = 64 * 1024

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[str]:
        """Give the lines that `data` completes; without data, whatever is left."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._rest and (not data or len(self._rest) > self.LONGEST):
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in lines]
