"""The clock of the watch, its markers, and what a backlog costs; with explicit times."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from tests.executor.watch_words import EPOCH, A, B, C, Q, back, gone, out, passed, ref, says, watching
from wfcelery.executor.messages import MarkerSeen
from wfcelery.executor.watch import Marker, Standing, Watch, WatchClock, Where

# -- the clock


def test_the_clock_counts_the_seconds_in_which_the_broker_was_heard() -> None:
    clock = WatchClock()
    ticks = [(100.0, True), (101.0, True), (102.5, True), (103.5, False), (104.0, True), (104.0, True)]
    assert [clock.tick(at, heard) for at, heard in ticks] == [0.0, 1.0, 2.5, 2.5, 3.0, 3.0]


def test_the_clock_adds_two_seconds_at_most_however_long_the_process_was_stopped() -> None:
    clock = WatchClock()
    assert [clock.tick(at, heard=True) for at in (0.0, 3_600.0, 3_601.0)] == [0.0, 2.0, 3.0]


def test_the_clock_never_goes_back() -> None:
    clock = WatchClock()
    assert [clock.tick(at, heard=True) for at in (10.0, 5.0, 6.0)] == [0.0, 0.0, 1.0]


# -- markers


def test_a_marker_is_sent_for_a_line_in_which_a_step_is_older_than_two_seconds() -> None:
    watch = watching(A)
    assert watch.markers(1.9) == []
    assert watch.markers(2.0) == [Marker(Q, 0, EPOCH, 1)]


def test_each_queue_and_priority_has_markers_of_its_own() -> None:
    watch = Watch(EPOCH)
    watch.sent([(A, Q, 0), (B, Q, 9), (C, "gpu", 0)], 0.0)
    first, second, third = watch.markers(2.0)
    assert [first, second, third] == [
        Marker(Q, 0, EPOCH, 1),
        Marker(Q, 9, EPOCH, 2),
        Marker("gpu", 0, EPOCH, 3),
    ]
    watch.hear(back(second), 2.0)
    assert watch.judge(7.0) == [gone(B)]


def test_no_marker_is_sent_where_every_step_is_passed_or_has_ended() -> None:
    watch = watching(A, B)
    watch.ended(B)
    passed(watch, 2.0)
    assert watch.markers(1_000.0) == []
    watch.ended(A)
    assert watch.markers(2_000.0) == []


def test_a_step_sent_after_the_marker_is_not_passed_by_it_even_in_the_same_moment() -> None:
    watch = watching(A)
    [marker] = watch.markers(2.0)
    watch.sent(out(B), 2.0)
    watch.hear(back(marker), 2.0)
    assert watch.judge(7.0) == [gone(A)]
    assert watch.standing(B) == Standing(Where.QUEUED, Q, since=2.0)


def test_a_step_sent_while_a_marker_is_under_way_gets_a_later_one() -> None:
    watch = watching(A)
    [first] = watch.markers(2.0)
    watch.sent(out(B), 3.0)
    [second] = watch.markers(5.0)
    watch.hear(back(first), 5.0)
    watch.hear(back(second), 6.0)
    assert watch.judge(10.0) == [gone(A)]
    assert watch.judge(11.0) == [gone(B)]


def test_a_later_marker_that_comes_back_covers_the_earlier_ones() -> None:
    watch = watching(A)
    watch.markers(2.0)
    watch.sent(out(B), 3.0)
    [second] = watch.markers(5.0)
    watch.hear(back(second), 6.0)
    assert watch.judge(11.0) == [gone(A), gone(B)]


def test_a_marker_of_another_epoch_is_ignored() -> None:
    watch = watching(A)
    [marker] = watch.markers(2.0)
    watch.hear(MarkerSeen(Q, 0, EPOCH - 1, marker.number), 2.0)
    watch.hear(MarkerSeen(Q, 0, EPOCH + 1, marker.number), 2.0)
    assert watch.judge(1_000.0) == []


@pytest.mark.parametrize("number", [-1, 0, 2, 10**9])
def test_a_number_that_was_never_sent_is_ignored(number: int) -> None:
    watch = watching(A)
    watch.markers(2.0)
    watch.hear(MarkerSeen(Q, 0, EPOCH, number), 2.0)
    watch.hear(MarkerSeen("nowhere", 0, EPOCH, 1), 2.0)
    assert watch.judge(1_000.0) == []


def test_gaps_grow_by_half_while_no_marker_comes_back() -> None:
    watch = watching(A)
    sent = [tenth / 10 for tenth in range(2_000) if watch.markers(tenth / 10)]
    assert sent == pytest.approx([2, 4, 6, 8, 11, 15.5, 22.3, 32.5, 47.8, 70.7, 105.1, 156.7], abs=0.3)


def test_a_backlog_of_an_hour_holds_two_dozen_markers_and_one_of_a_week_some_dozens() -> None:
    watch = watching(A)
    assert sum(len(watch.markers(float(second))) for second in range(3_600)) == 27
    assert sum(len(watch.markers(float(second))) for second in range(3_600, 7 * 86_400, 10)) == 28


def test_a_standing_backlog_under_load_is_not_filled_with_markers() -> None:
    watch, under_way, most = Watch(EPOCH), [], 0
    for second in range(4 * 3_600):
        watch.sent(out(ref(str(second))), float(second))
        under_way += [(second, marker) for marker in watch.markers(float(second))]
        while under_way and under_way[0][0] <= second - 3_600:
            watch.hear(back(under_way.pop(0)[1]), float(second))
        most = max(most, len(under_way))
    assert most <= 30


def test_once_a_marker_has_come_back_the_next_goes_out_as_soon_as_a_step_is_old_enough() -> None:
    watch = watching(A)
    [*_, last] = [marker for second in range(600) for marker in watch.markers(float(second))]
    watch.sent(out(B), 600.0)
    watch.hear(back(last), 601.0)
    assert watch.markers(601.9) == []
    assert watch.markers(602.0) == [Marker(Q, 0, EPOCH, last.number + 1)]


def test_after_a_flush_the_next_marker_goes_out_at_once() -> None:
    watch = watching(A)
    watch.markers(2.0)
    assert watch.markers(3.0) == []
    watch.flushed(3.0)
    assert watch.markers(3.0) == [Marker(Q, 0, EPOCH, 2)]


def test_a_flush_makes_nothing_lost_by_itself() -> None:
    watch = watching(A)
    watch.markers(2.0)
    watch.flushed(3.0)
    assert watch.judge(1_000.0) == []


# -- cost


def test_a_backlog_of_100_000_costs_little_memory_and_nothing_to_judge() -> None:
    refs = [ref(str(number)) for number in range(100_000)]
    watch = Watch(EPOCH)
    tracemalloc.start()
    try:
        watch.sent(out(*refs), 0.0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / len(refs) < 250
    began = time.process_time()
    for second in range(1_000):
        watch.hear(says(active=refs[:20]), float(second))
        watch.markers(float(second))
        assert watch.judge(float(second)) == []
        watch.ended(refs[50_000 + second])
    assert time.process_time() - began < 1.0  # One look at every step each second would take ten times that.
