"""Whatever a tool does, its attempt is one report: all that can be tried inside one process."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import os
import pickle
import shutil
import sys
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.core.values import canonical, check
from wfcelery.errors import InvalidInput, NoRetry, ToolError
from wfcelery.tools import Context, Later, Outcome, Registry, Stopped, tool
from wfcelery.tools.call import Failed, Limits, Postponed, Report, Returned, call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wfcelery.core.values import Json

MIB = 1024 * 1024


def run(function: Callable[..., object], **args: object) -> Report:
    return call(Registry().add(function), args, Context())


def returning(value: object) -> Report:
    return call(tool(name="give")(functools.partial(same, value)), {}, Context())


def same(value: object) -> object:
    return value


def raising(error: BaseException) -> Failed:
    def give() -> None:
        raise error

    report = run(give)
    assert isinstance(report, Failed)
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301
    check([report.type, report.message, list(report.ancestors), report.detail], "report")
    return report


def refused(value: object) -> tuple[str, str]:
    """Return type and message of the failure, having checked the rest of it."""
    report = returning(value)
    assert isinstance(report, Failed)
    assert report == Failed(report.type, report.message, report.ancestors, retry=False)
    assert report.ancestors[0] == report.type
    assert report.ancestors[3:5] == ("NoRetry", "wfcelery.errors.NoRetry")
    return report.type, report.message


# ------------------------------------------------------------------------------------------- results


class Mood(str, enum.Enum):  # noqa: UP042 - str() of a StrEnum would hide the trap
    GOOD = "good"


class Level(enum.IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    left: int
    right: int


@dataclasses.dataclass
class Point:
    x: int


class Model(pydantic.BaseModel):
    x: int


class Fraction(float):
    def __float__(self) -> float:
        return float("nan")


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (-0.0, -0.0),
        ("text \U0001f600", "text \U0001f600"),
        ((1, (2, 3)), [1, [2, 3]]),
        (Pair(1, 2), [1, 2]),
        ({"a": [{"b": None}]}, {"a": [{"b": None}]}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Mood.GOOD, "good"),
        ({Mood.GOOD: Level.HIGH}, {"good": 3}),
        (Fraction(1.5), 1.5),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_json_is_returned_as_plain_data(value: object, result: Json) -> None:
    report = returning(value)
    assert report == Returned(result)
    assert isinstance(report, Returned)
    assert canonical(report.result) == canonical(result)
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301


def endless() -> list[object]:
    circle: list[object] = [1]
    circle.append({"again": circle})
    return circle


def wide_circle() -> list[object]:
    circle: list[object] = []
    circle.extend([circle] * 100)
    return circle


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def laughs() -> object:
    value: object = "ha"
    for _ in range(31):
        value = [value] * 10
    return value


PLAIN = "convert it to dict, list, text, number, bool or None"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "result: is nan, which JSON does not have"),
        ({"a": [float("inf")]}, "result.a[0]: is inf, which JSON does not have"),
        (2**63, "result: is an integer beyond 64 bits; write it as text"),
        (10**5000, "result: is an integer beyond 64 bits; write it as text"),
        (endless(), "result[1].again: contains itself, which JSON cannot say"),
        (wide_circle(), "result[0]: contains itself, which JSON cannot say"),
        (nested(33), f"result{'[0]' * 32}: is nested deeper than 32 levels"),
        (nested(100_000), f"result{'[0]' * 32}: is nested deeper than 32 levels"),
        (b"x", "result: is of type bytes, which is not JSON; decode it, or encode it with base64"),
        ((each for each in ""), "result: is of type generator, which is not JSON; return list(value)"),
        (map(str, []), "result: is of type map, which is not JSON; return list(value)"),
        ({1, 2}, "result: is of type set, which is not JSON; return sorted(value)"),
        ([dt.date(2026, 1, 1)], "result[0]: is of type date, which is not JSON; return value.isoformat()"),
        (decimal.Decimal(1), "result: is of type Decimal, which is not JSON; return str(value)"),
        (Point(1), "result: is of type Point, which is not JSON; return dataclasses.asdict(value)"),
        (Model(x=1), 'result: is of type Model, which is not JSON; return value.model_dump(mode="json")'),
        (Point, f"result: is of type type, which is not JSON; {PLAIN}"),
        (object(), f"result: is of type object, which is not JSON; {PLAIN}"),
        (1j, f"result: is of type complex, which is not JSON; {PLAIN}"),
        ({"a": {1: 2}}, "result.a: has a key of type int; the keys of JSON objects are text"),
        ("a\x00b", "result: holds a NUL character"),
        ({"a\ud800": 1}, "result: holds a lone surrogate, which is not valid text"),
        (
            [Later()],
            "result[0]: is of type Later, which is not JSON; return the Later itself, not inside other data",
        ),
        (
            Outcome("a", Outcome("b")),
            "result: is of type Outcome, which is not JSON; return the Outcome itself, not inside other data",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_json_is_a_bad_result_with_its_place_and_advice(value: object, message: str) -> None:
    assert refused(value) == ("bad-result", message)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10 * MIB,
        "x" * (MIB - 1),
        "\u20ac" * (MIB // 2),
        [0] * (MIB // 2),
        ["x" * 1000] * 2000,
        {"x" * 2 * MIB: 1},
        laughs(),
    ],
    ids=["10 MB", "one byte", "wide characters", "many", "shared", "key", "laughs"],
)
def test_a_result_above_the_limit_is_refused_without_being_unfolded(value: object) -> None:
    limit = "1,048,576 bytes of JSON"
    message = f"result: is more than {limit}. Store large data elsewhere and return a reference"
    assert refused(value) == ("result-too-large", message)


def test_a_result_of_just_the_limit_passes() -> None:
    assert returning("x" * (MIB - 2)) == Returned("x" * (MIB - 2))


def test_the_limit_is_a_setting() -> None:
    give = tool(name="give")(lambda: "12345")
    assert call(give, {}, Context(), Limits(result_bytes=7)) == Returned("12345")
    report = call(give, {}, Context(), Limits(result_bytes=6))
    assert isinstance(report, Failed)
    assert report.type == "result-too-large"


def test_later_postpones_the_result() -> None:
    def wait(ctx: Context) -> object:
        return ctx.later()

    assert run(wait) == Postponed()
    assert pickle.loads(pickle.dumps(Postponed())) == Postponed()  # noqa: S301


# ----------------------------------------------------------------------------------- named outcomes


@tool(events=("found", "missing"))
def find(event: str) -> Outcome:
    return Outcome(event, {"event": event})


def test_an_outcome_carries_its_event() -> None:
    assert call(find, {"event": "found"}, Context()) == Returned({"event": "found"}, "found")


def test_an_event_that_is_not_declared_is_refused() -> None:
    report = call(find, {"event": "fuond"}, Context())
    assert isinstance(report, Failed)
    assert (report.type, report.message, report.retry) == (
        "unknown-event",
        (
            "the tool `find` named its outcome `fuond`, but declares only `found`, `missing`; "
            "add it to @tool(events=...)"
        ),
        False,
    )


def test_any_event_passes_where_none_is_declared() -> None:
    assert returning(Outcome("whatever", 1)) == Returned(1, "whatever")


@pytest.mark.parametrize("event", ["", "a b", "\x00", "x" * 65, None, 3])
def test_an_event_that_no_flow_can_spell_is_refused(event: Any) -> None:  # noqa: ANN401 - anything
    shown = repr(event)[:80]
    reason = f"named its outcome {shown}; an event is 1 to 64 letters, digits, `_`, `-`"
    assert refused(Outcome(event)) == ("unknown-event", f"the tool `give` {reason}")


# ------------------------------------------------------------------------------------------ failures


class Denied(PermissionError):
    pass


def test_a_failure_carries_class_message_ancestors_and_traceback() -> None:
    report = raising(Denied("no entry"))
    assert dataclasses.replace(report, detail="") == Failed(
        type="Denied",
        message="no entry",
        ancestors=(
            "Denied",
            f"{__name__}.Denied",
            "PermissionError",
            "builtins.PermissionError",
            "OSError",
            "builtins.OSError",
            "Exception",
            "builtins.Exception",
            "BaseException",
            "builtins.BaseException",
        ),
        retry=True,
    )
    lines = report.detail.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith(f'  File "{__file__}", line ')
    assert lines[2:] == ["    raise error", f"{__name__}.Denied: no entry"]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (SystemExit(3), "SystemExit", "the tool called exit(3)"),
        (SystemExit(), "SystemExit", "the tool called exit()"),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt without a message"),
        (GeneratorExit(), "GeneratorExit", "GeneratorExit without a message"),
        (StopIteration(3), "StopIteration", "3"),
        (MemoryError(), "MemoryError", "MemoryError without a message"),
        (asyncio.CancelledError(), "CancelledError", "CancelledError without a message"),
        (ValueError(), "ValueError", "ValueError without a message"),
        (KeyError("x"), "KeyError", "'x'"),
        (InvalidInput("a", "is bad"), "InvalidInput", "a: is bad"),
        (ToolError("busy"), "ToolError", "busy"),
        (Stopped(5), "timeout", "the time limit of 5 s is over"),
    ],
)
def test_every_exception_is_one_failed_attempt_that_may_be_tried_again(
    error: BaseException, kind: str, message: str
) -> None:
    report = raising(error)
    assert (report.type, report.message, report.retry, report.ancestors[0]) == (kind, message, True, kind)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (NoRetry("wrong account"), "NoRetry", "wrong account"),
        (Stopped(), "cancelled", "the step was asked to stop"),
        (ExceptionGroup("two", [ValueError("a"), NoRetry("b")]), "ExceptionGroup", "two (2 sub-exceptions)"),
    ],
)
def test_what_is_pointless_to_repeat_says_so(error: BaseException, kind: str, message: str) -> None:
    report = raising(error)
    assert (report.type, report.message, report.retry) == (kind, message, False)


@pytest.mark.parametrize(
    ("asked", "carried"),
    [
        (None, None),
        (0, 0.0),
        (2.5, 2.5),
        (10**12, 366 * 86_400.0),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        (True, None),
        ("5", None),
    ],
)
def test_a_delay_before_the_next_attempt_is_carried_if_it_is_one(
    asked: Any,  # noqa: ANN401 - anything
    carried: float | None,
) -> None:
    assert raising(ToolError("busy", retry_after=asked)).retry_after == carried


def test_a_group_is_known_by_what_it_holds() -> None:
    inner = BaseExceptionGroup("inner", [ToolError("a", 5), SystemExit(2)])
    report = raising(BaseExceptionGroup("outer", [inner, ToolError("b", 3)]))
    assert (report.type, report.message) == ("BaseExceptionGroup", "outer (2 sub-exceptions)")
    assert (report.retry, report.retry_after) == (True, 5.0)
    assert {"BaseExceptionGroup", "wfcelery.errors.ToolError", "SystemExit"} <= set(report.ancestors)


def test_groups_in_groups_without_end_are_described() -> None:
    error: Exception = ValueError("core")
    for _ in range(5_000):
        error = ExceptionGroup("g", [error])
    report = raising(error)
    assert (report.type, report.message, report.retry) == ("ExceptionGroup", "g (1 sub-exception)", True)


def test_groups_that_share_their_parts_are_not_unfolded() -> None:
    error: Exception = NoRetry("core")
    for _ in range(60):
        error = ExceptionGroup("g", [error, error])
    report = raising(error)
    assert (report.type, report.message, report.retry) == ("ExceptionGroup", "g (2 sub-exceptions)", False)
    assert report.detail.endswith("\nExceptionGroup, with too many causes and parts to list\n")


def test_a_circle_of_causes_is_described() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert raising(first).message == "first"


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)

    __repr__ = __str__


class Sly(ToolError):
    @property
    def retry_after(self) -> float | None:
        raise KeyboardInterrupt

    @retry_after.setter
    def retry_after(self, value: float | None) -> None:
        pass


class Faceless(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # noqa: ANN401 - raises
        raise SystemExit


class Shy(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError


class Nameless(Exception, metaclass=Shy):
    pass


def test_an_exception_that_cannot_speak_is_reported_for_it() -> None:
    assert raising(Mute()).message == "Mute, whose message cannot be made into text"
    speechless = Failed("BaseException", "the exception cannot be described", ("BaseException",))
    assert raising(Faceless()) == speechless
    sly = raising(Sly("sly"))
    assert (sly.message, sly.retry_after) == ("sly", None)
    nameless = raising(Nameless("x"))
    assert (nameless.type, nameless.message, nameless.ancestors) == ("BaseException", "x", ("BaseException",))


def test_long_messages_and_tracebacks_are_cut() -> None:
    report = raising(ValueError("\u20ac" * 1_000_000))
    assert report.message == "\u20ac" * 2_000
    assert len(report.detail.encode()) <= 16 * 1024
    assert report.detail.startswith("Traceback (most recent call last):\n")
    assert "\n... left out ...\n" in report.detail


def test_text_that_cannot_be_stored_is_replaced() -> None:
    report = raising(ValueError("a\x00b\ud800c"))
    assert report.message == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    assert report.detail.endswith(f"ValueError: {report.message}\n")


def test_unpicklable_arguments_of_an_exception_do_no_harm() -> None:
    lock = threading.Lock()
    report = raising(ValueError("locked", lock))
    assert (report.type, report.message) == ("ValueError", str(("locked", lock)))


def test_recursion_is_a_failed_attempt() -> None:
    def ping() -> None:
        pong()

    def pong() -> None:
        ping()

    report = run(ping)
    assert isinstance(report, Failed)
    assert (report.type, report.retry) == ("RecursionError", True)
    assert report.message.startswith("maximum recursion depth exceeded")
    assert len(report.detail.encode()) <= 16 * 1024


def test_a_long_chain_of_causes_is_described() -> None:
    error = ValueError("first")
    for number in range(3_000):
        following = ValueError(str(number))
        following.__cause__ = error
        error = following
    assert raising(error).message == "2999"


def test_arguments_that_do_not_fit_are_one_failure_without_retry() -> None:
    def count(number: int) -> int:
        return number

    report = run(count, number="3", more=1)
    assert isinstance(report, Failed)
    assert (report.type, report.retry, report.detail) == ("bad-arguments", False, "")
    assert report.message == (
        "the arguments do not fit the tool `count`: "
        "more: is not an argument of the tool `count`; it takes `number`; "
        "number: should be a valid integer, but is text"
    )


def test_a_type_error_inside_the_tool_is_its_own() -> None:
    def bad() -> int:
        return len(3)  # type: ignore[arg-type]

    report = run(bad)
    assert isinstance(report, Failed)
    assert (report.type, report.retry) == ("TypeError", True)


class Trap(dict[str, object]):
    def items(self) -> Any:  # noqa: ANN401 - raises
        raise SystemExit(4)


def test_a_result_that_raises_when_it_is_read_is_a_failed_attempt() -> None:
    report = returning(Trap(a=1))
    assert isinstance(report, Failed)
    assert (report.type, report.message) == ("SystemExit", "the tool called exit(4)")


# -------------------------------------------------------------------------------- async, and manners


async def nap(ctx: Context, value: int) -> list[object]:
    await asyncio.sleep(0)
    return [ctx.run_id, value]


async def leave() -> None:
    await asyncio.sleep(0)
    sys.exit(2)


def test_an_async_tool_runs_in_a_loop_of_its_own() -> None:
    assert run(nap, value=3) == Returned(["run", 3])


def test_an_async_tool_that_exits_is_a_failed_attempt() -> None:
    report = run(leave)
    assert isinstance(report, Failed)
    assert (report.type, report.message) == ("SystemExit", "the tool called exit(2)")


def test_an_async_tool_inside_a_running_loop_fails_clearly() -> None:
    async def outer() -> Report:
        return run(nap, value=3)

    report = asyncio.run(outer())
    assert isinstance(report, Failed)
    assert (report.type, report.message) == (
        "RuntimeError",
        "asyncio.run() cannot be called from a running event loop",
    )


def test_tools_run_in_any_thread() -> None:
    reports: list[Report] = []
    thread = threading.Thread(target=lambda: reports.extend([run(nap, value=1), run(leave)]))
    thread.start()
    thread.join()
    assert [type(report) for report in reports] == [Returned, Failed]


def test_context_variables_do_not_leak_into_the_next_step() -> None:
    seen = contextvars.ContextVar("seen", default="nothing")

    def change() -> str:
        before = seen.get()
        seen.set("changed")
        return before

    assert [run(change), run(change)] == [Returned("nothing"), Returned("nothing")]


def test_what_a_tool_prints_is_no_part_of_its_report(capfd: pytest.CaptureFixture[str]) -> None:
    def shout() -> int:
        for _ in range(100):
            print("x" * 100_000)  # noqa: T201
        return 1

    assert run(shout) == Returned(1)
    assert len(capfd.readouterr().out) == 100 * 100_001


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[Path]:
    cwd, mask = os.getcwd(), os.umask(0o22)  # noqa: PTH109
    os.umask(mask)
    yield tmp_path
    os.chdir(cwd)
    os.umask(mask)
    os.environ.pop("WFCELERY_TEST_TOOL", None)


@pytest.mark.parametrize("fails", [False, True])
def test_a_tool_that_changes_its_surroundings_still_reports(fails: bool, surroundings: Path) -> None:
    def vandal() -> int:
        os.chdir(surroundings)
        shutil.rmtree(surroundings)
        os.umask(0)
        os.environ["WFCELERY_TEST_TOOL"] = "was here"
        if fails:
            raise OSError("gone")
        return 1

    report = run(vandal)
    if fails:
        assert isinstance(report, Failed)
        assert (report.type, report.message) == ("OSError", "gone")
    else:
        assert report == Returned(1)


def test_a_tool_that_ends_after_its_time_reports_what_it_did() -> None:
    class Late:
        time = 0.0

        def now(self) -> float:
            self.time += 10
            return self.time

        def stop_requested(self) -> bool:
            return True

        def wait(self, seconds: float) -> None:
            raise NotImplementedError

    def slow(ctx: Context) -> list[object]:
        return [ctx.time_left(), ctx.cancelled]

    assert call(tool(slow), {}, Context(timeout_s=5, pace=Late())) == Returned([0.0, True])


# ----------------------------------------------------------------------------------- anything at all


class Hostile:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # noqa: ANN401 - raises
        raise SystemExit


class Liar(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "\x00"

    def __format__(self, spec: str) -> str:
        raise KeyboardInterrupt


nasty = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.text(st.sampled_from("a\x00\ud800\udfff\u20ac")),
    st.binary(max_size=5),
    st.complex_numbers(),
    st.datetimes(),
    st.decimals(),
    st.builds(object),
    st.builds(Hostile),
    st.builds(Liar, st.text(max_size=3)),
    st.sampled_from(
        [Later(), Outcome("a", 1), Outcome("", 1), Outcome("a", b""), Mood.GOOD, Level.HIGH, ...]
    ),
    st.builds(endless),
    st.builds(wide_circle),
    st.builds(nested, st.integers(30, 35)),
    st.builds(Trap, a=st.none()),
    st.sampled_from([Point, print]),
    st.builds(iter, st.just([])),
)
anything = st.recursive(
    nasty,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.integers(), st.builds(Liar, st.text(max_size=2))),
            inner,
            max_size=3,
        ),
        st.builds(Outcome, st.text(max_size=3), inner),
    ),
    max_leaves=10,
)


@given(anything)
def test_whatever_is_returned_is_json_or_a_failure(value: object) -> None:
    report = returning(value)
    if isinstance(report, Returned):
        data = value.value if isinstance(value, Outcome) else value
        assert canonical(report.result) == canonical(data)  # type: ignore[arg-type]
        assert canonical(check(report.result, "result")) == canonical(report.result)
    elif isinstance(report, Failed):
        check([report.type, report.message, list(report.ancestors), report.detail], "report")
        assert (report.type != "", report.message != "") == (True, True)
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301


@given(st.text(st.characters()) | st.text(st.sampled_from("a\x00\ud800\u20ac")), st.integers(0, 3))
def test_whatever_is_raised_is_a_storable_failure(text: str, wrapped: int) -> None:
    error: BaseException = ValueError(text)
    for _ in range(wrapped):
        error = BaseExceptionGroup(text, [error, SystemExit(text)])
    raising(error)
