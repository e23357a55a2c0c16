"""Finding the gate that is meant, and sending the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from wfcelery.cli.database import reading
from wfcelery.cli.desk import Desk, open_desk
from wfcelery.cli.outcomes import for_each, show
from wfcelery.cli.targets import run_ids, run_with_key
from wfcelery.core.messages import Decide, Principal, StepReady
from wfcelery.core.state import WaitsFor
from wfcelery.errors import InvalidInput, NotFound, Refused
from wfcelery.executor.answers import new_command_id
from wfcelery.store import runs, steps

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.settings import Settings
    from wfcelery.store.steps import Waiting

VIA: Final = "cli"


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody says at a gate."""

    by: Principal
    approve: bool
    comment: str = ""
    form: Json = None


def decide(
    settings: Settings, words: Sequence[str], said: Said, *, flow: str | None, key: str | None, output: str
) -> int:
    """Say it at the gate of each run that is meant; give the worst exit code."""
    most = 2 if flow is None and key is None else 1
    if len(words) > most:
        raise click.UsageError("name a RUN and a STEP; with --flow and --key a STEP only")
    if most == 1:
        wanted, step = [run_with_key(settings, flow, key)], words[0] if words else None
    else:
        wanted, step = run_ids(words[:1]), words[1] if len(words) > 1 else None
    gates = {run: _gates(settings, run) for run in wanted}
    with open_desk(settings) as desk:
        return show(for_each(wanted, lambda run: _decide(desk, run, step, gates[run], said)), output)


def _gates(settings: Settings, run: str) -> list[Waiting] | None:
    """List the gates of a run and of its sub-runs, and what else waits for a person; None: no such run."""
    # Whether somebody may decide is the executor's to say.
    with reading(settings, None) as conn:
        root = runs.root_of(conn, run)
        if root is None:
            return None
        found = [each for each in steps.waiting(conn, root) if each.attempt.waits_for is not WaitsFor.SIGNAL]
    return found if root == run else [each for each in found if each.run_id == run]


def _decide(desk: Desk, run: str, step: str | None, gates: list[Waiting] | None, said: Said) -> str:
    by = said.by
    if gates is None:
        raise NotFound("run", run, "`wfcelery ps` lists the runs")
    gate = _meant(run, step, gates)
    verdict = "approved" if said.approve else "denied"
    if gate is None:
        # Not open as far as we see: the executor knows better, and says why not.
        desk.ask(
            Decide(new_command_id(), run, step or "", said.approve, by, said.comment, said.form, via=VIA)
        )
        return f"{verdict} {step}"
    name = gate.attempt.name
    if gate.attempt.waits_for is WaitsFor.PERSON:
        if not said.approve:
            stop = f"`wfcelery cancel {run}` stops the run"
            raise Refused(f"{name} lost its worker and waits to be run again, not for an approval; {stop}")
        desk.ask(StepReady(new_command_id(), gate.run_id, name, by))
        return f"{name} runs again"
    seen = gate.attempt.attempt
    answer = desk.ask(
        Decide(new_command_id(), gate.run_id, name, said.approve, by, said.comment, said.form, seen, VIA)
    ).data
    if answer.get("decided") is False:
        return f"{verdict} {name}: {answer.get('votes')} of {answer.get('quorum')} votes"
    return f"{verdict} {name}"


def _meant(run: str, step: str | None, gates: Sequence[Waiting]) -> Waiting | None:
    found = [each for each in gates if step is None or each.attempt.name == step]
    # A gate of the run itself comes before one of the same name in a sub-run.
    own = [each for each in found if each.run_id == run]
    if step is not None and len(own) == 1:
        return own[0]
    if len(found) > 1:
        named = ", ".join(
            each.attempt.name if each.run_id == run else f"{each.attempt.name} (of {each.run_id})"
            for each in found
        )
        raise InvalidInput(f"run {run}", f"has {len(found)} open gates: {named}; name one")
    if not found and step is None:
        hint = f"`wfcelery explain {run}` says what it waits for"
        raise NotFound("open gate", f"in run {run}", hint)
    return found[0] if found else None
