"""`wfcelery policy`: check a policy file, make tokens for it, and ask it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from wfcelery.cli.options import Command, debug_option, output_option, settings_of

if TYPE_CHECKING:
    from wfcelery.core.values import Json
    from wfcelery.rights.people import People, User

SAMPLE: Final = """\
# Who may do what. Name this file in WFCELERY_POLICY, or as `policy` in wfcelery.toml.
# It is read again when it changes. Who is not in it may do nothing.
#
# Permissions: read, start, define, decide, signal, cancel, retry; admin covers them all.
# `start:order*` is for the flows whose names match. Other names are permissions that tools ask for.

[users.ann]
name = "Ann Example"
groups = ["finance"]
allow = ["start:order*", "payments.refund"]
# Where Ann is told of what waits for her (apprise URLs).
notify = ["mailto://ann@example.org"]
# Hashes of tokens; `wfcelery policy token ann` makes one and prints the line for it.
tokens = []

# An agent (a program that acts by itself) never decides, whatever it is allowed.
[users.assistant]
kind = "agent"
allow = ["start:report*"]

[groups.finance]
allow = ["decide"]

# What every user of this file may do.
[everyone]
allow = ["read"]

# Named by flows, and by WFCELERY_NOTIFY, as channel:ops.
[channels]
ops = ["json://localhost:8099/ops"]
"""


class Policies(Command, click.Group):
    """A command of commands, whose help ends with examples."""


@click.group(
    cls=Policies,
    examples=(
        "wfcelery policy init > people.toml",
        "wfcelery policy check people.toml",
        "wfcelery policy token ann --name laptop",
        "wfcelery policy who ann",
    ),
)
@debug_option
def policy() -> None:
    """Say who may do what, and make tokens.

    For the policy file that WFCELERY_POLICY or `policy` in wfcelery.toml names. No command writes it.
    """


@policy.command(cls=Command, examples=("wfcelery policy check", "wfcelery policy check people.toml -o json"))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@output_option("text", "json")
@debug_option
def check(*, file: Path | None, output: str) -> None:
    """Check a policy file and list every fault.

    Exit code 2 if it cannot be used. Permissions that are not ours are named: they are taken for those of
    tools, and may be misspelt.
    """
    from wfcelery.cli.output import print_json

    path = _path(file)
    people = _people(path)
    warnings = [*_of_mode(path), *_of_words(people)]
    counts = {
        "users": len(people.users),
        "groups": len(people.groups),
        "tokens": sum(len(user.tokens) for user in people.users.values()),
        "channels": len(people.channels),
    }
    if output == "json":
        print_json({"file": str(path), **counts, "warnings": list(warnings)})
        return
    for line in warnings:
        click.echo(f"note: {line}", err=True)
    click.echo(f"{path} is good: " + ", ".join(_counted(count, word) for word, count in counts.items()))


@policy.command(
    cls=Command, examples=("wfcelery policy token ann --name laptop", "wfcelery policy token ann --agent")
)
@click.argument("user")
@click.option(
    "--agent", is_flag=True, help="For an agent that acts for USER: it may do the same, but not decide."
)
@click.option("--name", default="", metavar="NAME", help="What the token is for, to tell it from others.")
@output_option("text", "json")
@debug_option
def token(*, user: str, agent: bool, name: str, output: str) -> None:
    """Make a new token for USER and print it, once.

    The line for the policy file goes to stderr. It holds a hash: the token cannot be read back from it.
    """
    from wfcelery.cli.output import print_json
    from wfcelery.rights.token import hash_of, new_token

    if not name.isprintable() or '"' in name or "\\" in name:
        raise click.UsageError("--name must hold no quotation marks, backslashes or control characters")
    made = new_token()
    fields = {
        "hash": hash_of(made),
        **({"kind": "agent"} if agent else {}),
        **({"name": name} if name else {}),
    }
    line = f'"{fields["hash"]}"'
    if len(fields) > 1:
        line = "{" + ", ".join(f'{key} = "{value}"' for key, value in fields.items()) + "}"
    if output == "json":
        print_json({"user": user, "token": made, "line": line})
        return
    click.echo(made)
    click.echo(f"Add to `tokens` of [users.{_key(user)}] in the policy file:\n  {line}", err=True)


@policy.command(cls=Command, examples=("wfcelery policy who ann", "wfcelery policy who ann -o json"))
@click.argument("user")
@click.option("--file", type=click.Path(path_type=Path), metavar="FILE", help="The policy file to ask.")
@output_option("text", "json")
@debug_option
def who(*, user: str, file: Path | None, output: str) -> None:
    """Say what USER may do: by itself, by its groups, and as everyone."""
    from wfcelery.cli.output import plain, print_json
    from wfcelery.core.faults import nearest
    from wfcelery.errors import NotFound

    path = _path(file)
    people = _people(path)
    found = people.users.get(user)
    if found is None:
        hint = nearest(user, people.users)
        raise NotFound(
            "user", user, f"{path} does not name it, so it may do nothing" + (f"; {hint}" if hint else "")
        )
    if output == "json":
        print_json(_as_json(found))
        return
    click.echo(f"{found.id}" + (f" ({plain(found.name)})" if found.name else "") + f", {found.kind.value}")
    click.echo(f"  groups  {', '.join(found.groups) or 'none'}")
    click.echo(f"  may     {', '.join(_may(found)) or 'nothing'}")
    click.echo(f"  tokens  {', '.join(_of_tokens(found)) or 'none'}")
    click.echo(f"  told    {_counted(len(found.notify), 'addresses')}")


@policy.command(cls=Command, examples=("wfcelery policy init", "wfcelery policy init > people.toml"))
@debug_option
def init() -> None:
    """Print a policy file to begin with, with comments."""
    click.echo(SAMPLE, nl=False)


def _path(given: Path | None) -> Path:
    from wfcelery.errors import InvalidSettings

    if given is not None:
        return given
    named = settings_of().policy
    if named is None:
        raise InvalidSettings("policy", "is not set; name a FILE, or set WFCELERY_POLICY")
    return Path(named)


def _people(path: Path) -> People:
    from wfcelery.rights.policy import read_policy

    return read_policy(path)


def _of_mode(path: Path) -> Iterable[str]:
    """Tell of a file that anybody on this machine may change."""
    import stat

    if path.stat().st_mode & stat.S_IWOTH:
        yield f"everybody on this machine can write to {path}; `chmod o-w {path}`"


def _of_words(people: People) -> Iterable[str]:
    """Tell of permissions that are not ours: they are those of tools, or misspelt."""
    from wfcelery.core.faults import nearest
    from wfcelery.rights import Permission

    seen = {
        grant.permission: user.id
        for user in people.users.values()
        for grant in reversed(user.grants)
        if not grant.is_ours
    }
    for name, user in seen.items():
        hint = nearest(name, list(Permission))
        yield f"{name} (of {user}) is taken for a permission of a tool" + (f"; {hint}" if hint else "")


def _may(user: User) -> list[str]:
    from wfcelery.core.messages import Kind

    words = [str(grant) for grant in user.grants]
    if user.kind is Kind.AGENT:
        return [
            f"{word} (but not decide)" if word.startswith("admin") else word
            for word in words
            if not _decides(word)
        ]
    return words


def _decides(word: str) -> bool:
    return word.partition(":")[0] == "decide"


def _of_tokens(user: User) -> list[str]:
    return [f"{each.name or 'unnamed'} ({each.kind.value})" for each in user.tokens]


def _as_json(user: User) -> dict[str, Json]:
    tokens: list[Any] = [{"name": each.name, "kind": each.kind.value} for each in user.tokens]
    return {
        "user": user.id,
        "name": user.name,
        "kind": user.kind.value,
        "groups": list(user.groups),
        "may": list(_may(user)),
        "tokens": tokens,
        "addresses": len(user.notify),
    }


def _counted(count: int, plural: str) -> str:
    return f"{count} {plural if count != 1 else plural.removesuffix('es' if plural == 'addresses' else 's')}"


def _key(user: str) -> str:
    """Write a user's id as TOML wants it in the head of a table."""
    import json
    import re

    return user if re.fullmatch(r"[A-Za-z0-9_-]+", user) else json.dumps(user)
