"""What `wfcelery run` says beside the progress: how it began, how it ended, and which command goes on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from wfcelery.cli.output import plain
from wfcelery.cli.progress import span
from wfcelery.cli.symbols import sign, signs_for, wants_colour
from wfcelery.core.values import Json
from wfcelery.insight.standing import kind_of_status

if TYPE_CHECKING:
    from wfcelery.cli.run_request import Request
    from wfcelery.embedded.waiting import Waiting


class Words:
    """Everything goes to one stream, which is stderr. Quiet leaves out what is not needed to go on."""

    def __init__(self, request: Request, stream: TextIO) -> None:
        self._flags = request.flags
        self._is_quiet = request.is_quiet
        self._user = request.settings.user
        self._may_ask = request.may_ask
        self._stream = stream

    def begins(self, run_id: str) -> None:
        """Tell the run's id before anything can go wrong."""
        self._hint(f"run {run_id}")

    def goes_on(self, run_id: str) -> None:
        """Tell that an earlier run is taken up again."""
        self._hint(f"run {run_id} goes on")

    def defined(self, name: str, path: Path) -> None:
        """Tell that a flow beside the file was kept, for it is called."""
        self._hint(f"defined {name} from {path}")

    def ended(self, run: Mapping[str, Json]) -> None:
        """Tell how it ended, why, and where to look."""
        status, error = str(run["status"]), run["error"]
        mark = sign(signs_for(self._stream), kind_of_status(status), colour=wants_colour(self._stream))
        if status == "completed":
            self._hint(f"{mark} completed in {_took(run)}")
        else:
            reason = f": {error['type']}: {error['message']}" if isinstance(error, Mapping) else ""
            self._say(f"{mark} {status}{plain(reason)}")
        self._hint(f"  {self._command('show', str(run['id']))}")

    def interrupted(self, run_id: str | None) -> None:
        """Tell how to go on; nothing to go on with if the run had not begun."""
        if run_id is None:
            self._say("interrupted before the run began; nothing was started")
        else:
            self._say(f"interrupted; go on with\n  {self._command('run', '--resume', run_id)}")

    def can_go_on(self, run_id: str) -> None:
        """Tell how to go on after an answer that was refused."""
        self._hint(f"the run still waits; go on with\n  {self._command('run', '--resume', run_id)}")

    def waits(self, run_id: str, waiting: Sequence[Waiting], unused: Sequence[str]) -> None:
        """Tell what the run waits for, the command that answers, and which answers were to nothing."""
        for answer in unused:
            self._say(f"{answer}: nothing of that name has waited so far")
        for each in waiting:
            if each.signal is not None:
                self._say(f"{each.name} waits for the signal {each.signal}; go on with")
                self._say(f"  {self._command('run', '--resume', run_id, '--signal', each.signal)}")
            else:
                whose = f" by {', '.join(each.approvers)}" if each.approvers else ""
                waits = (
                    f"waits for approval{whose}"
                    if each.gate is not None
                    else "lost its worker and waits for a person"
                )
                self._say(f"{each.name} {waits}; go on with")
                self._say(f"  {self._command('run', '--resume', run_id, *self._approval(each))}")
        if not waiting:
            look = self._command("show", run_id)
            self._say(f"the run is held, or waits for a result from outside; look at\n  {look}")

    def _approval(self, waiting: Waiting) -> list[str]:
        """Write the answer to a gate with all that it asks for."""
        words = ["--approve", waiting.name]
        if waiting.gate is not None and waiting.gate.require_comment:
            words += ["--comment", "TEXT"]
        others = [each for each in waiting.approvers if each != self._user]
        alone_suffices = waiting.gate is not None and waiting.gate.quorum == 1
        if others and not (self._user in waiting.approvers and alone_suffices):
            words += ["--user", "NAME" if others[0].startswith("group:") else others[0]]
        return words

    def _command(self, *words: str) -> str:
        wanted = self._flags if words[0] == "run" else {"--database": self._flags.get("--database")}
        flags = [
            part for name, value in wanted.items() if value and name not in words for part in (name, value)
        ]
        return shlex.join(["wfcelery", *words, *flags])

    def _hint(self, text: str) -> None:
        if not self._is_quiet:
            self._say(text)

    def _say(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def _took(run: Mapping[str, Json]) -> str:
    begun, ended = (
        datetime.fromisoformat(str(run["created_at"])),
        datetime.fromisoformat(str(run["completed_at"])),
    )
    return span((ended - begun).total_seconds())
