"""Alive or lost, sentence by sentence, with explicit times."""

from __future__ import annotations

import pytest

from tests.executor.watch_words import EPOCH, A, B, C, Q, back, gone, out, passed, ref, says, silent, watching
from wfcelery.core.messages import StepBegun
from wfcelery.executor.watch import Marker, Standing, Watch, WatchClock, Where

# -- in the queue


def test_a_backlog_is_not_a_failure() -> None:
    watch = watching(A)
    for second in range(0, 3_600, 3):
        watch.markers(float(second))
        watch.hear(says(), float(second))
        assert watch.judge(float(second)) == []
    assert watch.standing(A) == Standing(Where.QUEUED, Q, since=0.0)


def test_a_backlog_outlives_the_executor() -> None:
    watch = Watch(EPOCH)
    watch.found(out(A), 0.0)
    for second in range(0, 3_600, 3):
        watch.markers(float(second))
        watch.hear(says(), float(second))
        assert watch.judge(float(second)) == []


# -- never held by anybody


def test_a_step_that_nobody_names_is_lost_a_round_after_its_marker_came_back() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    watch.hear(says(), 4.0)
    assert watch.judge(6.9) == []
    assert watch.judge(7.0) == [gone(A)]


def test_it_is_not_lost_before_every_living_worker_has_spoken_since_the_marker() -> None:
    watch = watching(A)
    watch.hear(says("w1"), 1.0)
    watch.hear(says("w2"), 1.0)
    passed(watch, 2.0)
    watch.hear(says("w1"), 4.0)
    assert watch.judge(20.0) == []
    watch.hear(says("w2"), 20.0)
    assert watch.judge(20.0) == [gone(A)]


def test_a_word_of_the_same_moment_as_the_marker_is_not_one_since_the_marker() -> None:
    watch = watching(A)
    watch.hear(says(), 2.0)
    passed(watch, 2.0)
    assert watch.judge(7.0) == []


def test_a_worker_that_is_silent_for_a_lease_is_waited_for_no_longer() -> None:
    watch = watching(A)
    watch.hear(says("w1"), 1.0)
    passed(watch, 2.0)
    assert watch.judge(30.9) == []
    assert watch.judge(31.0) == [gone(A)]


def test_a_worker_that_leaves_in_good_order_is_waited_for_no_longer() -> None:
    watch = watching(A)
    watch.hear(says("w1"), 1.0)
    passed(watch, 2.0)
    watch.hear(says("w1", leaving=True), 3.0)
    assert watch.judge(7.0) == [gone(A)]


def test_an_old_process_that_leaves_does_not_take_its_successor_with_it() -> None:
    watch = watching(A)
    watch.hear(says(boot="boot-2"), 1.0)
    passed(watch, 2.0)
    watch.hear(says(boot="boot-1", leaving=True), 3.0)
    assert watch.judge(7.0) == []


def test_a_process_is_not_waited_for_once_its_successor_speaks() -> None:
    watch = watching(A)
    watch.hear(says(boot="boot-1"), 1.0)
    passed(watch, 2.0)
    watch.hear(says(boot="boot-2"), 3.0)
    assert watch.judge(7.0) == [gone(A)]


def test_a_worker_heard_first_by_its_marker_has_the_time_to_say_what_it_holds() -> None:
    watch = watching(A, B)
    [marker] = watch.markers(2.0)
    watch.hear(back(marker, "new"), 2.0)
    assert watch.judge(10.0) == []
    watch.hear(says("new", reserved=[A]), 11.0)
    assert watch.judge(11.0) == [gone(B)]


def test_a_worker_heard_only_by_its_marker_is_waited_for_a_lease() -> None:
    watch = watching(A)
    [marker] = watch.markers(2.0)
    watch.hear(back(marker, "new"), 2.0)
    assert watch.judge(31.9) == []
    assert watch.judge(32.0) == [gone(A)]


# -- held


def test_a_long_step_with_a_living_worker_is_left_alone() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    for second in range(3, 3_600, 3):
        watch.hear(says(active=[A]), float(second))
        assert watch.judge(float(second)) == []


@pytest.mark.parametrize("hand", ["reserved", "active", "unsent"])
def test_a_worker_acquits_what_it_names_marker_or_no_marker(hand: str) -> None:
    for marker_too in (False, True):
        watch = watching(A)
        if marker_too:
            passed(watch, 2.0)
        for second in range(3, 300, 29):
            watch.hear(says(**{hand: [A]}), float(second))  # type: ignore[arg-type]
            assert watch.judge(float(second)) == []


def test_a_reserved_step_is_lost_after_a_lease_of_silence_and_has_not_begun() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    watch.hear(says(reserved=[A]), 10.0)
    assert watch.judge(39.9) == []
    assert watch.judge(40.0) == [silent(A)]


def test_an_active_step_is_lost_after_a_lease_of_silence_and_the_loss_is_counted() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    watch.hear(says(active=[A]), 10.0)
    assert watch.judge(39.9) == []
    assert watch.judge(40.0) == [silent(A, begun=True, counted=True)]


