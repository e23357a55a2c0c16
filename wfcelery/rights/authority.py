"""Whom to ask: the port, and the authority that lets everybody do everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from wfcelery.core.messages import Kind, Principal
from wfcelery.rights.permission import Resource


class Authority(Protocol):
    """Knows people and what they may do. Whatever goes wrong in it means no."""

    @property
    def is_open(self) -> bool:
        """Tell whether everybody may do everything, and nobody need be asked."""

    def allows(self, who: Principal, permission: str, resource: Resource, /) -> bool:
        """Tell whether somebody may do something."""

    def principal(self, user: str, /) -> Principal | None:
        """Give what is known of a user: kind and groups; None if nothing is."""

    def by_token(self, token: str, /) -> Principal | None:
        """Give whom a token stands for; None if nobody."""

    def holds(self, who: Principal, token_hash: str, /) -> bool:
        """Tell whether the token with this hash, with which somebody has signed in, still stands for them."""

    def members(self, group: str, /) -> tuple[str, ...]:
        """Name the people of a group."""

    def addresses(self, user: str, /) -> tuple[str, ...]:
        """Give the places (apprise URLs) where somebody wants to be told things."""

    def channel(self, name: str, /) -> tuple[str, ...]:
        """Give the places (apprise URLs) that a channel of this name means."""


class Everybody:
    """No policy: everybody may do everything, and nobody can sign in. For one machine, and for demos."""

    is_open = True

    def allows(self, who: Principal, permission: str, resource: Resource, /) -> bool:  # noqa: ARG002 - the port
        """Say yes."""
        return True

    def principal(self, user: str, /) -> Principal | None:  # noqa: ARG002 - same
        """Know nobody."""
        return None

    def by_token(self, token: str, /) -> Principal | None:  # noqa: ARG002 - same
        """Know no token."""
        return None

    def holds(self, who: Principal, token_hash: str, /) -> bool:  # noqa: ARG002 - same
        """Know no token."""
        return False

    def members(self, group: str, /) -> tuple[str, ...]:  # noqa: ARG002 - same
        """Know no group."""
        return ()

    def addresses(self, user: str, /) -> tuple[str, ...]:  # noqa: ARG002 - same
        """Know no address."""
        return ()

    def channel(self, name: str, /) -> tuple[str, ...]:  # noqa: ARG002 - same
        """Know no channel."""
        return ()


def confirmed(authority: Authority, who: Principal) -> Principal:
    """Give what is true of somebody: what the authority knows counts, not what the sender of a message says.

    An agent that acts for a person stays an agent.
    """
    known = authority.principal(who.id)
    if known is None:
        return who
    kind = known.kind if who.kind is Kind.PERSON else who.kind
    return replace(who, kind=kind, groups=known.groups)
