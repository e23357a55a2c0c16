"""Doing one step's work in this process: from the message to the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from wfcelery.core.effects import Dispatch
from wfcelery.core.expressions import decode_secrets, resolve_secrets
from wfcelery.core.messages import Report, StepDone, StepFailed, StepPostponed
from wfcelery.core.state import Error
from wfcelery.core.values import Json
from wfcelery.errors import WfceleryError
from wfcelery.tools.call import Failed, Limits, Postponed, Returned, call
from wfcelery.tools.context import Context, Pace
from wfcelery.tools.registry import Registry

BRIEF_S = 0.01
SECRET_PREFIX = "WFSECRET_"  # noqa: S105 - where secrets are looked up, not one of them


class MissingSecret(WfceleryError):
    """A step needs a secret that this process does not have."""

    code = "missing-secret"

    def __init__(self, name: str) -> None:
        super().__init__(name)

    def __str__(self) -> str:
        name = self.args[0]
        return f"the secret {name} is not set; give it in the environment as {SECRET_PREFIX}{name}"


def do(
    step: Dispatch, tools: Registry, pace: Pace, now: Callable[[], float], *, limits: Limits, worker: str
) -> Report:
    """Call the step's tool and say how it went; never raises, whatever the tool does."""
    started_at = now()
    try:
        tool = tools.get(step.tool)
        args = _arguments(step)
    except WfceleryError as error:
        reason = Error(error.code, str(error))
        return StepFailed(step.ref, reason, retry=False, worker=worker, started_at=started_at)
    context = Context(
        run_id=step.ref.run_id,
        flow=step.flow,
        step=step.ref.step,
        item=step.ref.item,
        attempt=step.ref.attempt,
        fence=step.ref.fence,
        user=step.user,
        timeout_s=step.timeout_s,
        pace=pace,
    )
    match call(tool, args, context, limits):
        case Returned(result, event):
            brief = pace.now() - context.started < BRIEF_S
            return StepDone(step.ref, result, event, worker, started_at, brief)
        case Failed() as failed:
            return StepFailed(
                step.ref,
                Error(failed.type, failed.message),
                failed.ancestors,
                failed.retry,
                failed.retry_after,
                worker,
                started_at,
            )
        case Postponed():
            return StepPostponed(step.ref, worker, started_at)


def _arguments(step: Dispatch) -> Mapping[str, Json]:
    args = step.prepared.args
    if step.prepared.secrets:
        args = resolve_secrets(args, decode_secrets(step.prepared.secrets), _secret)
    return args if isinstance(args, Mapping) else {"value": args}


def _secret(name: str) -> str:
    try:
        return os.environ[SECRET_PREFIX + name]
    except KeyError:
        raise MissingSecret(name) from None
