"""What people and programs read: whole documented objects."""

from __future__ import annotations

from tests.store.book import ANN, CHAIN, GATE, LOOP, NOW, Book
from wfcelery.core.messages import Cancel
from wfcelery.store import views


def test_a_run_is_shown_with_its_steps_in_the_order_in_which_they_appeared(book: Book) -> None:
    run_id = book.start(CHAIN, {"x": [1, None]}, key="order-1")
    book.failed(run_id, "a", retry=False)
    with book.database.reading() as conn:
        shown = views.run(conn, run_id)
    assert shown == {
        "id": run_id,
        "name": "flow",
        "version": 1,
        "status": "failed",
        "input": {"x": [1, None]},
        "output": None,
        "error": {"type": "ValueError", "message": "step a failed: no"},
        "created_by": "ann",
        "key": "order-1",
        "tags": ["Red"],
        "created_at": "2023-11-14T22:13:20.123Z",
        "completed_at": "2023-11-14T22:13:20.123Z",
        "steps": [
            {
                "id": f"{run_id}:a:1",
                "name": "a",
                "item": None,
                "attempt": 1,
                "status": "failed",
                "tool": "echo",
                "args": {"x": [1, None]},
                "result": None,
                "error": {"type": "ValueError", "message": "no"},
                "ready_at": "2023-11-14T22:13:20.123Z",
                "due_at": None,
                "started_at": None,
                "completed_at": "2023-11-14T22:13:20.123Z",
                "worker": "w1",
            }
        ],
    }


def test_a_run_that_is_not_there_is_none(book: Book) -> None:
    with book.database.reading() as conn:
        assert views.run(conn, "nowhere") is None


def test_items_and_attempts_are_shown_as_they_came(book: Book) -> None:
    run_id = book.start(LOOP, {"items": ["p", "q"]})
    book.failed(run_id, "all", item=0)
    book.done(run_id, "all", "Q", item=1)
    with book.database.reading() as conn:
        shown = views.run(conn, run_id)
    assert shown is not None
    steps = shown["steps"]
    assert isinstance(steps, list)
    assert [(step["id"].removeprefix(run_id), step["item"], step["status"]) for step in steps] == [
        (":all:1", None, "pending"),
        (":all[0]:1", 0, "failed"),
        (":all[1]:1", 1, "done"),
        (":all[0]:2", 0, "pending"),
    ]
    assert [step["due_at"] for step in steps] == [None, None, None, "2023-11-14T22:13:50.123Z"]


def test_events_are_shown_after_any_of_them(book: Book) -> None:
    run_id = book.start(GATE)
    book.approve(run_id, "ask")
    with book.database.reading() as conn:
        shown = views.events(conn, run_id)
        assert views.events(conn, run_id, after_seq=2) == shown[2:]
        assert views.events(conn, run_id, after_seq=1, limit=2) == shown[1:3]
    assert [event["seq"] for event in shown] == list(range(1, len(shown) + 1))
    assert [event["type"] for event in shown] == [
        "run_started",
        "gate_opened",
        "run_paused",
        "vote_cast",
        "step_done",
        "step_ready",
        "run_went_on",
    ]
    assert shown[3] == {
        "seq": 4,
        "at": "2023-11-14T22:13:20.123Z",
        "type": "vote_cast",
        "step": "ask",
        "item": None,
        "attempt": 1,
        "actor": "bob",
        "data": {"approve": True, "comment": "fine"},
    }
    assert shown[2] == {
        "seq": 3,
        "at": "2023-11-14T22:13:20.123Z",
        "type": "run_paused",
        "step": None,
        "item": None,
        "attempt": None,
        "actor": None,
        "data": {"status": "paused"},
    }


def test_runs_are_listed_newest_first_and_page_by_page(book: Book) -> None:
    started = [book.start(CHAIN) for _ in range(2)]
    book.now += 1
    started += [book.start(CHAIN) for _ in range(3)]
    with book.database.reading() as conn:
        listed = views.runs(conn)
        pages = [views.runs(conn, limit=2)]
        while pages[-1]:
            pages.append(views.runs(conn, limit=2, before=str(pages[-1][-1]["id"])))
    assert [run["id"] for run in listed] == started[::-1]
    assert [run for page in pages for run in page] == listed
    assert "steps" not in listed[0]


def test_runs_are_listed_by_what_they_are(book: Book) -> None:
    first = book.start(CHAIN, key="k1")
    second = book.start(GATE, name="gated")
    book.tell(first, Cancel("c", first, ANN))
    with book.database.reading() as conn:

        def ids(**wanted: str) -> list[object]:
            return [run["id"] for run in views.runs(conn, **wanted)]  # type: ignore[arg-type]

        assert (ids(status="cancelled"), ids(status="paused")) == ([first], [second])
        assert (ids(name="gated"), ids(key="k1"), ids(key="k2")) == ([second], [first], [])
        assert (ids(created_by="ann"), ids(created_by="bob")) == ([second, first], [])
        assert (ids(tag="Red"), ids(tag="red"), ids(tag="Re")) == ([second, first], [], [])
        assert ids(tag="Red", status="paused", name="gated") == [second]


def test_definitions_are_listed_by_name(book: Book) -> None:
    newest = [book.define(CHAIN, name) for name in ("b", "a")]
    with book.database.reading() as conn:
        shown = views.definitions(conn)
    assert shown == [
        {
            "id": each,
            "name": name,
            "version": 1,
            "created_by": "ann",
            "created_at": "2023-11-14T22:13:20.123Z",
        }
        for each, name in zip(newest[::-1], ("a", "b"), strict=True)
    ]
    assert book.now == NOW


def test_runs_are_listed_by_several_statuses_and_since_when(book: Book) -> None:
    first = book.start(CHAIN)
    book.now += 100
    second = book.start(GATE)
    book.now += 100
    third = book.start(GATE)
    book.tell(third, Cancel("c1", third, ANN))
    with book.database.reading() as conn:

        def ids(**wanted: object) -> list[object]:
            return [run["id"] for run in views.runs(conn, **wanted)]  # type: ignore[arg-type]

        assert ids(status=("running", "cancelled")) == [third, first]
        assert ids(status="paused") == [second]
        assert ids(status=()) == [third, second, first]
        assert ids(since=NOW + 100) == [third, second]
        assert ids(since=NOW + 300) == []
