"""Whether arguments fit a tool: by name and type hint, when a flow is defined and when the tool is called.

Type hints are applied to JSON strictly: `"3"` is not an integer, `true` is not 1, 3 is a good float.
A hint that stands for more than JSON (a dataclass, a pydantic model, datetime, an Enum) is built from it, so
the tool gets what its hint says. A hint that cannot be resolved, or says nothing about JSON, is not checked.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pydantic
from pydantic.errors import PydanticUserError

from wfcelery.core.faults import nearest
from wfcelery.core.values import canonical, check
from wfcelery.errors import InvalidInput
from wfcelery.tools.context import Context
from wfcelery.tools.failures import BadArguments

if typing.TYPE_CHECKING:
    from wfcelery.tools.declare import AnyTool

Misfit = tuple[str, str]

MOST_MISFITS: Final = 20


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a tool takes; `hint` checks it, where it can be checked."""

    name: str
    required: bool
    positional_only: bool
    default: object
    hint: pydantic.TypeAdapter[Any] | None


@dataclass(frozen=True, slots=True)
class Accepts:
    """What a tool takes: its arguments in order, any others, and its context under some name."""

    parameters: tuple[Parameter, ...]
    others: Parameter | None
    context: str | None

    def find(self, name: str) -> Parameter | None:
        """Return the parameter that the argument `name` goes to."""
        return next((each for each in self.parameters if each.name == name != self.context), self.others)


def check_arguments(
    tool: AnyTool, args: Mapping[str, object], is_constant: Callable[[object], bool]
) -> list[Misfit]:
    """List every misfit of `args` as (path inside args, what is wrong); values that are not constant pass."""
    accepts = accepts_of(tool)
    misfits = _misnamed(tool, accepts, args)
    for name, value in args.items():
        parameter = accepts.find(name)
        if parameter is not None and name != accepts.context and is_constant(value):
            misfits += _fitted(parameter, name, value)[1]
    return misfits


def bind(
    tool: AnyTool, args: Mapping[str, object], context: Context
) -> tuple[list[object], dict[str, object]]:
    """Return the positional and named arguments of the call, or raise `BadArguments` with every misfit.

    The tool gets data of its own: what it does to its arguments is seen by nobody else.
    """
    accepts = accepts_of(tool)
    try:
        given = check(args, "arguments")
    except InvalidInput as error:
        raise BadArguments(tool.name, (("", str(error)),)) from None
    given = given if isinstance(given, dict) else {}
    misfits = _misnamed(tool, accepts, given)
    values: dict[str, object] = {}
    for name, value in given.items():
        parameter = accepts.find(name)
        if parameter is not None and name != accepts.context:
            values[name], wrong = _fitted(parameter, name, value)
            misfits += wrong
    if misfits:
        raise BadArguments(tool.name, tuple(misfits[:MOST_MISFITS]))
    if accepts.context is not None:
        values[accepts.context] = context
    front = [each for each in accepts.parameters if each.positional_only]
    return [values.pop(each.name, each.default) for each in front], values


@functools.lru_cache(maxsize=1024)
def accepts_of(tool: AnyTool) -> Accepts:
    """Read the signature of `tool`; a callable that hides it takes anything."""
    anything = Parameter("", required=False, positional_only=False, default=None, hint=None)
    try:
        signature = inspect.signature(tool.function)
    except (TypeError, ValueError, NameError):
        return Accepts((), anything, None)
    parameters, others, context = [], None, None
    for name, raw in signature.parameters.items():
        hint = _resolved(tool.function, raw.annotation)
        if raw.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        if raw.kind is inspect.Parameter.VAR_KEYWORD:
            others = Parameter(name, required=False, positional_only=False, default=None, hint=_adapter(hint))
            continue
        is_context = name == "ctx" or _means_context(hint, raw.annotation)
        context = name if is_context and context is None else context
        parameters.append(
            Parameter(
                name,
                required=raw.default is inspect.Parameter.empty,
                positional_only=raw.kind is inspect.Parameter.POSITIONAL_ONLY,
                default=raw.default,
                hint=None if is_context else _adapter(hint),
            )
        )
    return Accepts(tuple(parameters), others, context)


