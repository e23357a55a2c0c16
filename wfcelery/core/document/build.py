"""From plain data to a flow: the two spellings, the header, the names; every fault of shape at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from wfcelery.core import graph
from wfcelery.core.document import shape
from wfcelery.core.document.report import Report
from wfcelery.core.document.schemas import check_schema
from wfcelery.core.document.spec import (
    HEADER_FIELDS,
    NAME_RULE,
    STEP_FIELDS,
    DefaultsSpec,
    HeaderSpec,
    StepSpec,
    is_name,
)
from wfcelery.core.document.steps import WAYS, count_edges, make_step, ways_said
from wfcelery.core.faults import Fault, nearest
from wfcelery.core.flow import Edge, Flow, KeyScope, Label, Step
from wfcelery.core.limits import DEFAULT, Limits
from wfcelery.core.reading.place import Path, Place, nowhere
from wfcelery.core.reading.plain import faults_of_values

if TYPE_CHECKING:
    from wfcelery.core.values import Json

_ELSEWHERE: Final = frozenset({"nodes", "edges"})
_LEADS_ON: Final = frozenset({*WAYS, "done", "on_error"})


@dataclass(frozen=True, slots=True)
class Draft:
    """What came of a document: a flow with stand-ins where there are faults, or none at all.

    `paths` says where each step stands in the document. `unsure` names the steps whose own faults may
    hide a way on: what seems to be missing there need not be.
    """

    flow: Flow | None
    faults: tuple[Fault, ...]
    paths: Mapping[str, Path]
    unsure: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Written:
    """The parts of a document, in one form for both spellings."""

    header: Mapping[str, object]
    steps: Mapping[str, Mapping[str, object]]
    paths: Mapping[str, Path]
    start: str
    flat: bool


def build(
    data: object, *, place: Place | None = None, name: str | None = None, limits: Limits = DEFAULT
) -> Draft:
    """Make as much of a flow as `data` allows, with all faults of its shape."""
    place = place or nowhere
    faults = faults_of_values(data, place=place, limits=limits)
    if faults:
        return Draft(None, tuple(faults), {})
    report = Report(place)
    written = _written(data, report, limits)
    if written is None:
        return Draft(None, tuple(report.faults), {})
    specs, unsure = _specs(written, report)
    edges = sum(map(count_edges, specs.values()))
    if edges > limits.edges:
        message = f"the flow has {edges:,} edges; at most {limits.edges:,} are allowed"
        report.add("too-many-edges", (), message, "split it into sub-flows, or use `foreach`")
        return Draft(None, tuple(report.faults), {})
    header, _ = shape.fit(HeaderSpec, written.header, (), report)
    flow = _flow(written, header, specs, name, report)
    return Draft(flow, tuple(report.faults), written.paths, unsure)


def _written(data: object, report: Report, limits: Limits) -> _Written | None:
    if not isinstance(data, Mapping):
        message = f"a flow is a map; this is {shape.kind(data)}"
        report.add("bad-type", (), message, "write a map with `start` and its steps")
        return None
    if _ELSEWHERE.issuperset(data) and data:
        report.add(
            "not-yet", (), "the spelling with `nodes` and `edges` is not supported yet", "write `steps`"
        )
        return None
    is_full = "steps" in data or _is_header(data)
    raw = data.get("steps", {}) if is_full else data
    if not isinstance(raw, Mapping):
        report.add("bad-type", ("steps",), f"must be a map from step name to step; it is {shape.kind(raw)}")
        return None
    if len(raw) > limits.steps + (not is_full):
        message = f"the flow has {len(raw):,} steps; at most {limits.steps:,} are allowed"
        report.add("too-many-steps", ("steps",) if is_full else (), message, "split it into sub-flows")
        return None
    return _full(data, raw, report) if is_full else _flat(data, report)


def _is_header(data: Mapping[str, object]) -> bool:
    """Tell whether only the steps have been forgotten."""
    says_start = isinstance(data.get("start"), Mapping) or set(data) <= {"start"}
    return HEADER_FIELDS.issuperset(data) and not says_start


def _full(data: Mapping[str, object], raw: Mapping[str, object], report: Report) -> _Written:
    if "steps" not in data:
        report.add("missing-field", ("steps",), "the field `steps` is required", "add `steps`")
    start = data.get("start")
    header = {key: value for key, value in data.items() if key != "steps"}
    steps = {key: _as_map(value, ("steps", key), report) for key, value in raw.items()}
    paths: dict[str, Path] = {key: ("steps", key) for key in raw}
    if start is None:
        hint = f"add `start: {next(iter(raw), 'NAME')}`"
        report.add(
            "missing-start", ("start",) if "start" in data else (), "nothing says where to start", hint
        )
        header.pop("start", None)
    return _Written(header, steps, paths, start if isinstance(start, str) else "", flat=False)


def _flat(data: Mapping[str, object], report: Report) -> _Written:
    steps: dict[str, Mapping[str, object]] = {}
    paths: dict[str, Path] = {}
    start = ""
    for key, value in data.items():
        name = key
        if key == "start" and isinstance(value, str):
            start = value
            continue
        if key == "start":
            inner = value.get("name") if isinstance(value, Mapping) else None
            start = name = inner if isinstance(inner, str) else key
        elif key in HEADER_FIELDS:
            message = f"`{key}` is a word of the header, which stands beside `steps`"
            report.add("reserved-name", (key,), message, "put the steps under `steps:`, or rename the step")
            continue
        if name in steps:
            message = f"two steps are called `{name}`"
            report.add("duplicate-name", (key,), message, "rename one of them")
            continue
        steps[name] = _as_map(value, (key,), report)
        paths[name] = (key,)
    if not start:
        hint = "add `start`: the first step, or its name"
        report.add("missing-start", (), "nothing says where to start", hint)
    return _Written({}, steps, paths, start, flat=True)


def _as_map(value: object, path: Path, report: Report) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    report.add("bad-type", path, f"a step is a map; this is {shape.kind(value)}", "write its fields below it")
    return {"done": True}


def _specs(written: _Written, report: Report) -> tuple[dict[str, StepSpec], frozenset[str]]:
    _check_names(written, report)
    specs: dict[str, StepSpec] = {}
    unsure: set[str] = set()
    for name, raw in written.steps.items():
        path = written.paths[name]
        if "undo" in raw:
            report.add("not-yet", (*path, "undo"), "`undo` is not supported yet", "remove it")
        known = {key: value for key, value in raw.items() if key != "undo"}
        specs[name], misfit = shape.fit(StepSpec, known, path, report)
        if any(_may_lead_on(field, raw.get(field)) for field in misfit):
            unsure.add(name)
        inner = specs[name].name
        if inner is not None and inner != name:
            message = f"the step is called `{name}` by its key and `{inner[:64]}` inside"
            report.add("name-mismatch", (*path, "name"), message, "remove the inner name")
    return specs, frozenset(unsure)


def _check_names(written: _Written, report: Report) -> None:
    seen: dict[str, str] = {}
    for name in written.steps:
        path = written.paths[name]
        if not is_name(name):
            report.add(
                "bad-name",
                path,
                f"{shape.quoted(name)} cannot be the name of a step: it {NAME_RULE}",
                "rename it",
            )
        other = seen.setdefault(name.lower(), name)
        if other != name:
            message = f"`{name}` and `{other}` differ only by case"
            report.add("duplicate-name", path, message, "rename one of them")


def _may_lead_on(field: str, value: object) -> bool:
    """Tell whether a field that cannot be read may have said where the step goes on."""
    if field not in STEP_FIELDS:
        meant = nearest(field, STEP_FIELDS)
        return not meant or any(f"`{way}`" in meant for way in _LEADS_ON)
    inner = isinstance(value, Mapping) and ("on_deny" in value or "on_timeout" in value)
    return field in _LEADS_ON or inner


def _flow(
    written: _Written, header: HeaderSpec, specs: Mapping[str, StepSpec], name: str | None, report: Report
) -> Flow:
    defaults = header.defaults or DefaultsSpec()
    steps = {
        each: make_step(each, spec, defaults, written.paths[each], report) for each, spec in specs.items()
    }
    _join_branches(specs, steps, written.paths, report)
    if header.input is not None:
        check_schema(header.input, ("input",), report)
    key = None if header.key is None else report.template(header.key, ("key",))
    output = None
    if "output" in header.model_fields_set:
        output = report.template(header.output, ("output",))
    if written.start and written.start not in steps:
        hint = nearest(written.start, steps)
        report.add("unknown-step", ("start",), f"there is no step `{written.start[:64]}`", hint)
    others = [*(key.references if key else ()), *(output.references if output else ())]
    return Flow(
        name=header.name or _default_name(name),
        start=written.start,
        steps=steps,
        ways_in=graph.ways_in(steps),
        kept=graph.kept(steps, others),
        description=header.description or "",
        input_schema=cast("Mapping[str, Json] | None", header.input),
        key=key,
        key_scope=KeyScope(header.key_scope),
        tags=tuple(header.tags or ()),
        metadata=cast("Mapping[str, Json]", header.metadata or {}),
        output=output,
        lenient=written.flat,
        notify=tuple(dict.fromkeys(defaults.notify or ())),
    )


def _join_branches(
    specs: Mapping[str, StepSpec], steps: dict[str, Step], paths: Mapping[str, Path], report: Report
) -> None:
    """Apply `join` beside `parallel`: where the branches go on that do not say so themselves."""
    for name, spec in specs.items():
        if spec.parallel is None or spec.join is None:
            continue
        used = False
        for branch in spec.parallel:
            if branch in specs and not ways_said(specs[branch]) and not steps[branch].done:
                step = steps[branch]
                if step.edge(Label.JOIN) is None:
                    steps[branch] = replace(step, edges=(Edge(branch, Label.JOIN, spec.join), *step.edges))
                used = True
        if not used and spec.join not in steps:
            message = f"there is no step `{spec.join[:64]}`"
            report.add("unknown-step", (*paths[name], "join"), message, nearest(spec.join, steps))


def _default_name(name: str | None) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name or "")[:64].strip("-") or "flow"
