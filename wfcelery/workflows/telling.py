"""Telling runs something: each is a request that the executor answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from wfcelery.core.messages import (
    Cancel,
    Decide,
    EndStep,
    Hold,
    Principal,
    Resume,
    RetryRun,
    Signal,
    StepReady,
)
from wfcelery.core.state import NO_ITEM, Error
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.executor.answers import new_command_id, raise_refusal
from wfcelery.executor.messages import Asked, Broadcast
from wfcelery.workflows import place
from wfcelery.workflows.asking import ask
from wfcelery.workflows.links import Links
from wfcelery.workflows.reading import Object, Reading, RunLike
from wfcelery.workflows.starts import By

if TYPE_CHECKING:
    from wfcelery.store.commands import Command

Ids: TypeAlias = list[str]


class Telling(Reading):
    """The part of `Workflows` that speaks to runs.

    `command_id` names the request: who repeats one that was not confirmed gives the same id again.
    """

    def __init__(self, links: Links, timeout_s: float, user: str | None) -> None:
        super().__init__(links, timeout_s)
        self._user = user

    def signal(
        self,
        run: RunLike = None,
        name: str = "",
        payload: Json = None,
        *,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Tell a run something that it waits for, or will; kept in order per name.

        With `flow`, `key` names the run. Without, it is that of the signal: a wait with another key is left.
        """
        run_id = self._id(run, flow, key if flow is not None else None)
        sent_key = None if flow is not None else key
        command = command_id or new_command_id()
        self._ask(Signal(command, run_id, _given("name", name), self._who(by), payload, sent_key))

    def broadcast(
        self, name: str, key: str, payload: Json = None, *, by: By = None, command_id: str | None = None
    ) -> Ids:
        """Tell every run that waits for this signal with this key, and give their ids.

        If none does, it is kept for a week for the first that will.
        """
        answer = self._ask(Broadcast(command_id or new_command_id(), name, key, self._who(by), payload))
        reached = answer.data.get("reached")
        return [str(each) for each in reached] if isinstance(reached, list) else []

    def decide(
        self,
        run: RunLike = None,
        step: str = "",
        *,
        approve: bool,
        comment: str = "",
        form: Json = None,
        attempt: int | None = None,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        via: str = "",
        command_id: str | None = None,
    ) -> Object:
        """Approve or deny a gate; with `attempt` only if no retry has opened it anew since that one.

        Gives `decided`, and then `approved`; or, where a quorum is not reached yet, `votes` and `quorum`.
        `via` names the surface on which it was said, for the record.
        """
        run_id = self._id(run, flow, key)
        command = command_id or new_command_id()
        who = self._who(by)
        request = Decide(command, run_id, _given("step", step), approve, who, comment, form, attempt, via)
        return dict(self._ask(request).data)

    def cancel(
        self,
        run: RunLike = None,
        reason: str = "",
        *,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Stop a run for good: what has not begun never will, what runs is asked to stop."""
        run_id = self._id(run, flow, key)
        self._ask(Cancel(command_id or new_command_id(), run_id, self._who(by), reason))

    def pause(
        self,
        run: RunLike = None,
        *,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Let nothing new begin in a run until it is resumed."""
        run_id = self._id(run, flow, key)
        self._ask(Hold(command_id or new_command_id(), run_id, self._who(by)))

    def resume(
        self,
        run: RunLike = None,
        *,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Let a paused run go on."""
        run_id = self._id(run, flow, key)
        self._ask(Resume(command_id or new_command_id(), run_id, self._who(by)))

    def retry(
        self,
        run: RunLike = None,
        *,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Let a failed run go on from where it failed."""
        run_id = self._id(run, flow, key)
        self._ask(RetryRun(command_id or new_command_id(), run_id, self._who(by)))

    def step_ready(
        self,
        run: RunLike = None,
        step: str = "",
        *,
        item: int = NO_ITEM,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Let a step that waits go on now: a plain gate, a wait, a delay, a retry."""
        run_id = self._id(run, flow, key)
        command = command_id or new_command_id()
        self._ask(StepReady(command, run_id, _given("step", step), self._who(by), item))

    def step_done(
        self,
        run: RunLike = None,
        step: str = "",
        result: Json = None,
        *,
        event: str | None = None,
        item: int = NO_ITEM,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Report the result of a step whose tool returned `ctx.later()`."""
        run_id = self._id(run, flow, key)
        command = command_id or new_command_id()
        self._ask(EndStep(command, run_id, _given("step", step), self._who(by), item, result, event))

    def step_failed(
        self,
        run: RunLike = None,
        step: str = "",
        reason: str = "",
        *,
        item: int = NO_ITEM,
        flow: str | None = None,
        key: str | None = None,
        by: By = None,
        command_id: str | None = None,
    ) -> None:
        """Report that a step whose tool returned `ctx.later()` has failed."""
        run_id = self._id(run, flow, key)
        command = command_id or new_command_id()
        error = Error("reported", reason or "reported as failed")
        self._ask(EndStep(command, run_id, _given("step", step), self._who(by), item, error=error))

    def _ask(self, request: Asked) -> Command:
        """Send a request and give its answer; a refusal is raised."""
        [answer] = ask(self._links, [request], self.timeout_s)
        raise_refusal(answer)
        return answer

    def _who(self, by: By) -> Principal:
        return by if isinstance(by, Principal) else Principal(by or self._user or place.user())


def _given(what: str, text: str) -> str:
    if not text:
        raise InvalidInput(what, "is missing")
    return text
