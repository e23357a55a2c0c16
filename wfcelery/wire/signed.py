"""Signed tokens: short values that travel through browsers and mails, and come back unchanged or not at all.

`PAYLOAD.SIGNATURE`, both in URL-safe base64. The payload can be read by anybody: no secrets belong in it. The
purpose is a part of the key and of the payload, so that a token for one purpose means nothing for another.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from itsdangerous import BadData, Signer
from itsdangerous.encoding import base64_decode, base64_encode

from wfcelery.core import values
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, InvalidSettings, WfceleryError
from wfcelery.wire.keys import Keyring

VERSION: Final = 1
LONGEST_TOKEN: Final = 4_096
"""In characters, so that a token fits into a URL and a cookie, and a huge one costs nothing to refuse."""

_SALT: Final = "wfcelery."
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class BadToken(WfceleryError):
    """A token that was not signed here for this purpose. Why not is not said: it would help who guesses."""

    code = "bad-token"

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "this token is not valid here; ask for a new one"


def write_signed(ring: Keyring, purpose: str, payload: Json) -> str:
    """Sign a payload for a purpose. Raises `InvalidSettings` without a key, `InvalidInput` if too long."""
    marked = values.canonical([VERSION, purpose, values.check(payload, purpose)])
    token = _signer(ring, purpose).sign(base64_encode(marked)).decode("ascii")
    if len(token) > LONGEST_TOKEN:
        raise InvalidInput(purpose, f"is too long to be signed: at most {LONGEST_TOKEN:,} characters")
    return token


def read_signed(ring: Keyring, purpose: str, token: str) -> Json:
    """Give the payload that one of our keys has signed for this purpose. Anything else raises `BadToken`."""
    signer = _signer(ring, purpose)
    if len(token) > LONGEST_TOKEN or _FORM.fullmatch(token) is None:
        raise BadToken
    text = token.encode("ascii")
    signature = text.rpartition(b".")[2]
    try:
        # Base64 has several spellings of the same bytes; a token has one.
        if base64_encode(base64_decode(signature)) != signature:
            raise BadToken
        marked = json.loads(base64_decode(signer.unsign(text)))
    except (BadData, ValueError, RecursionError):
        raise BadToken from None
    match marked:
        case [version, str(meant), payload] if version == VERSION and meant == purpose:
            return payload  # type: ignore[no-any-return] # json has read it
    raise BadToken


def _signer(ring: Keyring, purpose: str) -> Signer:
    if not ring.links:
        hint = "links and sessions are signed by processes that have WFCELERY_SECRET_KEY, never by workers"
        raise InvalidSettings("secret_key", f"this process has no link key; {hint}")
    # The last of the list signs, and with us the first does. The default digest is SHA-1.
    return Signer(ring.links[::-1], salt=_SALT + purpose, key_derivation="hmac", digest_method=hashlib.sha256)
