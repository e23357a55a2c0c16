from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wfcelery.tools import Context, Registry
from wfcelery.tools.call import Failed, Returned, call

if TYPE_CHECKING:
    from wfcelery.core.values import Json

TOOLS = Registry.with_builtins()


@pytest.mark.parametrize(
    ("args", "result"),
    [
        ({}, {}),
        ({"value": [1, "a", None]}, [1, "a", None]),
        ({"value": None}, None),
        ({"value": 1, "other": 2}, {"value": 1, "other": 2}),
        ({"ctx": 1, "self": 2, "arguments": 3}, {"ctx": 1, "self": 2, "arguments": 3}),
        ({"no identifier": True}, {"no identifier": True}),
    ],
)
def test_echo_returns_its_arguments_or_its_single_value(args: dict[str, object], result: Json) -> None:
    assert call(TOOLS.get("echo"), args, Context()) == Returned(result)


def test_sleep_returns_nothing() -> None:
    assert call(TOOLS.get("sleep"), {"seconds": 0}, Context()) == Returned(None)


@pytest.mark.parametrize(("attempt", "fails"), [(1, True), (2, True), (3, False), (4, False)])
def test_fail_fails_the_first_attempts_and_then_succeeds(attempt: int, fails: bool) -> None:
    report = call(TOOLS.get("fail"), {"message": "not yet", "times": 2}, Context(attempt=attempt))
    if fails:
        assert isinstance(report, Failed)
        assert (report.type, report.message, report.retry) == ("ToolError", "not yet", True)
    else:
        assert report == Returned({"attempts": attempt})


@pytest.mark.parametrize("args", [{}, {"times": None}])
def test_fail_without_times_always_fails(args: dict[str, object]) -> None:
    report = call(TOOLS.get("fail"), args, Context(attempt=1000))
    assert isinstance(report, Failed)
    assert (report.type, report.message, report.retry) == ("ToolError", "failed on purpose", True)
