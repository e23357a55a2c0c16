"""What a step does: from the fields of its spec to one action."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from wfcelery.core.document.shape import quoted
from wfcelery.core.document.spec import ADDRESSEE_RULE, LONGEST_S, is_addressee
from wfcelery.core.flow import (
    Action,
    Call,
    Delay,
    Foreach,
    Gate,
    OnItemError,
    OnTimeout,
    Pass,
    SubFlow,
    Until,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfcelery.core.document.report import Report
    from wfcelery.core.document.spec import ApprovalSpec, ForeachSpec, StepSpec, WaitSpec
    from wfcelery.core.reading.place import Path
    from wfcelery.core.values import Json

ACTIONS: Final = ("tool", "approval", "wait", "delay", "until", "foreach", "flow")
GROUP: Final = "group:"


def action_of(spec: StepSpec, path: Path, report: Report) -> Action:
    """Make the one thing that the step does; note where it says two, or what does not belong together."""
    said = [name for name in ACTIONS if name in spec.model_fields_set and getattr(spec, name) is not None]
    no_tool = "tool" in spec.model_fields_set and spec.tool is None
    if len(said) > 1:
        words = " and ".join(f"`{name}`" for name in said)
        report.add("several-actions", path, f"the step says {words}; it can do one thing", "split the step")
    elif no_tool and said and said != ["approval"]:
        message = f"`tool: null` is an approval gate, and the step also says `{said[0]}`"
        report.add("several-actions", path, message, "remove one of them")
    if spec.args and spec.tool is None:
        hint = "name the tool, or remove `args`"
        report.add("misplaced-field", (*path, "args"), "there is no tool to give arguments to", hint)
    if spec.notify_user is not None and said and said != ["approval"]:
        hint = "give the gate a step of its own"
        report.add("misplaced-field", (*path, "notify_user"), "only an approval gate notifies a user", hint)
    if spec.timeout_s is not None and said in (["delay"], ["until"]):
        report.add("misplaced-field", (*path, "timeout_s"), f"a `{said[0]}` cannot time out", "remove it")
    return _made(spec, said[0] if said else "", path, report, is_gate=no_tool or spec.notify_user is not None)


def _made(spec: StepSpec, kind: str, path: Path, report: Report, *, is_gate: bool) -> Action:
    if spec.tool is not None and kind == "tool":
        return Call(spec.tool, report.template(spec.args or {}, (*path, "args")))
    if spec.approval is not None and kind == "approval":
        return _gate(spec, spec.approval, (*path, "approval"), report)
    if spec.wait is not None and kind == "wait":
        return _wait(spec, spec.wait, (*path, "wait"), report)
    if kind == "delay":
        return _delay(spec.delay, (*path, "delay"), report)
    if spec.until is not None and kind == "until":
        return _until(spec.until, (*path, "until"), report)
    if spec.foreach is not None and kind == "foreach":
        return _foreach(spec.foreach, (*path, "foreach"), report)
    if spec.flow is not None and kind == "flow":
        source = {} if spec.flow.input is None else spec.flow.input
        inner = report.template(source, (*path, "flow", "input"))
        return SubFlow(spec.flow.name, spec.flow.version, inner, spec.flow.wait)
    if is_gate:
        return Gate(notify=_notified(spec, path, report), timeout_s=spec.timeout_s)
    if spec.timeout_s is not None:
        hint = "say what it waits for: `approval`, `wait` or a `tool`"
        report.add("misplaced-field", (*path, "timeout_s"), "a step that does nothing cannot time out", hint)
    return Pass()


def _gate(step: StepSpec, spec: ApprovalSpec, path: Path, report: Report) -> Gate:
    approvers = _each_once(spec.approvers or [], (*path, "approvers"), report)
    escalate_to = _each_once(spec.escalate_to or [], (*path, "escalate_to"), report)
    voters = {*approvers, *escalate_to}
    if approvers and spec.quorum > len(voters) and not any(who.startswith(GROUP) for who in voters):
        message = f"{spec.quorum} must approve, and there are {len(voters)} who can"
        report.add("quorum-too-large", (*path, "quorum"), message, "name more approvers, or lower the quorum")
    timeout_s = spec.timeout_s if spec.timeout_s is not None else step.timeout_s
    if spec.on_timeout != "deny" and timeout_s is None:
        message = f"`on_timeout: {spec.on_timeout}` needs a time"
        report.add("missing-field", (*path, "timeout_s"), message, "add `timeout_s`")
    if spec.on_timeout == "escalate" and not spec.escalate_to:
        message = "`on_timeout: escalate` needs somebody to escalate to"
        report.add("missing-field", (*path, "escalate_to"), message, "add `escalate_to`")
    if spec.escalate_to and spec.on_timeout != "escalate":
        message = "nobody is asked without `on_timeout: escalate`"
        report.add("misplaced-field", (*path, "escalate_to"), message, "add it, or remove `escalate_to`")
    if spec.pass_result and spec.form is not None:
        message = "the answers of a form are the gate's result, and `pass_result` passes another one on"
        report.add("misplaced-field", (*path, "pass_result"), message, "remove one of them")
    return Gate(
        approvers=approvers,
        quorum=spec.quorum,
        allow_self=spec.allow_self,
        require_comment=spec.require_comment,
        form=cast("Mapping[str, Json] | None", spec.form),
        notify=tuple(spec.notify or ()) or _notified(step, path[:-1], report),
        timeout_s=timeout_s,
        on_timeout=OnTimeout(spec.on_timeout),
        escalate_to=escalate_to,
        remind_every_s=spec.remind_every_s,
        pass_result=spec.pass_result,
    )


def _each_once(names: list[str], path: Path, report: Report) -> tuple[str, ...]:
    """Give the names; one that is listed twice would seem to count twice, and does not."""
    for name, times in Counter(names).items():
        if times > 1:
            report.add("duplicate-name", path, f"`{name}` is listed {times} times", "name everybody once")
    return tuple(dict.fromkeys(names))


def _notified(spec: StepSpec, path: Path, report: Report) -> tuple[str, ...]:
    """Read the old `notify_user`; true means those who are notified anyway."""
    match spec.notify_user:
        case str(who):
            names = [who]
        case list(several):
            names = [who for who in several if isinstance(who, str)]
            if len(names) != len(several):
                report.add("bad-type", (*path, "notify_user"), "must be true, text or a list of text")
        case _:
            return ()
    for who in names:
        if not is_addressee(who):
            report.add("bad-name", (*path, "notify_user"), f"{quoted(who)} {ADDRESSEE_RULE}")
    return tuple(names)


def _wait(step: StepSpec, spec: WaitSpec, path: Path, report: Report) -> Wait:
    timeout_s = spec.timeout_s if spec.timeout_s is not None else step.timeout_s
    if spec.on_timeout is not None and timeout_s is None:
        report.add("missing-field", (*path, "timeout_s"), "`on_timeout` needs a time", "add `timeout_s`")
    key = None if spec.key is None else report.template(spec.key, (*path, "key"))
    return Wait(spec.signal, key, timeout_s)


def _delay(value: object, path: Path, report: Report) -> Delay:
    seconds = report.template(value, path)
    if isinstance(value, str):
        if seconds.is_constant and "{{" not in value:
            message = "must be a number of seconds or a template; it is text"
            report.add("bad-type", path, message, "write the number without quotes or unit")
    elif isinstance(value, (int, float)) and not 0 <= value <= LONGEST_S:
        report.add("out-of-range", path, f"must be from 0 to {LONGEST_S} seconds; it is {value}")
    return Delay(seconds)


def _until(value: str, path: Path, report: Report) -> Until:
    moment = report.template(value, path)
    if "{{" not in value:
        try:
            aware = datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            message = f"`{value[:64]}` is not a moment in ISO 8601"
            report.add("bad-value", path, message, "write it like 2030-01-31T09:00:00Z")
        else:
            if not aware:
                message = f"`{value[:64]}` does not say its time zone"
                report.add("bad-value", path, message, "add Z for UTC, or an offset like +01:00")
    return Until(moment)


def _foreach(spec: ForeachSpec, path: Path, report: Report) -> Foreach:
    items = report.template(spec.items, (*path, "items"))
    if isinstance(spec.items, str) and "{{" not in spec.items:
        report.add("bad-type", (*path, "items"), "must be a template or a list; it is text", "use {{...}}")
    if (spec.tool is None) == (spec.flow is None):
        code = "missing-field" if spec.tool is None else "several-actions"
        report.add(code, path, "a foreach needs one of `tool` and `flow`", "say what is done for each item")
    for name, owner, has_owner in (
        ("args", "tool", spec.tool is not None),
        ("input", "flow", spec.flow is not None),
        ("version", "flow", spec.flow is not None),
    ):
        if name in spec.model_fields_set and not has_owner:
            report.add("misplaced-field", (*path, name), f"`{name}` belongs to `{owner}`", f"add `{owner}`")
    body: Call | SubFlow
    if spec.flow is not None:
        source = {} if spec.input is None else spec.input
        body = SubFlow(spec.flow, spec.version, report.template(source, (*path, "input")))
    else:
        body = Call(spec.tool or "", report.template(spec.args or {}, (*path, "args")))
    return Foreach(items, body, spec.concurrency, OnItemError(spec.on_item_error))
