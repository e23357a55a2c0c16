"""Who is meant by a notice, where they are reached, and who of them gets a link of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from wfcelery.core.decide import gates
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json
from wfcelery.notify.facts import ASKING, Facts
from wfcelery.notify.post import scheme_of
from wfcelery.rights import Authority, Permission, Resource
from wfcelery.store.notices import Notice

GROUP: Final = "group:"
CHANNEL: Final = "channel:"
ADDRESS: Final = "://"


@dataclass(frozen=True, slots=True)
class Recipient:
    """One who is told, once, at one of several places at least. Addresses hold passwords: `repr` hides them.

    `name` is what tables and errors call them. `decider`: the person who gets a link of their own.
    """

    name: str
    addresses: tuple[str, ...] = field(default=(), repr=False)
    decider: str | None = None
    lacks: str = ""
    """What to do if there is no address."""


def recipients(authority: Authority, notice: Notice, facts: Facts) -> tuple[Recipient, ...]:
    """Name everybody whom a notice means: a person, the people of a group, each place of a channel."""
    meant = notice.recipient
    if ADDRESS in meant:
        return (Recipient(f"{scheme_of(meant)}...", (meant,)),)
    if meant.startswith(CHANNEL):
        return tuple(_places(authority, meant))
    if meant.startswith(GROUP):
        people = dict.fromkeys(authority.members(meant.removeprefix(GROUP)))
        if not people:
            return (Recipient(meant, lacks="say in the policy who is in it"),)
        told = [_person(authority, notice, facts, each) for each in people if each not in _voted(notice)]
        if notice.kind not in ASKING or not facts.is_open:
            return tuple(told)
        # A whole group is asked, and who of it may not answer need not hear the question.
        asked = tuple(each for each in told if each.decider is not None)
        return asked or (Recipient(meant, lacks="nobody of it may decide this gate"),) if told else ()
    return (_person(authority, notice, facts, meant),)


def may_decide(authority: Authority, notice: Notice, facts: Facts, person: str) -> bool:
    """Tell whether somebody may decide the gate that a notice asks about, as will be judged when they do."""
    if notice.kind not in ASKING or not facts.is_open or facts.gate is None or facts.attempt is None:
        return False
    who = authority.principal(person) or Principal(person)
    if gates.objection_to(facts.flow, facts.gate, facts.run, facts.attempt, who) is not None:
        return False
    run = facts.run
    return authority.allows(who, Permission.DECIDE, Resource(run.name, run.id, run.created_by))


def _voted(notice: Notice) -> tuple[Json, ...]:
    """Name those whom a reminder need not remind: within a group only the notice itself knows them."""
    voted = notice.data.get("voted")
    return tuple(voted) if isinstance(voted, list) else ()


def _person(authority: Authority, notice: Notice, facts: Facts, person: str) -> Recipient:
    decider = person if may_decide(authority, notice, facts, person) else None
    return Recipient(person, authority.addresses(person), decider, "add one as `notify` in the policy")


def _places(authority: Authority, meant: str) -> Iterator[Recipient]:
    """Give each place of a channel a number: its address is not for the tables."""
    found = authority.channel(meant.removeprefix(CHANNEL))
    if not found:
        yield Recipient(meant, lacks="name the channel in the policy")
    for number, address in enumerate(found, 1):
        yield Recipient(meant if len(found) == 1 else f"{meant} ({number})", (address,))
