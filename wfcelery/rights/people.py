"""Who there is and what they may do, as one policy says it. Values only: nothing here reads a file."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from wfcelery.core.messages import Kind, Principal
from wfcelery.rights.grant import Grant
from wfcelery.rights.permission import Permission, Resource
from wfcelery.rights.token import LONGEST, hash_of


@dataclass(frozen=True, slots=True)
class Token:
    """A way to sign in; only the hash is known. `kind`: an agent's token makes its bearer an agent."""

    hash: str = field(repr=False)
    kind: Kind
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody the policy knows. `grants` are those of the user, of the groups and of everyone."""

    id: str
    name: str = ""
    kind: Kind = Kind.PERSON
    groups: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    notify: tuple[str, ...] = field(default=(), repr=False)
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Everybody the policy knows, and the channels. Who is not in it may do nothing."""

    users: Mapping[str, User] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    channels: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def allows(self, who: Principal, permission: str, resource: Resource) -> bool:
        """Tell whether somebody may do something.

        What the policy knows of a user counts, not what `who` says; but who says not to be a person is
        believed, and decides nothing.
        """
        user = self.users.get(who.id)
        if user is None:
            return False
        is_person = who.kind is Kind.PERSON and user.kind is Kind.PERSON
        if permission == Permission.DECIDE and not is_person:
            return False
        return any(grant.covers(permission, resource) for grant in user.grants)

    def principal(self, user: str) -> Principal | None:
        """Give what is known of a user."""
        known = self.users.get(user)
        return None if known is None else Principal(known.id, known.kind, known.groups)

    def by_token(self, token: str) -> Principal | None:
        """Give whom a token stands for. How long it takes tells nothing of how near a guess was."""
        if not token or len(token) > LONGEST:
            return None
        wanted, found = hash_of(token), None
        for user in self.users.values():
            for each in user.tokens:
                if hmac.compare_digest(each.hash, wanted):
                    found = Principal(user.id, each.kind, user.groups)
        return found

    def holds(self, who: Principal, token_hash: str) -> bool:
        """Tell whether a token with this hash still stands for somebody, and as what they say to be."""
        known = self.users.get(who.id)
        return known is not None and any(
            (each.hash, each.kind) == (token_hash, who.kind) for each in known.tokens
        )

    def members(self, group: str) -> tuple[str, ...]:
        """Name the people of a group; an agent in it is not one of them."""
        return tuple(
            user.id for user in self.users.values() if group in user.groups and user.kind is Kind.PERSON
        )

    def addresses(self, user: str) -> tuple[str, ...]:
        """Give the places where somebody wants to be told things."""
        known = self.users.get(user)
        return () if known is None else known.notify

    def channel(self, name: str) -> tuple[str, ...]:
        """Give the places that a channel means."""
        return self.channels.get(name, ())
