"""A Celery app as one would write it without wfcelery: stock settings, no-op tasks.

There is a result backend only where chords are measured, which need one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from celery import Celery
from celery.signals import worker_ready

from bench.marks import Marks

BROKER = "BENCH_BROKER_URL"
BACKEND = "BENCH_BACKEND_URL"
MARKS = "BENCH_MARKS"
READY = "ready."

app = Celery("bench", broker=os.environ[BROKER], backend=os.environ.get(BACKEND))
marks = Marks(Path(os.environ[MARKS]))


@app.task(ignore_result=True)  # type: ignore[untyped-decorator] # celery ships no types
def no_op() -> None:
    marks.add()


@app.task  # type: ignore[untyped-decorator] # same
def member(index: int) -> int:
    return index


@app.task(ignore_result=True)  # type: ignore[untyped-decorator] # same
def total(results: Sequence[int], expected: int) -> None:
    if sorted(results) == list(range(expected)):
        marks.add()


@worker_ready.connect  # type: ignore[untyped-decorator] # same
def say_ready(**_kwargs: object) -> None:
    print(READY, file=sys.stderr, flush=True)