def test_a_step_whose_report_was_not_pushed_has_begun() -> None:
    watch = watching(A)
    assert watch.hear(says(unsent=[A]), 10.0) == []
    assert watch.judge(40.0) == [silent(A, begun=True, counted=True)]


def test_a_step_that_was_held_has_left_its_queue_and_needs_no_marker_to_be_lost() -> None:
    watch = watching(A, B)
    watch.hear(says(reserved=[A]), 1.0)
    assert watch.judge(31.0) == [silent(A)]


def test_a_living_worker_that_no_longer_names_a_step_is_silent_about_it() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    watch.hear(says(active=[A]), 3.0)
    for second in range(6, 33, 3):
        watch.hear(says(), float(second))
        assert watch.judge(float(second)) == []
    assert watch.judge(33.0) == [silent(A, begun=True, counted=True)]


def test_a_word_from_before_the_marker_acquits_until_a_lease_after_the_marker() -> None:
    watch = watching(A)
    watch.hear(says(reserved=[A]), 1.0)
    passed(watch, 20.0)
    assert watch.judge(49.9) == []
    assert watch.judge(50.0) == [silent(A)]


def test_the_steps_of_a_process_whose_successor_speaks_have_a_lease_from_when_it_was_last_heard() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    watch.hear(says(boot="boot-1", active=[A]), 10.0)
    watch.hear(says(boot="boot-2"), 12.0)
    assert watch.judge(39.9) == []
    assert watch.judge(40.0) == [silent(A, begun=True, counted=True)]


def test_the_steps_of_a_worker_that_left_have_a_lease_for_their_reports_to_arrive() -> None:
    watch = watching(A)
    watch.hear(says(active=[A]), 5.0)
    watch.hear(says(active=[A], leaving=True), 10.0)
    assert watch.judge(39.9) == []
    assert watch.judge(40.0) == [silent(A, begun=True, counted=True)]


def test_a_worker_that_speaks_again_has_its_steps_again() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    watch.hear(says(active=[A]), 3.0)
    assert watch.judge(33.0) == [silent(A, begun=True, counted=True)]
    watch.hear(says(active=[A]), 34.0)
    assert watch.judge(63.9) == []
    assert watch.judge(64.0) == [silent(A, begun=True, counted=True)]


def test_a_step_that_moved_to_another_worker_is_that_ones() -> None:
    watch = watching(A)
    watch.hear(says("w1", reserved=[A]), 1.0)
    watch.hear(says("w2", reserved=[A]), 5.0)
    assert watch.standing(A) == Standing(Where.HELD, worker="w2", since=5.0)
    assert watch.judge(35.0) == [silent(A, "w2")]


# -- begun


def test_a_beginning_is_told_once() -> None:
    watch = watching(A, B)
    assert watch.hear(says(reserved=[A]), 1.0) == []
    assert watch.hear(says(active=[A]), 2.0) == [StepBegun(A, "w1", 1_000.0)]
    assert watch.hear(says(active=[A, B]), 3.0) == [StepBegun(B, "w1", 1_000.0)]
    assert watch.hear(says("w2", active=[A, B]), 4.0) == []


def test_a_step_that_is_not_out_is_not_spoken_of() -> None:
    watch = watching(A)
    watch.ended(A)
    assert watch.hear(says(reserved=[A], active=[A, B], unsent=[C]), 1.0) == []
    watch.begun(StepBegun(B, "w1"), 1.0)
    watch.found_held(C, "w1", 1.0)
    assert watch.judge(1_000.0) == []
    assert watch.standing(A) == Standing(Where.UNKNOWN)


def test_another_fence_of_the_same_step_is_another_step() -> None:
    watch = watching(ref("a", 2))
    assert watch.hear(says(active=[ref("a", 1)]), 1.0) == []
    passed(watch, 2.0)
    watch.hear(says(active=[ref("a", 1)]), 6.0)
    assert watch.judge(7.0) == [gone(ref("a", 2))]


def test_a_step_whose_beginning_was_reported_and_whose_worker_died_before_any_holding_is_counted() -> None:
    watch = watching(A)
    watch.begun(StepBegun(A, "w1", 1_000.0), 1.0)
    assert watch.hear(says(active=[A]), 2.0) == []
    passed(watch, 3.0)
    assert watch.judge(33.0) == [silent(A, begun=True, counted=True)]


# -- judged


def test_a_step_is_judged_once_in_a_lease() -> None:
    watch = watching(A)
    passed(watch, 2.0)
    assert [second for second in range(100) if watch.judge(float(second))] == [7, 37, 67, 97]


def test_a_step_sent_again_is_as_new() -> None:
    watch = watching(A)
    watch.hear(says(active=[A]), 1.0)
    assert watch.judge(31.0) == [silent(A, begun=True, counted=True)]
    watch.sent(out(A), 31.0)
    assert watch.standing(A) == Standing(Where.QUEUED, Q, since=31.0)
    assert watch.judge(1_000.0) == []
    passed(watch, 1_000.0)
    assert watch.judge(1_005.0) == [gone(A)]


