"""What went wrong, as an agent can act on it: a code that stays, what is wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ValidationError

from wfcelery.core.faults import Fault
from wfcelery.core.reading import spell
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow, InvalidInput, NotConfirmed, WfceleryError
from wfcelery.executor.definitions import fault_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MOST_FAULTS: Final = 200
"""Of one flow; how many there are in all is in the message."""


class BadArguments(WfceleryError):
    """A tool was given arguments that it does not take; `faults` lists all that is wrong."""

    code = InvalidInput.code

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults)
        self.faults = faults

    def __str__(self) -> str:
        return "; ".join(f"{fault.path}: {fault.message}" for fault in self.faults)


def told(error: WfceleryError) -> dict[str, Json]:
    """Write an error as the documented object."""
    said: dict[str, Json] = {"code": error.code, "message": str(error)}
    match error:
        case InvalidFlow():
            count = len(error.faults)
            said["message"] = f"the flow has {count} {'fault' if count == 1 else 'faults'}; nothing was done"
            said["faults"] = [fault_json(fault) for fault in error.faults[:MOST_FAULTS]]
        case BadArguments():
            said["faults"] = [fault_json(fault) for fault in error.faults]
        case InvalidInput():
            said["path"] = error.path
        case NotConfirmed():
            said["ids"] = list(error.ids)
    return said


def internal(error: Exception) -> dict[str, Json]:
    """Write what nobody has thought of; the log has the rest."""
    message = f"something went wrong here ({type(error).__name__}); the log of the server tells more"
    return {"code": "internal", "message": message}


def bad_arguments(model: type[BaseModel], error: ValidationError) -> BadArguments:
    """Say of every argument what is wrong with it."""
    found = error.errors(include_url=False, include_input=False)
    return BadArguments(tuple(_fault(model, each) for each in found))


def _fault(model: type[BaseModel], error: ErrorDetails) -> Fault:
    # Which arm of a union was tried is no part of where it stands.
    path = spell(tuple(part for part in error["loc"] if isinstance(part, int) or "[" not in part))
    message, hint = error["msg"].removeprefix("Input "), ""
    match error["type"]:
        case "extra_forbidden":
            message = "is not known"
            close = difflib.get_close_matches(str(error["loc"][-1])[:100], model.model_fields, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(model.model_fields)}"
        case "missing":
            message = "is missing"
        case "value_error":
            message = str(error["ctx"]["error"])
    return Fault(InvalidInput.code, f"{message[:1].lower()}{message[1:]}", path or "arguments", hint=hint)
