"""What an agent reads before it writes a flow: the schema, the language, the tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic.errors import PydanticUserError

from wfcelery.core.schema import flow_schema
from wfcelery.core.values import Json
from wfcelery.errors import Forbidden
from wfcelery.mcp.fields import bounded_text
from wfcelery.rights import Permission
from wfcelery.tools.signature import Parameter, accepts_of

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.mcp.desk import Desk
    from wfcelery.tools.declare import AnyTool

GUIDE: Final = Path(__file__).parent / "guide.md"


@dataclass(frozen=True, slots=True)
class Resource:
    """One text that can be read."""

    uri: str
    name: str
    title: str
    description: str
    kind: str
    read: Callable[[Desk, Principal], str]


def _schema(_desk: Desk, _who: Principal) -> str:
    return json.dumps(flow_schema(), indent=1)


def _guide(_desk: Desk, _who: Principal) -> str:
    return GUIDE.read_text(encoding="utf-8")


def _tools(desk: Desk, who: Principal) -> str:
    if not (desk.may(who, Permission.DEFINE) or desk.may(who, Permission.READ)):
        raise Forbidden(f"{who.id} may not do this: the permission `{Permission.READ.value}` is missing")
    return json.dumps({"tools": [described(tool) for tool in desk.registry()]}, indent=1)


RESOURCES: Final = (
    Resource(
        "wfcelery://guide",
        "guide",
        "How to write a flow",
        "The language of flows, in short, with examples. Read it before workflow_define.",
        "text/markdown",
        _guide,
    ),
    Resource(
        "wfcelery://schema",
        "schema",
        "JSON Schema of a flow",
        "What fields a flow has, in its full form.",
        "application/schema+json",
        _schema,
    ),
    Resource(
        "wfcelery://tools",
        "tools",
        "Tools that steps may call",
        "Every tool with its arguments, outcomes, the permission it takes, and whether it asks for a gate.",
        "application/json",
        _tools,
    ),
)


def described(tool: AnyTool) -> dict[str, Json]:
    """Describe a tool as the documented object."""
    accepts = accepts_of(tool)
    own = [each for each in accepts.parameters if each.name != accepts.context]
    return {
        "name": tool.name,
        "description": bounded_text(tool.description),
        "arguments": [_argument(each) for each in own],
        "takes_others": accepts.others is not None,
        "outcomes": list(tool.events),
        "permission": tool.permission,
        "requires_approval": tool.requires_approval,
    }


def _argument(parameter: Parameter) -> dict[str, Json]:
    schema: Json = None
    if parameter.hint is not None:
        try:
            schema = parameter.hint.json_schema()
        except PydanticUserError:
            schema = None  # A type that pydantic checks and JSON Schema has no words for.
    return {"name": parameter.name, "required": parameter.required, "schema": schema}
