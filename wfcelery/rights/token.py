"""Tokens: what somebody signs in with. Only its hash is kept, so that who reads the file cannot sign in."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

PREFIX: Final = "wfc_"
HASH_PREFIX: Final = "sha256:"
# More than any token that we make; hashing megabytes for a stranger is work that he chooses.
LONGEST: Final = 512
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")


def new_token() -> str:
    """Make a token that nobody can guess: 256 bits, so that a plain hash of it is safe to keep."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Give what is kept of a token."""
    return HASH_PREFIX + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash(text: str) -> bool:
    """Tell whether a text is the hash of a token, in the one spelling that we write."""
    return _HASH.fullmatch(text) is not None
