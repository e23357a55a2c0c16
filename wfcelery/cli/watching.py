"""Looking on while a run goes on elsewhere: until it ends, or until the time is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, TextIO

from wfcelery.cli.database import Right, reading, reading_again
from wfcelery.cli.failures import FAILED, NOT_CONFIRMED, SUCCESS, WAITS
from wfcelery.cli.output import plain, print_json
from wfcelery.cli.progress import Progress, span
from wfcelery.cli.symbols import sign, signs_for, wants_colour
from wfcelery.cli.view import Live, Plain, Quiet, View
from wfcelery.core.limits import DEFAULT
from wfcelery.core.state import LIVE, RunStatus
from wfcelery.errors import NotFound
from wfcelery.executor.definitions import Definitions
from wfcelery.insight.standing import kind_of_status
from wfcelery.store import runs, views
from wfcelery.store.news import Watched

if TYPE_CHECKING:
    from wfcelery.cli.database import Reader
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.core.flow import Flow
    from wfcelery.core.state import Run
    from wfcelery.core.values import Json
    from wfcelery.settings import Settings

SOONEST_S: Final = 0.05
LATEST_S: Final = 0.5


class Watching:
    """Looks at one run again and again. `run` is how it stood at the last look; None before it is there."""

    def __init__(self, run_id: str, settings: Settings, *, is_quiet: bool = False) -> None:
        self.run_id = run_id
        self.run: Run | None = None
        self._settings = settings
        self._definitions = Definitions(None, DEFAULT)
        self._reader: Reader | None = None
        self._progress = Progress(run_id, self._flow_of)
        self._view = _view(self._progress, sys.stderr, is_quiet=is_quiet)

    def is_there(self) -> bool:
        """Tell whether there is such a run now."""
        with reading(self._settings, Right(run=self.run_id)) as conn:
            return runs.standing(conn, self.run_id) is not None

    def until_end(self, timeout_s: float | None, interrupt: Interrupt) -> dict[str, Json]:
        """Show what happens until the run has ended or the time is over; give the run as it stands then."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with reading_again(self._settings, Right(run=self.run_id)) as reader:
            self._reader = reader
            watched, pause = Watched(self.run_id), SOONEST_S
            try:
                while True:
                    interrupt.check()
                    pause = SOONEST_S if self._look(watched) else min(pause * 1.5, LATEST_S)
                    self._view.refresh()
                    left = pause if deadline is None else deadline - time.monotonic()
                    if (self.run is not None and self.run.status not in LIVE) or left <= 0:
                        break
                    time.sleep(min(pause, left))
            finally:
                self._view.stop()
            with reader.reading() as conn:
                found = views.run(conn, self.run_id)
        if found is None:
            raise NotFound("run", self.run_id, "`wfcelery ps` lists the runs")
        return found

    def _look(self, watched: Watched) -> bool:
        """Take in what is new; tell whether anything was."""
        if self._reader is None:
            return False
        with self._reader.reading() as conn:
            told = watched.look(conn)
        for news in told:
            if news.run.id == self.run_id:
                self.run = news.run
            self._view.show(self._progress.note(news.run, news.attempts))
        return bool(told)

    def _flow_of(self, definition_id: str) -> Flow:
        if self._reader is None:
            message = "nothing is read yet"
            raise RuntimeError(message)
        with self._reader.reading() as conn:
            return self._definitions.get(conn, definition_id).flow


def show_end(run: Mapping[str, Json], *, as_json: bool, stdout: TextIO | None, stderr: TextIO | None) -> int:
    """Print what a run that was waited for has come to, and give the exit code; None: not there."""
    if stderr is not None:
        tell(run, stderr)
    if stdout is None:
        return code_of(run)
    if as_json:
        print_json(run, stdout)
    elif run["status"] == RunStatus.COMPLETED:
        print_json(run["output"], stdout)
    return code_of(run)


def code_of(run: Mapping[str, Json]) -> int:
    """Give the exit code of a run that was waited for: how it ended, or what it still waits for."""
    match run["status"]:
        case RunStatus.COMPLETED:
            return SUCCESS
        case RunStatus.PAUSED:
            return WAITS
        case RunStatus.RUNNING:
            return NOT_CONFIRMED
        case _:
            return FAILED


def tell(run: Mapping[str, Json], stream: TextIO) -> None:
    """Say in one line how a run stands that was waited for."""
    status, error = str(run["status"]), run["error"]
    mark = sign(signs_for(stream), kind_of_status(status), colour=wants_colour(stream))
    why = f": {error['type']}: {error['message']}" if isinstance(error, Mapping) else ""
    if status in LIVE:
        why = f"; `wfcelery explain {run['id']}` says what it waits for"
        status = "not finished yet" if status == RunStatus.RUNNING else "paused"
    elif status == RunStatus.COMPLETED:
        began, ended = (datetime.fromisoformat(str(run[name])) for name in ("created_at", "completed_at"))
        why = f" in {span((ended - began).total_seconds())}"
    stream.write(f"{mark} {status}{plain(why)}\n")
    stream.flush()


def _view(progress: Progress, stream: TextIO, *, is_quiet: bool) -> View:
    if is_quiet:
        return Quiet(stream)
    if stream.isatty():
        return Live(stream, time.time, progress.lines)
    return Plain(stream, time.time)
