"""What people see of a run while it goes on: lines, signs, and how much of a terminal they take."""

from __future__ import annotations

import io

import pytest

from wfcelery.cli.progress import Line, Progress, span
from wfcelery.cli.symbols import ASCII, UNICODE, signs_for, wants_colour
from wfcelery.cli.view import Live, Plain, Quiet, cut
from wfcelery.core.decide import Decision, decide, start
from wfcelery.core.document import compile_flow
from wfcelery.core.flow import Flow
from wfcelery.core.messages import (
    Hold,
    NewRun,
    Principal,
    RunMessage,
    StepDone,
    StepFailed,
    StepSent,
    TimerDue,
)
from wfcelery.core.reading import read
from wfcelery.core.state import Error, Run, StepRef
from wfcelery.store.changes import RunChange, merge

NOW = 1_000.0


class Story:
    """A run that is told message by message, and what its progress says after each."""

    def __init__(self, text: str) -> None:
        self.flow: Flow = compile_flow(read(text).data, name="f")
        self.progress = Progress("r", lambda _: self.flow)
        self.run: Run
        new = NewRun("r", "d", 1, {}, Principal("ann"))
        self.told = self._take(None, start(self.flow, new, NOW))

    def tell(self, message: RunMessage, now: float = NOW) -> list[Line]:
        return self._take(self.run, decide(self.flow, self.run, message, now))

    def ref(self, step: str, item: int = -1) -> StepRef:
        attempt = self.run.attempts[step, item]
        return StepRef("r", step, item, attempt.attempt, attempt.fence)

    def _take(self, before: Run | None, decision: Decision) -> list[Line]:
        self.run = decision.run
        return self.progress.take([merge(RunChange(before, decision.run), decision)])


def test_each_event_that_matters_is_told_once() -> None:
    story = Story(
        "start: a\nsteps: {a: {tool: echo, retry: {max_attempts: 3, backoff: [30]}, next: b}, "
        "b: {done: true}}\n"
    )
    assert story.told == [Line("a", "running")]
    assert story.tell(StepSent(story.ref("a"))) == []
    failed = story.tell(StepFailed(story.ref("a"), Error("ToolError", "no\nluck")))
    assert failed == [Line("a", "failed", "ToolError: no luck"), Line("a", "timer", "retry 2/3", NOW + 30)]
    assert failed[1].text(NOW) == "a  retry 2/3 in 30 s"
    assert story.progress.is_moving
    assert story.tell(TimerDue("r", "a", -1, 2), NOW + 30) == [Line("a", "running", "attempt 2")]
    done = story.tell(StepDone(story.ref("a"), 1, started_at=NOW - 2))
    assert done == [Line("a", "done", "2 s"), Line("b", "done")]
    assert story.progress.lines() == done
    assert not story.progress.is_moving


def test_gates_waits_skips_and_cancelled_steps_have_their_own_signs() -> None:
    story = Story(
        "start: s\nsteps: {s: {parallel: [g, w, t], join: e}, g: {approval: {}}, w: {wait: {signal: x}}, "
        "t: {tool: fail, retry: {max_attempts: 1}}, e: {done: true}}\n"
    )
    assert story.told == [
        Line("s", "done"),
        Line("g", "gate", "waits for approval"),
        Line("w", "gate", "waits for a signal"),
        Line("t", "running"),
    ]
    assert (story.progress.waits_for_people, story.progress.is_moving) == (True, True)
    story.tell(StepFailed(story.ref("t"), Error("ToolError", "no")))
    assert {line.path: line.kind for line in story.progress.lines()} == {
        "s": "done",
        "g": "cancelled",
        "w": "cancelled",
        "t": "failed",
    }


def test_a_held_run_moves_only_as_long_as_something_runs() -> None:
    story = Story("start: a\nsteps: {a: {tool: echo, next: b}, b: {tool: echo, done: true}}\n")
    story.tell(StepSent(story.ref("a")))
    story.tell(Hold("c", "r", Principal("ann")))
    assert (story.progress.is_moving, story.progress.waits_for_people) == (True, True)
    story.tell(StepDone(story.ref("a"), 1))
    assert (story.progress.is_moving, story.progress.waits_for_people) == (False, True)


