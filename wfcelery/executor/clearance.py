"""The last look before a step is handed over: tools that take a permission or an approval get nothing else.

What was allowed when a run began may not be allowed any more. Asked are who started the run and who wrote its
definition, as they are now: so nobody gains a tool by having somebody else start what they wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wfcelery.core.approval import is_approved
from wfcelery.core.catalogue import ToolCatalogue
from wfcelery.core.effects import Dispatch
from wfcelery.core.messages import Principal, StepFailed
from wfcelery.core.state import Error
from wfcelery.rights import Authority, Resource

if TYPE_CHECKING:
    from wfcelery.executor.batch import Batch

FORBIDDEN = "forbidden"
NOT_APPROVED = "approval-required"


class Guarded(NamedTuple):
    """A step whose tool is not for everybody, and whom to ask; without a permission nobody need be asked."""

    step: Dispatch
    permission: str | None
    resource: Resource
    author: str
    fault: Error | None = None


class Clearance:
    """Tells which steps may be handed over."""

    def __init__(self, authority: Authority, tools: ToolCatalogue | None) -> None:
        self._authority = authority
        self._tools = tools

    def guarded(self, batch: Batch, ready: Sequence[Dispatch]) -> list[Guarded]:
        """Pick out the steps that need a look, inside the transaction; nobody is asked yet."""
        if self._tools is None:
            return []
        return [found for step in ready if (found := self._look(batch, step, self._tools)) is not None]

    def refusals(self, guarded: Sequence[Guarded]) -> list[StepFailed]:
        """Ask, outside of any transaction, and give the failure of each step that may not run."""
        faults = [(each, each.fault or self._denied(each)) for each in guarded]
        return [StepFailed(each.step.ref, fault, retry=False) for each, fault in faults if fault is not None]

    def _look(self, batch: Batch, step: Dispatch, tools: ToolCatalogue) -> Guarded | None:
        if step.tool not in tools:
            if self._authority.is_open:
                return None
            unknown = Error(FORBIDDEN, f"the executor does not know the tool {step.tool}, nor who may use it")
            return Guarded(step, None, Resource(), "", unknown)
        permission = None if self._authority.is_open else tools.permission(step.tool)
        must_be_approved = tools.requires_approval(step.tool)
        if permission is None and not must_be_approved:
            return None
        run = batch.runs[step.ref.run_id]
        flow = batch.catalogue.get(batch.conn, run.definition_id).flow
        fault: Error | None = None
        if must_be_approved and not is_approved(flow, run, step.ref.step):
            fault = Error(
                NOT_APPROVED, f"the tool {step.tool} runs only behind a gate that people have opened"
            )
        return Guarded(step, permission, Resource(flow.name, run.id, run.created_by), flow.author, fault)

    def _denied(self, each: Guarded) -> Error | None:
        if each.permission is None:
            return None
        parts = {each.resource.created_by: "started the run", each.author: f"defined {each.resource.flow}"}
        for user, part in parts.items():
            who = self._authority.principal(user) or Principal(user)
            if user and not self._authority.allows(who, each.permission, each.resource):
                tool = f"{user} may not use the tool {each.step.tool} (permission {each.permission})"
                return Error(FORBIDDEN, f"{tool}, and {part}")
        return None
