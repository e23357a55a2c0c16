from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.parts import OLD_SECRET, RING, RUN, SECRET, counts, moments, run_ids, steps, texts
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput
from wfcelery.wire import keys
from wfcelery.wire.link import BadLink, Link, link_url, read_link, write_link
from wfcelery.wire.signed import write_signed

LINK = Link(RUN, "gate", 2, "ann", 2_000_000_000.25)
NOW = 1_999_999_999.0
WORDS = "this link is not valid, or no longer; ask for a new one"

links = st.builds(Link, run_ids, steps, counts, texts, moments)


def refused(token: str, ring: keys.Keyring = RING, now: float = NOW) -> str:
    with pytest.raises(BadLink) as caught:
        read_link(ring, token, now)
    return str(caught.value)


@given(links)
def test_a_link_comes_back_as_it_was_written(link: Link) -> None:
    assert read_link(RING, write_link(RING, link), link.expires_at - 1) == link


@pytest.mark.parametrize(
    "other",
    [
        replace(LINK, run_id="01jcqr5h2k7m9n3p4q5r6s7t8w"),
        replace(LINK, step="other"),
        replace(LINK, attempt=3),
        replace(LINK, approver="bob"),
        replace(LINK, expires_at=LINK.expires_at + 1),
    ],
)
def test_a_link_with_any_part_swapped_is_refused(other: Link) -> None:
    mine, theirs = write_link(RING, LINK), write_link(RING, other)
    forged = f"{theirs.partition('.')[0]}.{mine.partition('.')[2]}"
    assert refused(forged) == WORDS
    assert read_link(RING, theirs, NOW) == other


@pytest.mark.parametrize(("offset", "is_good"), [(-1, True), (-0.001, True), (0, False), (1, False)])
def test_a_link_ends_at_its_very_moment(offset: float, is_good: bool) -> None:
    token, now = write_link(RING, LINK), LINK.expires_at + offset
    if is_good:
        assert read_link(RING, token, now) == LINK
    else:
        assert refused(token, now=now) == WORDS


def test_the_expiry_is_inside_and_cannot_be_moved() -> None:
    payload, signature = write_link(RING, LINK).split(".")
    parts = json.loads(base64.urlsafe_b64decode(payload + "==="))
    assert parts == [1, "approval", [RUN, "gate", 2, "ann", 2_000_000_000.25]]
    parts[2][4] *= 2
    later = base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).rstrip(b"=").decode()
    assert refused(f"{later}.{signature}") == WORDS


def test_a_token_of_another_purpose_is_no_link() -> None:
    parts: list[Json] = [RUN, "gate", 2, "ann", 2_000_000_000.25]
    for purpose in ("session", "csrf", "approvals", ""):
        assert refused(write_signed(RING, purpose, parts)) == WORDS


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        [RUN, "gate", 2, "ann"],
        [RUN, "gate", 2, "ann", 2e9, 1],
        ["no-run", "gate", 2, "ann", 2e9],
        [RUN, "no gate", 2, "ann", 2e9],
        [RUN, "gate", 0, "ann", 2e9],
        [RUN, "gate", True, "ann", 2e9],
        [RUN, "gate", 2, "", 2e9],
        [RUN, "gate", 2, None, 2e9],
        [RUN, "gate", 2, "ann", "2e9"],
        [RUN, "gate", 2, "ann", 1e12],
        [RUN, "gate", 2, "ann", True],
        {"run_id": RUN},
    ],
)
def test_a_signed_payload_that_is_no_link_is_refused(payload: list[object]) -> None:
    assert refused(write_signed(RING, "approval", payload)) == WORDS  # type: ignore[arg-type] # JSON


def test_what_is_wrong_is_never_told() -> None:
    token = write_link(RING, LINK)
    foreign = write_link(keys.keyring((OLD_SECRET,)), LINK)
    hostile = ("", ".", "nonsense", token[:-1], token + "=", token * 2, "ä", "\udcff", "a" * 1_000_000)
    said = {refused(each) for each in (foreign, *hostile)} | {refused(token, now=LINK.expires_at)}
    assert said == {WORDS}


@given(st.text(max_size=100))
def test_no_text_is_a_link(text: str) -> None:
    assert refused(text) == WORDS


@given(st.integers(0, 200), st.characters(max_codepoint=0x17F))
def test_a_link_with_one_letter_changed_is_refused(place: int, letter: str) -> None:
    token = write_link(RING, LINK)
    changed = token[:place] + letter + token[place + 1 :]
    if changed != token:
        assert refused(changed) == WORDS


def test_a_new_key_signs_and_the_old_one_verifies_until_it_is_dropped() -> None:
    before, during, after = (keys.keyring(each) for each in ((OLD_SECRET,), (SECRET, OLD_SECRET), (SECRET,)))
    old = write_link(before, LINK)
    assert read_link(during, old, NOW) == LINK
    assert refused(old, ring=after) == WORDS
    assert read_link(after, write_link(during, LINK), NOW) == LINK
    assert refused(write_link(during, LINK), ring=before) == WORDS


@pytest.mark.parametrize(
    "link",
    [replace(LINK, run_id="r1"), replace(LINK, approver=""), replace(LINK, expires_at=float("inf"))],
)
def test_a_link_to_nothing_is_not_written(link: Link) -> None:
    with pytest.raises(InvalidInput):
        write_link(RING, link)


def test_the_longest_link_fits_into_a_url() -> None:
    link = Link(RUN, "undo:" + "s" * 64, 2**31 - 1, "\N{GRINNING FACE}" * 255, 2_000_000_000.123456)
    token = write_link(RING, link)
    assert read_link(RING, token, NOW) == link
    assert len(token) < 2_000
    assert len(write_link(RING, LINK)) < 160


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://flows.example", "https://flows.example/a/T.s"),
        ("https://flows.example/", "https://flows.example/a/T.s"),
        ("https://example/ops/flows", "https://example/ops/flows/a/T.s"),
        ("https://example/ops/flows//", "https://example/ops/flows/a/T.s"),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765/a/T.s"),
    ],
)
def test_a_link_stands_below_the_base_url(base: str, url: str) -> None:
    assert link_url(base, "T.s") == url
