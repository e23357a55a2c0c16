"""A gate on a page, by whatever way one came to it: reading it, showing it, and passing a decision on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.core.words import visible
from wfcelery.errors import InvalidInput, InvalidSettings, NotConfirmed, NotReachable, Refused
from wfcelery.insight import gates
from wfcelery.insight.gates import GateView
from wfcelery.rights import Permission, Resource
from wfcelery.tools.registry import Registry
from wfcelery.web.desk import Desk
from wfcelery.web.failures import status_of
from wfcelery.web.forms import WHOLE, Typed, fields_of, value_from

LONGEST_COMMENT: Final = 5_000
LONG_VALUE: Final = 240
"""A value with more characters is folded."""
LONG_LINES: Final = 8
DEEPEST: Final = 3
"""How deep maps are shown place by place, and in how many rows at most; beyond, they are shown as JSON."""
MOST_ROWS: Final = 40
APPROVE: Final = "approve"
DENY: Final = "deny"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a posted form. `message` is for the reader; `errors` by field; `typed` is shown again.

    `is_done`: the executor has taken the decision.
    """

    status: HTTPStatus = HTTPStatus.OK
    message: str = ""
    is_done: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)
    typed: Typed | None = None


def read_gate(desk: Desk, run_id: str, step: str, attempt: int | None = None) -> GateView | None:
    """Read a gate with everything that is told of it; None if there is none."""
    with desk.reading() as conn:
        return gates.gate(conn, desk.definitions, run_id, step, attempt, describe=_describe(desk))


def resource_of(view: GateView) -> Resource:
    """Say what somebody asks for who asks for a gate."""
    return Resource(view.flow.name, view.run.id, view.run.created_by)


def objection(desk: Desk, view: GateView, who: Principal) -> str | None:
    """Say why somebody cannot decide a gate now; None if they can."""
    return gates.objection_of(view, who, desk.may(who, Permission.DECIDE, resource_of(view)))


def decide(desk: Desk, view: GateView, who: Principal, form: Typed, via: str) -> Outcome:
    """Pass on what somebody has decided about exactly this attempt, and say what came of it."""
    decision, comment = form.get("decision"), (form.get("comment") or "").replace("\r\n", "\n").strip()
    if decision not in (APPROVE, DENY):
        return _again(HTTPStatus.UNPROCESSABLE_ENTITY, "press Approve or Deny; nothing was decided", form)
    if not desk.may(who, Permission.DECIDE, resource_of(view)):
        lacking = f"{who.id} may not decide gates of {view.flow.name}: the permission `decide` is missing"
        return Outcome(HTTPStatus.FORBIDDEN, lacking)
    if (form.get("action") or view.digest) != view.digest:
        changed = "what would run is not what you were shown; look at it again"
        return Outcome(HTTPStatus.CONFLICT, changed)
    value: Json = None
    if decision == APPROVE and view.is_open and view.gate.form is not None:
        value, errors = value_from(view.gate.form, form)
        if errors:
            told = errors.get(WHOLE) or "some fields are not filled in as they must be; nothing was decided"
            return _again(HTTPStatus.UNPROCESSABLE_ENTITY, told, form, errors)
    try:
        answer = desk.workflows.decide(
            view.run.id,
            view.step.name,
            approve=decision == APPROVE,
            comment=comment,
            form=value,
            attempt=view.attempt.attempt,
            by=who,
            via=via,
        )
    except InvalidInput as error:
        return _again(status_of(error), f"{error}; nothing was decided", form)
    except Refused as error:
        blank = {"comment": "a comment is needed"} if view.gate.require_comment and not comment else {}
        return _again(status_of(error), str(error), form, blank)
    except (NotConfirmed, NotReachable) as error:
        unsure = "it may still have been decided: load this page again in a while"
        return _again(status_of(error), f"{error}; {unsure}", form)
    return Outcome(message=_said(view, answer), is_done=True)


def shown(
    view: GateView, who: Principal, objected: str | None, outcome: Outcome | None = None
) -> dict[str, Any]:
    """Give what the part of a page shows that tells of a gate and asks for a decision."""
    said = outcome or Outcome()
    form = view.gate.form
    return {
        "view": view,
        "approver": who,
        "objection": objected,
        "outcome": said,
        "fields": [] if form is None else fields_of(form, said.typed, said.errors),
        "comment": "" if said.typed is None else said.typed.get("comment") or "",
        "longest_comment": LONGEST_COMMENT,
        "row": rows_of,
    }


@dataclass(frozen=True, slots=True)
class Row:
    """A named value, as text with nothing hidden in it."""

    name: str
    text: str

    @property
    def is_long(self) -> bool:
        """Tell whether it is better folded."""
        return len(self.text) > LONG_VALUE or self.text.count("\n") > LONG_LINES

    @property
    def beginning(self) -> str:
        """Give the first words of a long value."""
        line = " ".join(self.text[:LONG_VALUE].split())
        return line[: LONG_VALUE // 3] + "…"


def rows_of(value: Json, name: str = "value") -> list[Row]:
    """Write a value as rows of names and texts: of maps, one for each place (`order.address.city`)."""
    if not isinstance(value, Mapping):
        return [] if value is None else [Row(name, _text(value))]
    rows = list(_places(value, "", DEEPEST))
    return rows if len(rows) <= MOST_ROWS else list(_places(value, "", 0))


def _places(value: Mapping[str, Json], before: str, depth: int) -> Iterator[Row]:
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner and depth > 0:
            yield from _places(inner, f"{before}{key}.", depth - 1)
        else:
            yield Row(visible(before + key), _text(inner))


def _text(value: Json) -> str:
    # A text that reads like another kind of value is written with its quotes.
    if isinstance(value, str) and value.strip() and not _is_literal(value):
        return visible(value)
    return visible(json.dumps(value, ensure_ascii=False, indent=2))


def _is_literal(text: str) -> bool:
    if text[0] not in '-0123456789tfn"[{':
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _again(status: HTTPStatus, message: str, form: Typed, errors: Mapping[str, str] | None = None) -> Outcome:
    return Outcome(status, message, errors=errors or {}, typed=form)


def _said(view: GateView, answer: Mapping[str, Json]) -> str:
    """Say what the executor's answer means."""
    if not answer.get("decided"):
        return f"Your approval is counted: {answer.get('votes')} of {answer.get('quorum')} are there."
    if answer.get("approved"):
        return "You have approved this. The run goes on."
    return f"You have denied this: {view.on_deny}."


def _describe(desk: Desk) -> Callable[[str], str]:
    words = _words_of_tools(desk.settings.tools)
    return lambda tool: words.get(tool, "")


@lru_cache(maxsize=8)
def _words_of_tools(modules: tuple[str, ...]) -> Mapping[str, str]:
    """Read what tools say of themselves; where they cannot be loaded, pages do without."""
    try:
        return {tool.name: tool.description for tool in Registry.load(modules)}
    except InvalidSettings:
        return {}
