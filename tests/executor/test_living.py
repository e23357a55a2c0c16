"""Who is alive: an old word, whoever brings it, keeps nobody alive and evicts nobody."""

from __future__ import annotations

from tests.executor.watch_words import A, passed, says, silent, watching
from wfcelery.executor import living
from wfcelery.executor.living import Living


def test_a_word_that_is_repeated_keeps_nobody_alive() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    word = says(active=[A])
    watch.hear(word, 3.0)
    for second in range(4, 33):
        assert watch.hear(word, float(second)) == []
        assert watch.judge(float(second)) == []
    assert watch.judge(33.0) == [silent(A, begun=True, counted=True)]
    assert watch.living == ()
    watch.hear(word, 34.0)
    assert watch.living == ()


def test_an_earlier_word_of_the_same_process_changes_nothing() -> None:
    workers = Living(30.0)
    earlier, last = says(reserved=[A]), says()
    assert workers.hear(last, 0.0)
    assert not workers.hear(earlier, 1.0)
    assert workers.holdings(1.0) == (last,)


def test_a_word_of_a_process_that_was_replaced_does_not_evict_its_successor() -> None:
    workers = Living(30.0)
    old, goodbye, new = says(boot="boot-1"), says(boot="boot-1", leaving=True), says(boot="boot-2")
    workers.hear(old, 0.0)
    workers.hear(new, 1.0)
    assert workers.hear(goodbye, 2.0)
    assert not workers.hear(old, 3.0)
    assert not workers.hear(goodbye, 3.0)
    assert workers.holdings(3.0) == (new,)


def test_a_process_that_has_left_is_not_brought_back() -> None:
    workers = Living(30.0)
    word = says()
    workers.hear(word, 0.0)
    workers.hear(says(leaving=True), 1.0)
    assert not workers.hear(word, 2.0)
    assert workers.holdings(2.0) == ()


def test_a_process_that_was_silent_for_long_may_speak_again() -> None:
    workers = Living(30.0)
    workers.hear(says(), 0.0)
    workers.forget_silent(100.0)
    again = says()
    assert workers.hear(again, 100.0)
    assert workers.holdings(100.0) == (again,)


def test_two_processes_of_one_name_are_both_heard() -> None:
    workers = Living(30.0)
    for second in range(5):
        assert workers.hear(says(boot="boot-1"), float(second))
        assert workers.hear(says(boot="boot-2"), float(second))


def test_only_the_processes_heard_last_are_remembered() -> None:
    workers = Living(30.0)
    first = says(boot="first")
    workers.hear(first, 0.0)
    for number in range(living.MOST_BOOTS - 1):
        workers.hear(says(boot=str(number)), 0.0)
    assert not workers.hear(first, 0.0)
    workers.hear(says(boot="one more"), 0.0)
    assert workers.hear(first, 0.0)
