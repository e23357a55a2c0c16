"""Figures: the median of rounds with their spread, as JSON lines and as a table."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DIGITS = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of one contender, as measured in each round."""

    bench: str
    what: str
    unit: str
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    def line(self) -> str:
        spread = [round(pick(self.rounds), DIGITS) for pick in (min, max)]
        told = {"bench": self.bench, "what": self.what, self.unit: round(self.median, DIGITS)}
        return json.dumps({**told, "spread": spread, "rounds": len(self.rounds)})

    def cells(self) -> tuple[str, ...]:
        spread = f"{_short(min(self.rounds))} to {_short(max(self.rounds))}"
        return (self.bench, self.what, f"{_short(self.median)} {self.unit}", spread)


def ratio(bench: str, above: tuple[str, Sequence[float]], below: tuple[str, Sequence[float]]) -> Figure:
    """Compare two contenders round by round: what disturbs a round disturbs both."""
    quotients = tuple(one / other for one, other in zip(above[1], below[1], strict=True))
    return Figure(bench, f"{above[0]} / {below[0]}", "ratio", quotients)


def print_rounds(name: str, rounds: Sequence[Mapping[str, float]]) -> None:
    """Print one JSON line for a benchmark that measures several numbers at once."""
    figures = {key: round(statistics.median(each[key] for each in rounds), DIGITS) for key in rounds[0]}
    spread = {
        key: [round(pick(each[key] for each in rounds), DIGITS) for pick in (min, max)] for key in rounds[0]
    }
    print(json.dumps({"bench": name, **figures, "spread": spread, "rounds": len(rounds)}), flush=True)


def print_table(figures: Sequence[Figure]) -> None:
    """Show people what the JSON lines say."""
    rows = [("bench", "what", "median", "spread"), *(figure.cells() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def say(words: str) -> None:
    """Tell people how it goes, beside the figures."""
    print(words, file=sys.stderr, flush=True)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
