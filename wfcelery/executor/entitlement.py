"""Rights at the writer: whoever sends a message, through whatever, gets only what is theirs to ask for.

`RULES` is closed: every request has its permission. The authority is asked before the transaction begins,
each question once for a batch; a refusal is an answer like any other. An open authority is not asked at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from wfcelery.core.catalogue import ToolCatalogue
from wfcelery.core.document import canonical_document, compile_flow, flow_references
from wfcelery.core.flow import Call, Flow, Foreach
from wfcelery.core.limits import Limits
from wfcelery.core.messages import (
    Answer,
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
from wfcelery.core.state import Run
from wfcelery.core.values import Json, canonical
from wfcelery.errors import NotReachable, StoreError, WfceleryError
from wfcelery.executor.definitions import Definitions
from wfcelery.executor.messages import Asked, Broadcast, Define, Message, Retire, Start, is_asked, run_of
from wfcelery.rights import Authority, Permission, Resource, confirmed
from wfcelery.rights.permission import SOMETHING
from wfcelery.store import runs
from wfcelery.store.database import Database

if TYPE_CHECKING:
    from sqlalchemy import Connection

FORBIDDEN: Final = "forbidden"


class Rule(NamedTuple):
    """What a request takes, and how it is said that somebody may not; `{}` stands for the flow."""

    permission: Permission
    words: str


RULES: Final[Mapping[type[Asked], Rule]] = {
    Define: Rule(Permission.DEFINE, "define {}"),
    Retire: Rule(Permission.DEFINE, "retire {}"),
    Start: Rule(Permission.START, "start {}"),
    Decide: Rule(Permission.DECIDE, "decide in runs of {}"),
    StepReady: Rule(Permission.DECIDE, "let steps go on in runs of {}"),
    Signal: Rule(Permission.SIGNAL, "signal runs of {}"),
    Broadcast: Rule(Permission.SIGNAL, "signal runs of {}"),
    EndStep: Rule(Permission.SIGNAL, "end steps in runs of {}"),
    Cancel: Rule(Permission.CANCEL, "cancel runs of {}"),
    Hold: Rule(Permission.CANCEL, "hold runs of {}"),
    Resume: Rule(Permission.CANCEL, "resume runs of {}"),
    RetryRun: Rule(Permission.RETRY, "retry runs of {}"),
}


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the asker must be allowed, and what is said if it is not."""

    permission: str
    resource: Resource
    words: str


class _Plan(NamedTuple):
    """A flow as far as rights go: its name, the tools that take a permission, with it, and its sub-flows."""

    name: str
    tools: tuple[tuple[str, str], ...] = ()
    flows: tuple[str, ...] = ()


class Entitlement:
    """Judges requests by an authority that is not open."""

    def __init__(self, authority: Authority, tools: ToolCatalogue | None, limits: Limits) -> None:
        self._authority = authority
        self._tools = tools
        self._limits = limits

    def judge(
        self,
        database: Database,
        messages: Sequence[Message],
        known: Mapping[str, Run],
        definitions: Definitions,
    ) -> tuple[list[Message], dict[str, Answer]]:
        """Give the messages with what is true of who asks, and the refusals by the ids of their commands.

        `known` are runs that need not be read.
        """
        asked = [message for message in messages if is_asked(message)]
        if not asked:
            return list(messages), {}
        with database.reading() as conn:
            case = _Case(conn, definitions, self._tools, self._limits, _owners(conn, asked, known))
            questions = [case.questions(message) for message in asked]
        # Outside of any transaction: the authority may be slow, and may ask the same database.
        people = {message.by: confirmed(self._authority, message.by) for message in asked}
        granted: dict[tuple[Principal, str, Resource], bool] = {}
        refused: dict[str, Answer] = {}
        for message, asks in zip(asked, questions, strict=True):
            who = people[message.by]
            for ask in asks:
                key = (who, ask.permission, ask.resource)
                if key not in granted:
                    granted[key] = self._authority.allows(*key)
                if not granted[key]:
                    refused.setdefault(message.command_id, _refusal(who, ask))
                    break
        return [
            replace(each, by=people[each.by]) if is_asked(each) and people[each.by] != each.by else each
            for each in messages
        ], refused


