from __future__ import annotations

import base64
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.parts import OLD_SECRET, RING, SECRET, WORKER_RING, payloads
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.wire import keys
from wfcelery.wire.signed import LONGEST_TOKEN, BadToken, read_signed, write_signed


def refused(token: str, purpose: str = "session") -> str:
    with pytest.raises(BadToken) as caught:
        read_signed(RING, purpose, token)
    return str(caught.value)


@given(payloads)
def test_what_was_signed_comes_back(payload: Json) -> None:
    assert read_signed(RING, "session", write_signed(RING, "session", payload)) == payload


def test_a_token_of_one_purpose_is_refused_for_another() -> None:
    purposes = ("session", "csrf", "approval", "", "sessio", "session.")
    for written in purposes:
        token = write_signed(RING, written, ["ann"])
        assert [each for each in purposes if _reads(each, token)] == [written]


def test_a_token_is_signed_with_sha_256_by_a_key_of_its_purpose() -> None:
    token = write_signed(RING, "session", ["ann"])
    payload, signature = token.split(".")
    derived = hmac.digest(RING.links[0], b"wfcelery.session", "sha256")
    wanted = base64.urlsafe_b64encode(hmac.digest(derived, payload.encode(), "sha256"))
    assert signature == wanted.rstrip(b"=").decode()
    assert base64.urlsafe_b64decode(payload + "===") == b'[1,"session",["ann"]]'


def test_a_payload_of_another_version_or_form_is_refused_though_it_is_signed() -> None:
    for marked in (b'[2,"session",[]]', b'[1,"session"]', b"{}", b"", b"[", b"\xff", b"[" * 2000):
        assert refused(_signed_by_hand(marked)) == "this token is not valid here; ask for a new one"


def test_other_spellings_of_a_token_are_refused() -> None:
    token = write_signed(RING, "session", ["ann"])
    for other in (
        f"{token}=",
        f" {token}",
        f"{token}\n",
        f"{token}.",
        f".{token}",
        f"{token}.{token}",
        f"{token}%2E",
        token.replace(".", "%2E"),
        token[:-1],
        token.upper(),
        "",
        ".",
        "a.b",
        "ä.ö",
        "\udcff.a",
        "\x00",
        "a" * 10_000_000,
        f"{'a' * LONGEST_TOKEN}.{token}",
    ):
        refused(other)


def test_only_one_of_the_spellings_of_the_signatures_last_bits_is_taken() -> None:
    token = write_signed(RING, "session", ["ann"])
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert [each for each in letters if _reads("session", token[:-1] + each)] == [token[-1]]


@given(st.text(max_size=200))
def test_no_text_is_anything_but_refused(text: str) -> None:
    refused(text)


def test_the_first_key_signs_and_all_verify() -> None:
    before, during, after = (keys.keyring(each) for each in ((OLD_SECRET,), (SECRET, OLD_SECRET), (SECRET,)))
    assert read_signed(during, "csrf", write_signed(before, "csrf", 1)) == 1
    assert read_signed(after, "csrf", write_signed(during, "csrf", 1)) == 1
    with pytest.raises(BadToken):
        read_signed(after, "csrf", write_signed(before, "csrf", 1))


def test_a_worker_can_neither_sign_nor_verify() -> None:
    message = (
        "setting secret_key: this process has no link key; links and sessions are signed by processes that "
        "have WFCELERY_SECRET_KEY, never by workers"
    )
    for act in (
        lambda: write_signed(WORKER_RING, "session", 1),
        lambda: read_signed(WORKER_RING, "session", write_signed(RING, "session", 1)),
    ):
        with pytest.raises(InvalidSettings) as caught:
            act()
        assert str(caught.value) == message


def test_what_is_too_long_or_no_json_is_not_signed() -> None:
    with pytest.raises(InvalidInput) as caught:
        write_signed(RING, "session", "x" * LONGEST_TOKEN)
    assert str(caught.value) == "session: is too long to be signed: at most 4,096 characters"
    with pytest.raises(InvalidInput):
        write_signed(RING, "session", float("nan"))


def _reads(purpose: str, token: str) -> bool:
    try:
        read_signed(RING, purpose, token)
    except BadToken:
        return False
    return True


def _signed_by_hand(marked: bytes) -> str:
    derived = hmac.digest(RING.links[0], b"wfcelery.session", "sha256")
    payload = base64.urlsafe_b64encode(marked).rstrip(b"=")
    signature = base64.urlsafe_b64encode(hmac.digest(derived, payload, "sha256")).rstrip(b"=")
    return f"{payload.decode()}.{signature.decode()}"
