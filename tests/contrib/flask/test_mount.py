"""An answer that is passed on ends, whoever stops reading it and however."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wfcelery.contrib.flask.mount import Body


class Place:
    """Counts who has left, and what the app was told."""

    def __init__(self) -> None:
        self.left = 0
        self.ended = 0

    def leave(self) -> None:
        self.left += 1

    def parts(self) -> Iterator[bytes]:
        try:
            yield b"one"
            yield b"two"
        finally:
            self.ended += 1

    def body(self) -> Body:
        made = Body(self.parts())
        made.then = self.leave
        return made


@pytest.mark.parametrize("read", [0, 1, 2, 3])
def test_a_body_that_is_closed_has_left_once_however_much_was_read(read: int) -> None:
    place = Place()
    body = place.body()
    for _ in range(read):
        next(body, None)
    body.close()
    body.close()
    assert (place.left, place.ended) == (1, 1)


def test_a_body_that_was_read_to_its_end_has_left_without_being_closed() -> None:
    place = Place()
    body = place.body()
    assert (list(body), place.left, place.ended) == ([b"one", b"two"], 1, 1)


def test_a_body_that_a_server_drops_has_left() -> None:
    place = Place()
    body = place.body()
    next(body)
    del body
    assert (place.left, place.ended) == (1, 1)