def test_a_foreach_is_one_line_that_counts_however_many_items_there_are() -> None:
    items = list(range(1000))
    story = Story(
        f"start: a\nsteps: {{a: {{foreach: {{items: {items}, tool: echo, concurrency: 1000, "
        "on_item_error: collect}, retry: {max_attempts: 1}, done: true}}\n"
    )
    assert story.told == [Line("a", "running", "0/1000 done")]
    told = []
    for item in range(10):
        told += story.tell(StepFailed(story.ref("a", item), Error("ToolError", "no")))
    assert told == [Line(f"a[{item}]", "failed", "ToolError: no") for item in range(5)]
    for item in range(10, 30):
        assert story.tell(StepDone(story.ref("a", item), item)) == []
    assert story.progress.lines() == [Line("a", "running", "20/1000 done, 970 under way, 10 failed")]


def test_a_run_that_began_earlier_is_taken_up() -> None:
    story = Story("start: a\nsteps: {a: {approval: {}, next: b}, b: {done: true}}\n")
    later = Progress("r", lambda _: story.flow)
    later.seed([story.run])
    assert (later.waits_for_people, later.is_moving, later.lines()) == (True, False, story.told)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.004, "0.00 s"),
        (0.25, "0.25 s"),
        (30, "30 s"),
        (30.04, "30 s"),
        (99.5, "99.5 s"),
        (150, "2 min 30 s"),
        (7200, "2 h 0 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_lengths_of_time_are_written_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_plain_lines_tell_events_and_leave_out_what_merely_waits() -> None:
    stream = io.StringIO()
    view = Plain(stream, lambda: NOW)
    view.show([Line("a", "running"), Line("j", "waiting"), Line("b", "timer", "goes on", NOW + 5)])
    view.say("printed by a tool")
    assert stream.getvalue() == "> a\n~ b  goes on in 5 s\nprinted by a tool\n"


def test_quiet_shows_nothing_but_what_is_said() -> None:
    stream = io.StringIO()
    view = Quiet(stream)
    view.show([Line("a", "running")])
    view.refresh()
    view.say("hello")
    view.stop()
    assert stream.getvalue() == "hello\n"


def test_a_live_view_draws_in_place_and_keeps_what_is_said_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "24")
    stream = io.StringIO()
    view = Live(stream, lambda: NOW, lambda: [Line("a", "done"), Line("b" * 30, "running")])
    view.show([Line("a", "done")])
    view.refresh()
    long = f"> {'b' * 16}…\n"
    assert stream.getvalue() == f"+ a\n{long}"
    view.say("printed")
    assert stream.getvalue() == f"+ a\n{long}\x1b[2A\r\x1b[Jprinted\n+ a\n{long}"


def test_more_steps_than_lines_are_cut_to_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "6")
    stream = io.StringIO()
    Live(stream, lambda: NOW, lambda: [Line(f"s{n}", "done") for n in range(50)]).stop()
    assert stream.getvalue() == "  47 steps before these\n+ s47\n+ s48\n+ s49\n"


def test_text_is_cut_by_columns_and_control_characters_are_left_out() -> None:
    assert cut("a\x1b[2Jb\nc", 10) == "a[2Jbc"
    assert cut("日本語テキスト", 6) == "日本…"
    assert cut("abc", 3) == "abc"


def test_signs_are_those_that_the_stream_can_write() -> None:
    assert signs_for(io.TextIOWrapper(io.BytesIO(), encoding="ascii")) == ASCII
    assert signs_for(io.TextIOWrapper(io.BytesIO(), encoding="latin-1")) == ASCII
    assert signs_for(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) == UNICODE
    drawn = [
        getattr(UNICODE, name)
        for name in ("waiting", "running", "done", "failed", "skipped", "cancelled", "gate", "timer")
    ]
    assert len(set(drawn)) == 8


def test_colours_need_a_terminal_that_wants_them() -> None:
    assert not wants_colour(io.StringIO(), {})
