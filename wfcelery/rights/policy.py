"""The policy file as an authority. It is looked at again and again, so that what is taken away is gone."""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wfcelery.core.messages import Principal
from wfcelery.errors import InvalidPolicy
from wfcelery.rights.people import People
from wfcelery.rights.permission import Resource
from wfcelery.rights.policy_text import LONGEST_TEXT, parse_policy

logger: Final = logging.getLogger("wfcelery.rights")

LOOK_EVERY_S: Final = 1.0
# A file that was written so recently may be written again with the same time on it: it is read once more.
SETTLED_AFTER_S: Final = 2.0
# What is in force while the file cannot be used: nobody may do anything.
NOBODY: Final = People()


@dataclass(frozen=True, slots=True)
class _Version:
    """What tells one version of the file from another."""

    modified_ns: int
    changed_ns: int
    size: int
    inode: int
    device: int

    @classmethod
    def of(cls, found: os.stat_result) -> _Version:
        return cls(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)

    def is_settled(self, now_ns: int) -> bool:
        return now_ns - max(self.modified_ns, self.changed_ns) > SETTLED_AFTER_S * 1e9


class PolicyFile:
    """Answers by a policy file. Threads share it. The file must be good at first: raises `InvalidPolicy`.

    It is looked at before an answer, at most once a second. One that becomes unreadable or invalid allows
    nothing until it is good again.
    """

    is_open = False

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._looked = clock()
        self._version: _Version | None
        self._text: str | None
        self._complaint = ""
        self._version, self._text = _read(path)
        self._people = parse_policy(self._text, str(path))

    def __repr__(self) -> str:
        return f"PolicyFile({str(self._path)!r})"

    def people(self) -> People:
        """Give what is in force now."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= LOOK_EVERY_S:
                self._looked = now
                self._look()
            return self._people

    def allows(self, who: Principal, permission: str, resource: Resource, /) -> bool:
        """Tell whether somebody may do something."""
        return self.people().allows(who, permission, resource)

    def principal(self, user: str, /) -> Principal | None:
        """Give what is known of a user."""
        return self.people().principal(user)

    def by_token(self, token: str, /) -> Principal | None:
        """Give whom a token stands for."""
        return self.people().by_token(token)

    def holds(self, who: Principal, token_hash: str, /) -> bool:
        """Tell whether a token with this hash still stands for somebody."""
        return self.people().holds(who, token_hash)

    def members(self, group: str, /) -> tuple[str, ...]:
        """Name the people of a group."""
        return self.people().members(group)

    def addresses(self, user: str, /) -> tuple[str, ...]:
        """Give the places where somebody wants to be told things."""
        return self.people().addresses(user)

    def channel(self, name: str, /) -> tuple[str, ...]:
        """Give the places that a channel means."""
        return self.people().channel(name)

    def _look(self) -> None:
        try:
            if self._is_as_it_was():
                return
            version, text = _read(self._path)
            if text != self._text:
                self._people = parse_policy(text, str(self._path))
                self._text = text
            self._version = version
        except InvalidPolicy as error:
            self._refuse_everybody(str(error))
        else:
            if self._complaint:
                logger.warning("policy %s is good again", self._path)
            self._complaint = ""

    def _is_as_it_was(self) -> bool:
        if self._version is None:
            return False
        try:
            version = _Version.of(self._path.stat())
        except OSError as exc:
            raise _unreadable(self._path, exc) from exc
        return version == self._version and version.is_settled(time.time_ns())

    def _refuse_everybody(self, complaint: str) -> None:
        self._people, self._version, self._text = NOBODY, None, None
        if complaint != self._complaint:
            logger.error("nobody is allowed anything until this is mended: %s", complaint)
        self._complaint = complaint


def read_policy(path: Path) -> People:
    """Read a policy file once. Raises `InvalidPolicy`."""
    return parse_policy(_read(path)[1], str(path))


def _read(path: Path) -> tuple[_Version, str]:
    """Read the file, and tell which version of it that was."""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for whoever writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise InvalidPolicy(str(path), ("is not a file",))
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(LONGEST_TEXT + 1)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    if len(content) > LONGEST_TEXT:
        raise InvalidPolicy(str(path), (f"is longer than {LONGEST_TEXT} bytes; it cannot be a policy",))
    try:
        return _Version.of(found), content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidPolicy(str(path), (f"is not UTF-8: byte {exc.start + 1} cannot be read",)) from None


def _unreadable(path: Path, exc: OSError) -> InvalidPolicy:
    if exc.errno == errno.ENOENT:
        said = "there is no such file; `wfcelery policy init` prints one to begin with"
    else:
        said = f"cannot be read: {exc.strerror}"
    return InvalidPolicy(str(path), (said,))