def parts(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Cut a batch where a request is about what an earlier one may make: only the tables tell whose it is."""
    part: list[Message] = []
    begun: set[str] = set()
    defines = False
    for message in messages:
        if is_asked(message):
            by_name = isinstance(message, Start | Retire) and isinstance(message.flow, str)
            if (by_name and defines) or run_of(message) in begun:
                yield part
                part, begun, defines = [], set(), False
            if isinstance(message, Start):
                begun.add(message.run_id)
            defines = defines or isinstance(message, Define) or (isinstance(message, Start) and not by_name)
        part.append(message)
    yield part


def tools_of(flow: Flow) -> Iterator[str]:
    """Name the tools that a flow calls, itself and not by its sub-flows."""
    for step in flow.steps.values():
        action = step.action.body if isinstance(step.action, Foreach) else step.action
        if isinstance(action, Call):
            yield action.tool


class _Case:
    """Finds out what must be asked, with as few queries as there are things to know."""

    def __init__(
        self,
        conn: Connection,
        definitions: Definitions,
        tools: ToolCatalogue | None,
        limits: Limits,
        owners: Mapping[str, Resource],
    ) -> None:
        self._conn = conn
        self._definitions = definitions
        self._tools = tools
        self._limits = limits
        self._owners = owners
        self._found: dict[str, _Plan | None] = {}
        self._made: dict[tuple[str | None, str], _Plan] = {}

    def questions(self, message: Asked) -> list[Question]:
        """List what the asker must be allowed. Nothing for what does not exist: that is said of it."""
        rule = RULES[type(message)]
        match message:
            case Define():
                plan = self._compiled(message.document, message.name)
                return [_about_flow(rule, plan.name), *_about_tools(plan), *_about_sub_flows(plan)]
            case Start() if not isinstance(message.flow, str):
                plan = self._compiled(message.flow, message.name)
                own = (RULES[Define], rule)
                about = [_about_flow(each, plan.name) for each in own]
                return [*about, *_about_tools(plan), *_about_sub_flows(plan)]
            case Start():
                found = self._named(str(message.flow))
                return [] if found is None else [_about_flow(rule, found.name), *_about_tools(found)]
            case Retire():
                found = self._named(message.flow)
                return [] if found is None else [_about_flow(rule, found.name)]
            case Broadcast():
                return [Question(rule.permission, Resource(), rule.words.format("any flow"))]
            case _:
                owner = self._owners.get(message.run_id)
                words = rule.words.format(owner.flow if owner else "")
                return [] if owner is None else [Question(rule.permission, owner, words)]

    def _named(self, flow: str) -> _Plan | None:
        if flow not in self._found:
            try:
                self._found[flow] = self._plan(self._definitions.find(self._conn, flow).flow)
            except (StoreError, NotReachable):
                raise
            except WfceleryError:
                self._found[flow] = None
        return self._found[flow]

    def _compiled(self, document: Json, name: str | None) -> _Plan:
        """Read a document as far as rights go; one that cannot be read is refused later."""
        try:
            plain = canonical_document(document, limits=self._limits)
            key = (name, canonical(plain))
            if key not in self._made:
                self._made[key] = self._plan(compile_flow(plain, name=name, limits=self._limits))
            return self._made[key]
        except Exception:  # noqa: BLE001 - whatever is wrong with it, the batch finds it again, and says it
            return _Plan(SOMETHING.flow)

    def _plan(self, flow: Flow) -> _Plan:
        called = sorted({name for name, _ in flow_references(flow)})
        return _Plan(flow.name, tuple(self._guarded(flow)), tuple(called))

    def _guarded(self, flow: Flow) -> Iterator[tuple[str, str]]:
        for tool in dict.fromkeys(tools_of(flow)):
            permission = self._tools.permission(tool) if self._tools and tool in self._tools else None
            if permission is not None:
                yield tool, permission


def _owners(conn: Connection, asked: Iterable[Asked], known: Mapping[str, Run]) -> dict[str, Resource]:
    named = {run_id for message in asked if not isinstance(message, Start) and (run_id := run_of(message))}
    found = {
        run_id: Resource(known[run_id].name, run_id, known[run_id].created_by)
        for run_id in named & known.keys()
    }
    for run_id, flow, owner in runs.owners(conn, sorted(named - known.keys())):
        found[run_id] = Resource(flow, run_id, owner)
    return found


def _about_flow(rule: Rule, name: str) -> Question:
    shown = "flows" if name == SOMETHING.flow else name
    return Question(rule.permission, Resource(flow=name), rule.words.format(shown))


def _about_tools(plan: _Plan) -> list[Question]:
    return [
        Question(permission, Resource(flow=plan.name), f"use the tool {tool}, which {plan.name} calls")
        for tool, permission in plan.tools
    ]


def _about_sub_flows(plan: _Plan) -> list[Question]:
    """Ask whether the author may start them: else whoever may define anything could start everything."""
    return [
        Question(Permission.START, Resource(flow=name), f"start {name}, which {plan.name} runs")
        for name in plan.flows
    ]


def _refusal(who: Principal, ask: Question) -> Answer:
    reason = f"{who.id} may not {ask.words} (permission {ask.permission})"
    return Answer(ok=False, reason=reason, code=FORBIDDEN, data={"permission": str(ask.permission)})
