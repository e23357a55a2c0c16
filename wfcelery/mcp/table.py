"""The nine tools, in one place: what each takes, gives and may change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wfcelery.mcp import definitions, gates, runs, shapes

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `function` takes the desk, who calls, and the arguments.

    The hints are for clients that ask people before a call; whether a call is allowed is not theirs to say.
    """

    name: str
    title: str
    description: str
    takes: type[BaseModel]
    gives: type[BaseModel]
    function: Callable[..., BaseModel]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    def input_schema(self) -> dict[str, Any]:
        """Describe what it takes."""
        return self.takes.model_json_schema()

    def output_schema(self) -> dict[str, Any]:
        """Describe what it gives."""
        return self.gives.model_json_schema(mode="serialization")


TOOLS: Final = (
    Tool(
        "workflow_define",
        "Define a workflow",
        "Keep a flow as the next version of its name; the same flow again is the same version. Every fault "
        "of a flow comes back at once, with code, path and hint: mend them all and call again. Gates that "
        "tools require and the flow leaves out are put in by the server (`added_gates`).",
        definitions.Define,
        shapes.Defined,
        definitions.define,
        idempotent=True,
    ),
    Tool(
        "workflow_list_definitions",
        "List workflows",
        "List the flows that are kept, by name, each with what its input must be; or, with `flow`, show one "
        "with its document.",
        definitions.ListDefinitions,
        shapes.DefinitionPage,
        definitions.listing,
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "workflow_start",
        "Start a workflow",
        "Begin a run of a flow that is kept; it goes on by itself. With `run_id`, or with a `key` that a "
        "live run has, a repeat finds the run and begins no other. An error `not-confirmed` names in `ids` "
        "the run_id to repeat the call with.",
        runs.Start,
        shapes.Started,
        runs.start,
        destructive=True,
    ),
    Tool(
        "workflow_status",
        "Look at a run",
        "Say how a run stands, why it is not moving, which gates wait for whom, and show its steps, input "
        "and output.",
        runs.Ask,
        shapes.RunStatus,
        runs.status,
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "workflow_list_runs",
        "List runs",
        "List runs, the newest first, by status, flow, key, tag or who began them.",
        runs.ListRuns,
        shapes.RunPage,
        runs.listing,
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "workflow_approve",
        "Approve a gate",
        "Approve a gate as the person whose token this is. Agents are refused, whatever they may do "
        "otherwise, and so is who began the run or wrote the flow; the attempt is recorded. Do not look for "
        "a way around: tell a person that the gate waits.",
        gates.Decide,
        shapes.Decision,
        gates.approve,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "workflow_deny",
        "Deny a gate",
        "Deny a gate as the person whose token this is: what follows it does not run. Agents are refused.",
        gates.Decide,
        shapes.Decision,
        gates.deny,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "workflow_cancel",
        "Cancel a run",
        "Stop a run for good: what has not begun never will, what runs is asked to stop. A new run of the "
        "flow meets the same gates again.",
        runs.Cancel,
        shapes.Stands,
        runs.cancel,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "workflow_events",
        "Read what happened",
        "Read the history of a run, the oldest event first: who did what, when, and what came of it.",
        runs.Events,
        shapes.EventPage,
        runs.events,
        read_only=True,
        idempotent=True,
    ),
)
