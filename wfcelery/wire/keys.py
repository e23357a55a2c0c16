"""The keys: three are derived from each secret, so that who holds one cannot speak in another's name."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from wfcelery.errors import InvalidSettings

LINKS: Final = b"wfcelery.links"
COMMANDS: Final = b"wfcelery.commands"
WORKERS: Final = b"wfcelery.workers"

SHORTEST_SECRET: Final = 16
"""In characters; what is shorter can be guessed."""

_WORKER_KEY: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Keyring:
    """The keys that a process holds, by purpose: the first signs, all verify. Never shown by `repr`."""

    commands: tuple[bytes, ...] = field(default=(), repr=False)
    workers: tuple[bytes, ...] = field(default=(), repr=False)
    links: tuple[bytes, ...] = field(default=(), repr=False)


def keyring(secrets: tuple[str, ...]) -> Keyring:
    """Derive every key from the secrets."""
    _check_secrets(secrets)
    return Keyring(
        commands=_derived(secrets, COMMANDS),
        workers=_derived(secrets, WORKERS),
        links=_derived(secrets, LINKS),
    )


def worker_keys(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Write the worker keys as text: what workers are given in place of the secrets."""
    _check_secrets(secrets)
    return tuple(key.hex() for key in _derived(secrets, WORKERS))


def worker_keyring(keys: tuple[str, ...]) -> Keyring:
    """Make the ring of a worker from what `worker_keys` wrote; it holds no other keys."""
    if not keys:
        hint = "`wfcelery keys` prints the worker key where the secret key is set"
        raise InvalidSettings("worker_key", f"is not set; {hint}")
    return Keyring(workers=tuple(map(_read, keys)))


def _check_secrets(secrets: tuple[str, ...]) -> None:
    if not secrets:
        raise InvalidSettings("secret_key", "is not set; `wfcelery keys --new` prints a good one")
    for secret in secrets:
        if len(secret) < SHORTEST_SECRET:
            short = f"has {len(secret)} characters, at least {SHORTEST_SECRET} are needed"
            raise InvalidSettings("secret_key", f"{short}; `wfcelery keys --new` prints a good one")


def _derived(secrets: tuple[str, ...], purpose: bytes) -> tuple[bytes, ...]:
    # An environment that is not UTF-8 gives texts with surrogates: a secret may be made of any bytes.
    return tuple(hmac.digest(secret.encode(errors="surrogatepass"), purpose, "sha256") for secret in secrets)


def _read(key: str) -> bytes:
    if _WORKER_KEY.fullmatch(key.lower()) is None:
        hint = (
            "`wfcelery keys` prints it where the secret key is set, `wfcelery keys --new` prints a good one"
        )
        raise InvalidSettings("worker_key", f"is not 64 hexadecimal digits; {hint}")
    return bytes.fromhex(key)
