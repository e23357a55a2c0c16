"""Metrics as Prometheus reads them: the text format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "wfcelery_"
_NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value under its labels; `suffix` is for the parts of a histogram."""

    value: float
    labels: Mapping[str, str]
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """All values of one name. The name of a counter ends in `_total`."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    words: str
    samples: Sequence[Sample]


def gauge(name: str, words: str, value: float) -> Family:
    """Give one value that goes up and down."""
    return Family(name, "gauge", words, [Sample(value, _NONE)])


def gauges(name: str, words: str, label: str, values: Mapping[str, float]) -> Family:
    """Give such values, told apart by a label."""
    return Family(name, "gauge", words, [Sample(value, {label: key}) for key, value in values.items()])


def counter(name: str, words: str, value: float) -> Family:
    """Give one value that only grows, until whoever counts begins anew."""
    return Family(name, "counter", words, [Sample(value, _NONE)])


def counters(name: str, words: str, label: str, values: Mapping[str, float]) -> Family:
    """Give such values, told apart by a label."""
    return Family(name, "counter", words, [Sample(value, {label: key}) for key, value in values.items()])


def histogram(name: str, words: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> Family:
    """Give how many values were at most so large; `counts` has one more than `bounds`, for all above."""
    samples, so_far = [], 0
    for bound, count in zip((*bounds, math.inf), counts, strict=True):
        so_far += count
        samples.append(Sample(so_far, {"le": _number(bound)}, "_bucket"))
    samples += [Sample(total, _NONE, "_sum"), Sample(so_far, _NONE, "_count")]
    return Family(name, "histogram", words, samples)


def text(families: Iterable[Family]) -> str:
    """Write families, in their order."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    name = PREFIX + family.name
    words = family.words.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {family.kind}"
    for sample in family.samples:
        labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
        yield f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}"


def _escaped(value: str) -> str:
    plain = value.encode("utf-8", "replace").decode()  # What cannot be written would end the whole answer.
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
