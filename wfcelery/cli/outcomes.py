"""Doing one thing for each of several runs, and telling of each how it went."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from wfcelery.cli.failures import SUCCESS, exit_code
from wfcelery.cli.output import plain, print_json
from wfcelery.cli.symbols import sign, signs_for, wants_colour
from wfcelery.errors import NotConfirmed, NotReachable, WfceleryError

if TYPE_CHECKING:
    from wfcelery.core.values import Json


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went with one run: `said` is what was done, or why it was not."""

    run_id: str
    said: str
    code: int = SUCCESS

    def as_json(self) -> dict[str, Json]:
        """Write it as the documented object."""
        return {
            "run_id": self.run_id,
            "ok": self.code == SUCCESS,
            "exit_code": self.code,
            "message": self.said,
        }


def for_each(run_ids: Iterable[str], act: Callable[[str], str]) -> list[Outcome]:
    """Do it for one after the other; where nobody answers, the rest is not tried."""
    outcomes: list[Outcome] = []
    silent: int | None = None
    for run_id in run_ids:
        if silent is not None:
            outcomes.append(Outcome(run_id, "was not tried: nobody answers", silent))
            continue
        try:
            outcomes.append(Outcome(run_id, act(run_id)))
        except WfceleryError as error:
            code = exit_code(error)
            outcomes.append(Outcome(run_id, str(error), code))
            silent = code if isinstance(error, NotConfirmed | NotReachable) else None
    return outcomes


def show(outcomes: list[Outcome], output: str) -> int:
    """Tell of each run in one line; give the worst exit code."""
    if output == "json":
        print_json([each.as_json() for each in outcomes])
    else:
        for each in outcomes:
            if each.code != SUCCESS:
                is_named = re.search(rf"\b{re.escape(each.run_id)}\b", each.said)
                told = each.said if is_named else f"{each.run_id}: {each.said}"
                click.echo(f"wfcelery: {plain(told)}", err=True)
            elif output == "ids":
                click.echo(each.run_id)
            else:
                mark = sign(signs_for(sys.stdout), "done", colour=wants_colour(sys.stdout))
                click.echo(f"{mark} {each.run_id}  {plain(each.said)}")
    return max((each.code for each in outcomes), default=SUCCESS)
