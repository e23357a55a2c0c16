"""Calls of code that may hang: neither time nor threads add up."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from wfcelery.rights.bounded import Bounded, Failed, Overdue


def threads_of_rights() -> int:
    return sum(thread.name.startswith("wfcelery-rights-") for thread in threading.enumerate())


def test_a_call_gives_what_the_function_gives() -> None:
    assert Bounded().call(lambda a, b: a + b, 1, 2) == 3


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_is_raised_comes_back_as_one_kind_of_error(error: BaseException) -> None:
    def raises() -> None:
        raise error

    bounded = Bounded(threads=1)
    for _ in range(3):
        with pytest.raises(Failed) as caught:
            bounded.call(raises)
        assert caught.value.error is error


def test_a_call_that_hangs_is_given_up_and_others_go_on() -> None:
    end = threading.Event()
    bounded = Bounded(threads=2, seconds=1)
    with pytest.raises(Overdue):
        bounded.call(end.wait)
    assert bounded.call(lambda: 7) == 7
    end.set()


def test_when_every_thread_hangs_calls_are_refused_at_once_until_one_is_free() -> None:
    end = threading.Event()
    bounded = Bounded(threads=3, seconds=0.05)
    before = threads_of_rights()
    for _ in range(3):
        with pytest.raises(Overdue):
            bounded.call(end.wait)
    began = time.monotonic()
    for _ in range(1_000):
        with pytest.raises(Overdue):
            bounded.call(end.wait)
    assert time.monotonic() - began < 5
    assert threads_of_rights() - before == 3
    end.set()
    deadline = time.monotonic() + 10
    while True:
        try:
            assert bounded.call(lambda: 7) == 7
            break
        except Overdue:
            assert time.monotonic() < deadline


def test_a_call_that_waits_for_a_free_thread_is_given_up_and_never_made() -> None:
    end = threading.Event()
    made: list[int] = []
    bounded = Bounded(threads=1, seconds=0.2)
    begun = threading.Event()

    def hang() -> None:
        begun.set()
        end.wait()

    def first() -> None:
        with pytest.raises(Overdue):
            bounded.call(hang)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(10)
    with pytest.raises(Overdue):
        bounded.call(made.append, 1)
    thread.join()
    end.set()
    deadline = time.monotonic() + 10
    while True:
        try:
            bounded.call(made.append, 2)
            break
        except Overdue:
            assert time.monotonic() < deadline
    assert made == [2]


def test_in_a_forked_process_calls_are_answered_too() -> None:
    script = """
import os
from wfcelery.rights.bounded import Bounded
bounded = Bounded(threads=1, seconds=20)
assert bounded.call(lambda: 1) == 1
child = os.fork()
if child == 0:
    os._exit(bounded.call(lambda: 7))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert bounded.call(lambda: 2) == 2
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_many_callers_share_a_few_threads_and_each_gets_its_own_answer() -> None:
    bounded = Bounded(threads=4, seconds=30)
    before = threads_of_rights()
    answers: dict[int, object] = {}

    def ask(number: int) -> None:
        for each in range(50):
            answers[number * 50 + each] = bounded.call(lambda value: value * 2, number * 50 + each)

    callers = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert answers == {number: number * 2 for number in range(800)}
    assert threads_of_rights() - before <= 4
