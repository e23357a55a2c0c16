from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from wfcelery.errors import InvalidInput, InvalidSettings, NotFound
from wfcelery.tools import Registry, Tool, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@tool
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@tool(name="crm.lookup", events=("found", "missing"), permission="crm.read", requires_approval=True)
def lookup(mail: str) -> str:
    return mail


def other_double(number: int) -> int:
    return number + number


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write


def test_a_tool_is_still_the_plain_function() -> None:
    assert double(4) == 8
    assert inspect.signature(double) == inspect.signature(double.function)


def test_a_bare_mark_takes_the_name_and_docstring_of_the_function() -> None:
    described = (double.name, double.events, double.permission, double.requires_approval, double.description)
    assert described == ("double", (), None, False, "Twice the number.")


def test_a_mark_with_settings_keeps_them() -> None:
    described = (lookup.name, lookup.events, lookup.permission, lookup.requires_approval, lookup.description)
    assert described == ("crm.lookup", ("found", "missing"), "crm.read", True, "")


def test_a_single_event_may_be_given_as_text() -> None:
    assert tool(events="found")(other_double).events == ("found",)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 129, "é", "a\n"])
def test_a_name_that_no_flow_can_spell_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        tool(name=name)(other_double)
    rule = "must be named by 1 to 128 letters, digits, `_`, `-`, `.`; give it a name with @tool(name=...)"
    assert str(caught.value) == f"tool {name!r}: {rule}"


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="tool '<lambda>': must be named by"):
        Registry([lambda: 1])


def test_an_event_that_no_flow_can_spell_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        tool(events=("not found",))(other_double)
    rule = "an event must be 1 to 64 letters, digits, `_`, `-`"
    assert str(caught.value) == f"tool 'other_double': declares the event 'not found'; {rule}"


def test_tools_and_functions_are_found_by_name() -> None:
    registry = Registry([lookup, other_double])
    assert registry.get("crm.lookup") is lookup
    assert registry.get("other_double").function is other_double
    assert registry.names == ("crm.lookup", "other_double")
    assert [each.name for each in registry] == ["crm.lookup", "other_double"]
    assert ("crm.lookup" in registry, "crm" in registry, len(registry)) == (True, False, 2)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFound) as caught:
        Registry([lookup]).get("crm.lokup")
    assert str(caught.value) == "no tool crm.lokup; did you mean `crm.lookup`?"


def test_the_same_tool_twice_is_one_tool() -> None:
    registry = Registry([double, double, double.function])
    assert registry.names == ("double",)


def test_two_tools_of_one_name_are_refused_naming_both_places() -> None:
    twin: Tool[[int], int] = tool(name="double")(other_double)
    registry = Registry([double])
    with pytest.raises(InvalidInput) as caught:
        registry.add(twin)
    assert str(caught.value) == (
        f"tool 'double': is defined twice, by {double.place} and by {twin.place}; "
        "rename one with @tool(name=...)"
    )
    assert double.place == f"{__name__}.double (line {double.function.__code__.co_firstlineno})"
    assert registry.get("double") is double


def test_a_tool_can_be_replaced_when_told_so() -> None:
    registry = Registry([double])
    twin = registry.add(tool(name="double")(other_double), replace=True)
    assert registry.get("double") is twin


def test_the_builtins_are_there_when_asked_for() -> None:
    assert Registry.with_builtins().names == ("echo", "fail", "sleep")
    assert Registry().names == ()


def test_the_tools_of_a_module_are_collected_and_nothing_else() -> None:
    made = ModuleType("made")
    vars(made).update(double=double, again=double, plain=other_double, number=3)
    registry = Registry()
    registry.add_module(made)
    assert registry.names == ("double",)


def test_named_modules_are_imported_and_their_tools_added(module: Callable[[str, str], str]) -> None:
    name = module("mine", "from wfcelery.tools import tool\n@tool\ndef mine() -> int:\n    return 1\n")
    assert Registry.load([name]).names == ("echo", "fail", "mine", "sleep")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "import nowhere_at_all",
            "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
    ],
)
def test_a_broken_module_is_one_settings_error(
    text: str, reason: str, module: Callable[[str, str], str]
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Registry.load([module("broken", text)])
    assert str(caught.value) == f"setting WFCELERY_TOOLS: module `broken` {reason}"


def test_all_bad_modules_are_named_at_once(module: Callable[[str, str], str]) -> None:
    clash = module("clash", "from wfcelery.tools import tool\n@tool\ndef echo() -> int:\n    return 1\n")
    with pytest.raises(InvalidSettings) as caught:
        Registry.load(["nowhere_at_all", module("empty", ""), clash])
    assert str(caught.value) == (
        "setting WFCELERY_TOOLS: "
        "module `nowhere_at_all` cannot be imported: "
        "ModuleNotFoundError: No module named 'nowhere_at_all'; "
        "module `empty`: empty: holds no tools; mark functions with @tool; "
        f"module `clash`: tool 'echo': is defined twice, by {Registry.with_builtins().get('echo').place} "
        "and by clash.echo (line 2); rename one with @tool(name=...)"
    )
