"""A grant: one permission, on every flow or on those whose names match."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from wfcelery.rights.permission import SOMETHING, Permission, Resource

# What opens and closes a set of characters in other globs; we keep to what everybody reads the same way.
_NOT_IN_GLOBS: Final = "[]"


@dataclass(frozen=True, slots=True)
class Grant:
    """Allows `permission` on the flows that match `flows`: `*` stands for any text, `?` for one character.

    `admin` allows every permission there. What is not about a known flow is only allowed by a grant on all.
    """

    permission: str
    flows: str = "*"

    def covers(self, permission: str, resource: Resource) -> bool:
        """Tell whether this grant allows a permission on something."""
        if self.permission not in (permission, Permission.ADMIN):
            return False
        return resource == SOMETHING or fnmatchcase(resource.flow, self.flows)

    @property
    def is_ours(self) -> bool:
        """Tell whether wfcelery itself asks for this permission; if not, it is one of a tool."""
        return self.permission in set(Permission)

    def __str__(self) -> str:
        return self.permission if self.flows == "*" else f"{self.permission}:{self.flows}"


def parse_grant(text: str) -> Grant | str:
    """Read `permission` or `permission:FLOWS`; a text instead says what is wrong with it."""
    permission, colon, flows = text.partition(":")
    if not permission or (colon and not flows):
        return "must be a permission, or PERMISSION:FLOWS as in start:order*"
    if any(char.isspace() or not char.isprintable() for char in text):
        return "must hold no white space and no control characters"
    if "*" in permission or "?" in permission:
        return "must name one permission; `admin` covers all, and * and ? match flows, after a colon"
    if any(char in flows for char in _NOT_IN_GLOBS):
        return "may match flows by * and ? only"
    return Grant(permission, flows or "*")
