"""A fault of a flow: what is wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; `code` is stable and documented, `line` and `column` count from 1 where known."""

    code: str
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line is not None else ""
        path = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{path}{self.message} [{self.code}]{hint}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that was probably meant, as a hint, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""
