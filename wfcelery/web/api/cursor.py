"""Where the next page begins: signed, so that nobody need check what it holds, and opaque to who gets it."""

from __future__ import annotations

from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.web.desk import Desk
from wfcelery.wire.signed import BadToken, read_signed, write_signed

PURPOSE = "cursor"


def write(desk: Desk, what: str, place: Json) -> str:
    """Write where the next page of something begins."""
    return write_signed(desk.ring, PURPOSE, [what, place])


def read(desk: Desk, what: str, text: str) -> Json:
    """Give what was written for the same thing."""
    try:
        match read_signed(desk.ring, PURPOSE, text):
            case [str(meant), place] if meant == what:
                return place
    except BadToken:
        pass
    raise InvalidInput("query.cursor", "is not one of ours; give what `next` of the page before says")