def test_a_step_sent_again_before_its_marker_came_back_waits_for_a_later_one() -> None:
    watch = watching(A, B)
    [marker] = watch.markers(2.0)
    watch.sent(out(A), 2.0)
    watch.hear(back(marker), 3.0)
    assert watch.judge(8.0) == [gone(B)]


def test_a_step_sent_again_waits_in_its_queue_though_the_holder_of_an_earlier_copy_comes_and_goes() -> None:
    watch = watching(A)
    watch.hear(says(reserved=[A]), 1.0)
    assert watch.judge(31.0) == [silent(A)]
    watch.sent(out(A), 31.0)
    watch.hear(says(reserved=[A]), 32.0)
    assert watch.judge(1_000.0) == []
    passed(watch, 1_000.0)
    assert watch.judge(1_029.9) == []
    assert watch.judge(1_030.0) == [silent(A)]


def test_an_ended_step_is_never_judged() -> None:
    watch = watching(A, B)
    watch.hear(says(reserved=[A]), 1.0)
    passed(watch, 2.0)
    watch.ended(A)
    watch.ended(B)
    watch.ended(B)
    assert watch.judge(1_000.0) == []


def test_while_watch_time_stands_still_nobody_is_lost() -> None:
    clock, watch = WatchClock(), watching(A)
    watch.hear(says(active=[A]), clock.tick(0.0, heard=True))
    for second in range(3_600):
        assert watch.judge(clock.tick(float(second), heard=False)) == []
    assert watch.judge(clock.tick(3_600.0, heard=True)) == []


# -- after a start


def test_the_marker_of_a_found_step_is_due_at_once() -> None:
    watch = Watch(EPOCH)
    watch.found(out(A), 0.0)
    assert watch.markers(0.0) == [Marker(Q, 0, EPOCH, 1)]


def test_a_found_step_that_was_never_published_is_lost_when_all_known_workers_have_spoken() -> None:
    watch = Watch(EPOCH)
    watch.known([("w1", "boot-1"), ("w2", "boot-1")], 0.0)
    watch.found(out(A), 0.0)
    passed(watch, 0.0)
    watch.hear(says("w1"), 3.0)
    assert watch.judge(9.0) == []
    watch.hear(says("w2"), 9.0)
    assert watch.judge(9.0) == [gone(A)]


def test_a_known_worker_that_never_speaks_is_waited_for_a_lease_from_the_start() -> None:
    watch = Watch(EPOCH)
    watch.known([("w1", "boot-1")], 0.0)
    watch.found(out(A), 0.0)
    passed(watch, 1.0)
    assert watch.judge(29.9) == []
    assert watch.judge(30.0) == [gone(A)]


def test_a_found_step_with_a_worker_has_a_full_lease_and_its_loss_is_not_counted() -> None:
    watch = Watch(EPOCH)
    watch.known([("w1", "boot-1")], 0.0)
    watch.found(out(A), 0.0)
    watch.found_held(A, "w1", 0.0)
    watch.hear(says("w1", boot="boot-2"), 3.0)
    assert watch.judge(29.9) == []
    assert watch.judge(30.0) == [silent(A, begun=True)]


def test_a_found_step_whose_worker_names_it_as_running_and_then_vanishes_is_counted() -> None:
    watch = Watch(EPOCH)
    watch.found(out(A), 0.0)
    watch.found_held(A, "w1", 0.0)
    assert watch.hear(says(active=[A]), 3.0) == []
    assert watch.judge(33.0) == [silent(A, begun=True, counted=True)]


def test_a_worker_already_heard_is_not_made_unheard_by_the_table() -> None:
    watch = Watch(EPOCH)
    word = says("w1")
    watch.hear(word, 0.0)
    watch.known([("w1", "boot-0")], 0.0)
    assert watch.living == (word,)


# -- standing


def test_the_standing_of_a_step_through_its_life() -> None:
    watch = watching(A)
    assert watch.standing(A) == Standing(Where.QUEUED, Q, since=0.0)
    passed(watch, 2.0)
    assert watch.standing(A) == Standing(Where.UNKNOWN)
    watch.hear(says(reserved=[A]), 3.0)
    watch.hear(says(reserved=[A]), 6.0)
    assert watch.standing(A) == Standing(Where.HELD, worker="w1", since=3.0)
    watch.hear(says(active=[A]), 9.0)
    assert watch.standing(A) == Standing(Where.HELD, worker="w1", since=3.0, begun=True)
    watch.judge(39.0)
    assert watch.standing(A) == Standing(Where.UNKNOWN, begun=True)


def test_the_living_are_those_heard_within_a_lease_by_their_last_word() -> None:
    watch = Watch(EPOCH)
    watch.known([("never", "boot-1")], 0.0)
    first, earlier, last = says("w1"), says("w2"), says("w2", reserved=[A])
    watch.hear(first, 0.0)
    watch.hear(earlier, 10.0)
    watch.hear(last, 20.0)
    watch.hear(says("w3"), 20.0)
    watch.hear(says("w3", leaving=True), 21.0)
    assert list(watch.living) == [first, last]
    watch.judge(30.0)
    assert list(watch.living) == [last]
