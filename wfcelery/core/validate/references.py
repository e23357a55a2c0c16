"""Faults of what expressions refer to: nothing of that name, nothing of it yet, or perhaps never."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core import graph
from wfcelery.core.faults import nearest
from wfcelery.core.validate.before import Before, before

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wfcelery.core.expressions import Reference
    from wfcelery.core.flow import Flow
    from wfcelery.core.reading.place import Path
    from wfcelery.core.validate.subject import Subject

ROOTS: Final = ("input", "result", "steps", "secret", "run", "item", "index")
RUN_FIELDS: Final = ("id", "name", "created_by", "key")
STEP_FIELDS: Final = ("result", "status", "error")
_TOOL_ARGUMENTS: Final = frozenset({"args", "foreach.args"})
_PER_ITEM: Final = frozenset({"foreach.args", "foreach.input"})


@dataclass(frozen=True, slots=True)
class _Use:
    """References and where they stand; `after` says that the step itself has ended when they are read."""

    step: str | None
    path: Path
    field: str
    references: tuple[Reference, ...]
    after: bool = False


def check_references(subject: Subject) -> None:
    """Note every reference that cannot work, and every one that may not."""
    flow = subject.flow
    uses = list(_uses(flow))
    asked = any(each.root == "steps" for use in uses for each in use.references)
    acyclic = asked and len(graph.order(flow.steps)) == len(flow.steps)
    known = before(flow) if acyclic and not subject.unsure else None
    for use in uses:
        for each in dict.fromkeys(use.references):
            problem = _misnamed(flow, use, each)
            if problem is None and known is not None and each.root == "steps" and each.path:
                problem = _untimely(known, use, each)
            if problem is not None:
                code, message, hint = problem
                subject.add(code, use.step, use.path, f"{message} (column {each.column})", hint)


def _uses(flow: Flow) -> Iterator[_Use]:
    for step in flow.steps.values():
        for field, references in graph.template_references(step):
            yield _Use(step.name, tuple(field.split(".")), field, references)
        for index, condition in enumerate(step.conditions):
            yield _Use(step.name, ("branch", index, "if"), "if", condition.references, after=True)
    if flow.key is not None:
        yield _Use(None, ("key",), "key", flow.key.references)
    if flow.output is not None:
        yield _Use(None, ("output",), "output", flow.output.references)


def _misnamed(flow: Flow, use: _Use, each: Reference) -> tuple[str, str, str] | None:
    reason = _unknown(flow, use, each)
    return None if reason is None else ("unknown-reference", *reason)


def _unknown(flow: Flow, use: _Use, each: Reference) -> tuple[str, str] | None:
    first = each.path[0] if each.path else None
    match each.root:
        case "input":
            return None
        case "run":
            return _unknown_of_run(use, first)
        case _ if use.field == "key":
            return f"`{each.root}` is not known before the run starts", "use `input` or `run.created_by`"
        case "steps":
            return _unknown_step(flow, each)
        case "secret" if use.field not in _TOOL_ARGUMENTS:
            return "a secret is filled in for a tool, and nowhere else", "pass it in the arguments of a tool"
        case "item" | "index" if use.field not in _PER_ITEM:
            return f"`{each.root}` is known only inside a `foreach`", "use it in the foreach's args or input"
        case "result" if use.field == "output" or (use.step == flow.start and not use.after):
            where = "the output" if use.field == "output" else "the first step"
            return (
                None if each.optional else (f"there is no `result` before {where}", "use `input` or `steps`")
            )
        case root if root not in ROOTS:
            return f"there is no `{root[:64]}` to refer to", nearest(
                root, ROOTS
            ) or f"known: {', '.join(ROOTS)}"
        case _:
            return None


def _unknown_of_run(use: _Use, field: str | int | None) -> tuple[str, str] | None:
    known = ("created_by",) if use.field == "key" else RUN_FIELDS
    if field in known or (field is None and use.field != "key"):
        return None
    shown = "run" if field is None else f"run.{field}"
    return f"there is no `{shown}` here", nearest(str(field), known) or f"known: {', '.join(known)}"


def _unknown_step(flow: Flow, each: Reference) -> tuple[str, str] | None:
    if not each.path:
        return None
    name = str(each.path[0])
    if each.path[0] not in flow.steps:
        return f"there is no step `{name[:64]}`", nearest(name, flow.steps)
    if len(each.path) > 1 and each.path[1] not in STEP_FIELDS:
        found = str(each.path[1])
        hint = nearest(found, STEP_FIELDS) or f"known: {', '.join(STEP_FIELDS)}"
        return f"a step has no `{found[:64]}`", hint
    return None


def _untimely(known: Before, use: _Use, each: Reference) -> tuple[str, str, str] | None:
    name = str(each.path[0])
    needs_result = each.path[1:2] == ("result",) and not each.optional
    if use.step is None:
        may_miss = not known.at_the_end & known.bits[name]
    elif use.step == name and use.after:
        return None
    elif not known.can_precede(use.step, name):
        message = f"`{name}` cannot come before this step"
        return "reference-not-before", message, "refer to a step that leads here"
    else:
        may_miss = not known.is_done(use.step, name)
    if needs_result and may_miss:
        message = f"`{name}` may have been skipped or failed when this is read"
        return "reference-may-be-skipped", message, "give a default: {{steps.NAME.result ?? null}}"
    return None
