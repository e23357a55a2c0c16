"""Reading the text of a policy file (TOML). Every fault is told with its place; secrets are never shown."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Final

from wfcelery.core.faults import nearest
from wfcelery.core.messages import Kind
from wfcelery.errors import InvalidPolicy
from wfcelery.rights.grant import Grant, parse_grant
from wfcelery.rights.people import People, Token, User
from wfcelery.rights.token import is_hash

LONGEST_NAME: Final = 200
LONGEST_TEXT: Final = 1024 * 1024
# With these a name would be read as something else where people, groups and addresses are listed.
_NOT_A_NAME: Final = ("group:", "channel:")
_TABLES: Final = ("users", "groups", "everyone", "channels")
_USER: Final = ("name", "kind", "groups", "allow", "notify", "tokens")
_RIGHTS: Final = ("allow",)
_TOKEN: Final = ("hash", "kind", "name")
_KINDS: Final = {"person": Kind.PERSON, "agent": Kind.AGENT}


def parse_policy(text: str, where: str) -> People:
    """Read a policy. Raises `InvalidPolicy` with every fault."""
    if len(text) > LONGEST_TEXT:
        raise InvalidPolicy(where, (f"is longer than {LONGEST_TEXT} characters; it cannot be a policy",))
    try:
        found = tomllib.loads(text)
    except ValueError as exc:  # TOMLDecodeError is one; numbers of thousands of digits give others.
        raise InvalidPolicy(where, (f"is not TOML: {exc}",)) from exc
    except RecursionError:
        raise InvalidPolicy(where, ("is not TOML that can be read: it is nested too deeply",)) from None
    reading = _Reading()
    people = reading.people(found)
    if reading.faults:
        raise InvalidPolicy(where, tuple(reading.faults))
    return people


class _Reading:
    """One reading: notes faults and goes on, so that all of them are told at once."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._hashes: dict[str, str] = {}

    def people(self, found: Mapping[str, object]) -> People:
        self._know(found, _TABLES, "")
        groups = {
            name: self._rights(fields, f"groups.{_shown(name)}")
            for name, fields in self._named(found, "groups").items()
        }
        everyone = self._rights(found.get("everyone", {}), "everyone")
        users = {
            name: self._user(name, fields, groups, everyone)
            for name, fields in self._named(found, "users").items()
        }
        channels = {
            name: self._addresses(value, f"channels.{_shown(name)}")
            for name, value in self._named(found, "channels").items()
        }
        return People(users=users, groups=tuple(groups), channels=channels)

    def _named(self, found: Mapping[str, object], table: str) -> dict[str, object]:
        """Give what stands in a table of names that can be used; what cannot is noted and left out."""
        inside = self._table(found.get(table, {}), table)
        usable = {}
        for name, value in inside.items():
            wrong = _wrong_name(name)
            if wrong:
                self._note(f"{table}.{_shown(name)}", wrong)
            else:
                usable[name] = value
        return usable

    def _user(
        self, name: str, value: object, groups: Mapping[str, tuple[Grant, ...]], everyone: tuple[Grant, ...]
    ) -> User:
        place = f"users.{_shown(name)}"
        fields = self._table(value, place)
        self._know(fields, _USER, place)
        kind = self._kind(fields, place, Kind.PERSON)
        own = tuple(dict.fromkeys(self._texts(fields.get("groups", []), f"{place}.groups")))
        for group in own:
            if group not in groups:
                hint = nearest(group, groups) or f"write [groups.{_shown(group)}]"
                self._note(f"{place}.groups", f"there is no group {_shown(group)}; {hint}")
        inherited = [grant for group in own for grant in groups.get(group, ())]
        granted = self._grants(fields.get("allow", []), f"{place}.allow")
        return User(
            id=name,
            name=self._label(fields, place),
            kind=kind,
            groups=own,
            grants=tuple(dict.fromkeys([*granted, *inherited, *everyone])),
            notify=self._addresses(fields.get("notify", []), f"{place}.notify"),
            tokens=self._tokens(fields.get("tokens", []), f"{place}.tokens", kind),
        )

    def _rights(self, value: object, place: str) -> tuple[Grant, ...]:
        fields = self._table(value, place)
        self._know(fields, _RIGHTS, place)
        return self._grants(fields.get("allow", []), f"{place}.allow")

    def _grants(self, value: object, place: str) -> tuple[Grant, ...]:
        grants = []
        for text in self._texts(value, place):
            grant = parse_grant(text)
            if isinstance(grant, Grant):
                grants.append(grant)
            else:
                self._note(place, f"{_shown(text)} {grant}")
        return tuple(grants)

    def _tokens(self, value: object, place: str, owner: Kind) -> tuple[Token, ...]:
        if not isinstance(value, list):
            self._note(place, "must be a list of hashes; `wfcelery policy token USER` makes one")
            return ()
        found = []
        for number, each in enumerate(value, 1):
            token = self._token(each, f"{place}, number {number}", owner)
            if token is not None:
                found.append(token)
        return tuple(found)

    def _token(self, value: object, place: str, owner: Kind) -> Token | None:
        fields = {"hash": value} if isinstance(value, str) else self._table(value, place)
        self._know(fields, _TOKEN, place)
        kind = self._kind(fields, place, owner)
        if kind is Kind.PERSON and owner is Kind.AGENT:
            self._note(place, "an agent cannot have the token of a person; leave kind out")
        name = self._label(fields, place)
        text = fields.get("hash")
        if not isinstance(text, str) or not is_hash(text):
            # Whatever stands here may be the token itself: it is not repeated.
            wanted = "sha256: and 64 digits from 0-9 and a-f"
            self._note(place, f"is not a hash ({wanted}); `wfcelery policy token USER` makes one")
            return None
        if text in self._hashes:
            self._note(place, f"is the same as {self._hashes[text]}; each token stands for one user")
        self._hashes.setdefault(text, place)
        return Token(text, kind, name)

    def _kind(self, fields: Mapping[str, object], place: str, otherwise: Kind) -> Kind:
        if "kind" not in fields:
            return otherwise
        word = fields["kind"]
        if isinstance(word, str) and word in _KINDS:
            return _KINDS[word]
        self._note(f"{place}.kind", "must be person or agent")
        return Kind.AGENT

    def _label(self, fields: Mapping[str, object], place: str) -> str:
        label = fields.get("name", "")
        if isinstance(label, str) and len(label) <= LONGEST_NAME and label.isprintable():
            return label
        self._note(
            f"{place}.name", f"must be text of at most {LONGEST_NAME} characters, without control characters"
        )
        return ""

    def _addresses(self, value: object, place: str) -> tuple[str, ...]:
        texts = self._texts([value] if isinstance(value, str) else value, place)
        for number, text in enumerate(texts, 1):
            if "://" not in text or any(char.isspace() or not char.isprintable() for char in text):
                # An address may hold a password: only its place is said.
                self._note(
                    f"{place}, number {number}", "must be an apprise URL, as in mailto://ann@example.org"
                )
        return tuple(texts)

    def _texts(self, value: object, place: str) -> list[str]:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        self._note(place, "must be a list of texts")
        return []

    def _table(self, value: object, place: str) -> Mapping[str, object]:
        if isinstance(value, dict):
            return value
        self._note(place, "must be a table")
        return {}

    def _know(self, fields: Iterable[str], known: tuple[str, ...], place: str) -> None:
        for name in fields:
            if name not in known:
                hint = nearest(name, known) or f"the known ones are {', '.join(known)}"
                self._note(f"{place}.{_shown(name)}".lstrip("."), f"is not known; {hint}")

    def _note(self, place: str, message: str) -> None:
        self.faults.append(f"{place}: {message}")


def _wrong_name(name: str) -> str:
    if not name or name != name.strip():
        return "a name must not be empty, nor begin or end with white space"
    if len(name) > LONGEST_NAME:
        return f"a name must have at most {LONGEST_NAME} characters"
    if not name.isprintable():
        return "a name must hold no control or invisible characters"
    if name.startswith(_NOT_A_NAME) or "://" in name:
        return "a name must not begin with group: or channel:, nor hold ://"
    return ""


def _shown(text: str) -> str:
    short = text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - as long as a line can bear
    return short if short.isprintable() and short else repr(short)