def _misnamed(tool: AnyTool, accepts: Accepts, args: Mapping[str, object]) -> list[Misfit]:
    known = [each.name for each in accepts.parameters if each.name != accepts.context]
    takes = ", ".join(f"`{name}`" for name in known) or "none"
    misfits: list[Misfit] = []
    for name in args:
        if name == accepts.context:
            misfits.append((name, f"is not an argument of the tool `{tool.name}`: the engine fills it in"))
        elif accepts.find(name) is None:
            hint = nearest(name, known) or f"it takes {takes}"
            misfits.append((name, f"is not an argument of the tool `{tool.name}`; {hint}"))
    missing = [each.name for each in accepts.parameters if each.required and each.name not in args]
    reason = f"is missing; the tool `{tool.name}` requires it"
    return [*misfits, *((name, reason) for name in missing if name != accepts.context)]


def _fitted(parameter: Parameter, name: str, value: object) -> tuple[object, list[Misfit]]:
    """Return `value` as the hint has it, and what is wrong with it."""
    if parameter.hint is None:
        return value, []
    try:
        text = canonical(check(value, name))
    except InvalidInput as error:
        return value, [(error.path, error.reason)]
    try:
        fitted = parameter.hint.validate_json(text, strict=True)
    except pydantic.ValidationError as error:
        return value, _explained(name, value, error)
    except Exception as error:  # noqa: BLE001 - validators of models are user code
        return value, [(name, f"cannot be checked: {type(error).__name__}: {error}")]
    if {type(value), type(fitted)} == {bool, int}:
        # pydantic takes `true` for Literal[1], and 1 for Literal[True].
        return value, [(name, f"should be {fitted!r}, but is {_kind(value)}")]
    return fitted, []


def _explained(name: str, value: object, error: pydantic.ValidationError) -> list[Misfit]:
    """Gather pydantic's errors by place: the members of a union each have one for the same place."""
    wrong: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for each in error.errors(include_url=False, include_input=False, include_context=False)[:MOST_MISFITS]:
        path, found = name, value
        for part in each["loc"]:
            if isinstance(found, Mapping) and part in found:
                path, found = f"{path}.{part}", found[part]
            elif isinstance(found, (list, tuple)) and isinstance(part, int) and part < len(found):
                path, found = f"{path}[{part}]", found[part]
        if each["type"] == "missing":
            path, message = f"{path}.{each['loc'][-1]}", "is missing"
        else:
            message = each["msg"].removeprefix("Input ")
            kinds[path] = _kind(found)
        reasons = wrong.setdefault(path, [])
        if message not in reasons:
            reasons.append(message)
    return [
        (path, " or ".join(reasons) + (f", but is {kinds[path]}" if path in kinds else ""))
        for path, reasons in wrong.items()
    ]


def _kind(value: object) -> str:
    """Name the kind of a JSON value; never the value, which may be a secret."""
    if value is None:
        return "null"
    names = {bool: "true or false", str: "text", int: "an integer", float: "a fraction"}
    if type(value) in names:
        return names[type(value)]
    return "a list" if isinstance(value, (list, tuple)) else "a map"


def _resolved(function: Callable[..., object], annotation: object) -> object:
    """Return the type that `annotation` stands for; `empty` when that cannot be found out."""
    if annotation is inspect.Parameter.empty:
        return annotation
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        hints = typing.get_type_hints(holder, globalns=_globals(function), include_extras=True)
    except (NameError, AttributeError, TypeError, ValueError, SyntaxError):
        return inspect.Parameter.empty
    return hints["it"]


def _globals(function: Callable[..., object]) -> dict[str, Any]:
    inner: Any = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    if not inspect.isroutine(inner):
        inner = type(inner).__call__
    return dict(getattr(inner, "__globals__", {}))


def _means_context(hint: object, annotation: object) -> bool:
    if hint is inspect.Parameter.empty and isinstance(annotation, str):
        # Imported for type checkers only: the name is all there is.
        return annotation.rpartition(".")[2] == Context.__name__
    return hint is Context


def _adapter(hint: Any) -> pydantic.TypeAdapter[Any] | None:  # noqa: ANN401 - whatever users write
    if hint is inspect.Parameter.empty or hint is Any or hint is object:
        return None
    try:
        adapter = pydantic.TypeAdapter[Any](hint)
    except (PydanticUserError, NameError, AttributeError, TypeError, ValueError, RecursionError):
        return None
    return adapter if adapter.pydantic_complete else None
