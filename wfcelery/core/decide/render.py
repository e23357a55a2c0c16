"""Filling in templates: the arguments of what runs, and what an approver is shown of what follows."""

from __future__ import annotations

from collections.abc import Mapping

from wfcelery.core.decide.attempts import work_of
from wfcelery.core.decide.draft import Draft
from wfcelery.core.decide.scope import scope_of
from wfcelery.core.expressions import Template, encode_secrets
from wfcelery.core.flow import Call, Foreach, Gate, Label, Step, SubFlow
from wfcelery.core.state import Prepared
from wfcelery.core.values import Json
from wfcelery.errors import ExpressionError, InvalidInput


def prepare(draft: Draft, step: Step, value: Json) -> Prepared:
    """Render the step's arguments, unless an approver has seen them: then those are what runs."""
    frozen = _frozen(draft, step)
    return render_work(draft, work_of(step), result=value) if frozen is None else frozen


def items_of(draft: Draft, step: Step, foreach: Foreach, value: Json) -> Json:
    """Render the items of a foreach, unless an approver has seen them: then it is done for those."""
    frozen = _frozen(draft, step)
    if frozen is not None and isinstance(frozen.args, Mapping):
        return frozen.args.get("items")
    return render(draft, foreach.items, result=value).args


def render_work(draft: Draft, work: Call | SubFlow, **more: Json) -> Prepared:
    """Render the arguments of a tool, or the input of a sub-flow."""
    return render(draft, template_of(work), **more)


def template_of(work: Call | SubFlow) -> Template:
    """Give what a tool or a sub-flow is called with."""
    return work.args if isinstance(work, Call) else work.input


def render(draft: Draft, template: Template, **more: Json) -> Prepared:
    """Fill in a template; what is missing of a lenient flow's input is told of."""
    rendered = template.render(
        scope_of(draft, **more), lenient_input=draft.flow.lenient, max_size=draft.limits.payload_bytes
    )
    if rendered.missing:
        draft.note("input_missing", None, names=list(rendered.missing))
    return Prepared(rendered.value, encode_secrets(rendered.secrets))


def preview_of(draft: Draft, step: Step, gate: Gate, value: Json) -> dict[str, Prepared]:
    """Render what follows the gate, as far as it does not depend on the decision itself."""
    preview: dict[str, Prepared] = {}
    for edge in step.edges:
        following = draft.flow.steps[edge.target]
        template = _shown_of(following)
        if edge.label in (Label.DENY, Label.ERROR) or template is None:
            continue
        if len(draft.flow.ways_in[following.name]) > 1 or _depends_on(template, step.name, gate):
            continue
        try:
            rendered = render(draft, template, result=value)
        except (ExpressionError, InvalidInput):
            continue  # It has no value yet; if it still has none when its turn comes, it fails there.
        if isinstance(following.action, Foreach):
            each = template_of(following.action.body).source
            rendered = Prepared({"items": rendered.args, "each": each})
        preview[following.name] = rendered
    return preview


def _shown_of(step: Step) -> Template | None:
    """Give the template of a step that an approver sees rendered; of a foreach, that of its items."""
    match step.action:
        case Call() | SubFlow() as work:
            return template_of(work)
        case Foreach(items):
            return items
        case _:
            return None


def _frozen(draft: Draft, step: Step) -> Prepared | None:
    """Give what the approvers of the gate right before a step have seen of it."""
    ways = draft.flow.ways_in[step.name]
    return draft.run.frozen.get(ways[0].source, {}).get(step.name) if len(ways) == 1 else None


def _depends_on(template: Template, name: str, gate: Gate) -> bool:
    return any(
        (reference.root == "result" and not gate.pass_result)
        or (reference.root == "steps" and reference.path[:1] in ((), (name,)))
        for reference in template.references
    )
