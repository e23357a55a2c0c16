"""The text of a policy: what it says, and how its faults are told."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidPolicy, InvalidSettings
from wfcelery.rights.permission import Permission, Resource
from wfcelery.rights.policy_text import parse_policy
from wfcelery.rights.token import hash_of, is_hash, new_token

ANN, BOT, CI = "wfc_ann", "wfc_bot", "wfc_ci"
TEXT = f"""
[users.ann]
name = "Ann Example"
groups = ["finance"]
allow = ["start:order*", "payments.refund"]
notify = ["mailto://ann:hush@example.org"]
tokens = ["{hash_of(ANN)}", {{hash = "{hash_of(CI)}", kind = "agent", name = "ci"}}]

[users.bob]
groups = ["finance"]

[users.root]
allow = ["admin"]

[users.bot]
kind = "agent"
groups = ["finance"]
allow = ["admin"]
tokens = ["{hash_of(BOT)}"]

[groups.finance]
allow = ["decide"]

[everyone]
allow = ["read"]

[channels]
ops = ["slack://hush", "json://hush"]
audit = "json://hush"
"""
PEOPLE = parse_policy(TEXT, "people.toml")
ORDER = Resource(flow="order_eu")


def may(user: str, permission: str, resource: Resource = ORDER, kind: Kind = Kind.PERSON) -> bool:
    return PEOPLE.allows(Principal(user, kind), permission, resource)


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(text, "people.toml")
    return caught.value.faults


def test_rights_come_from_the_user_the_groups_and_everyone() -> None:
    assert may("ann", "start")
    assert not may("ann", "start", Resource(flow="payroll"))
    assert may("ann", "payments.refund")
    assert (may("ann", "decide"), may("bob", "decide"), may("bob", "read")) == (True, True, True)
    assert not may("bob", "start")


def test_who_is_not_in_the_file_may_do_nothing_whatever_groups_he_claims() -> None:
    stranger = Principal("eve", Kind.PERSON, ("finance",))
    assert not any(PEOPLE.allows(stranger, each, ORDER) for each in (*Permission, "payments.refund"))
    assert not PEOPLE.allows(Principal("bob", Kind.PERSON, ("admin",)), "admin", ORDER)


def test_admin_covers_everything() -> None:
    assert all(may("root", each) for each in (*Permission, "payments.refund", "anything"))


def test_an_agent_never_decides_whatever_the_file_says() -> None:
    assert not may("bot", "decide")
    assert not may("bot", "decide", kind=Kind.AGENT)
    assert may("bot", "admin")
    assert not may("root", "decide", kind=Kind.AGENT)
    assert not may("ann", "decide", kind=Kind.SYSTEM)
    assert may("ann", "start", kind=Kind.AGENT)


def test_a_token_gives_its_user_and_one_for_an_agent_makes_an_agent() -> None:
    assert PEOPLE.by_token(ANN) == Principal("ann", Kind.PERSON, ("finance",))
    assert PEOPLE.by_token(CI) == Principal("ann", Kind.AGENT, ("finance",))
    assert PEOPLE.by_token(BOT) == Principal("bot", Kind.AGENT, ("finance",))


@pytest.mark.parametrize(
    "token", ["", "wfc_eve", hash_of(ANN), ANN + " ", ANN.upper(), "x" * 10_000, "\ud800"]
)
def test_what_is_no_token_gives_nobody(token: str) -> None:
    assert PEOPLE.by_token(token) is None


def test_a_new_token_is_long_and_never_the_same_and_its_hash_is_one() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert all(len(each) >= 43 and is_hash(hash_of(each)) for each in made)


def test_groups_addresses_and_channels_are_known() -> None:
    assert PEOPLE.members("finance") == ("ann", "bob")
    assert PEOPLE.members("nobody") == ()
    assert PEOPLE.principal("bot") == Principal("bot", Kind.AGENT, ("finance",))
    assert PEOPLE.principal("eve") is None
    assert PEOPLE.addresses("ann") == ("mailto://ann:hush@example.org",)
    assert PEOPLE.addresses("eve") == ()
    assert PEOPLE.channel("ops") == ("slack://hush", "json://hush")
    assert PEOPLE.channel("audit") == ("json://hush",)
    assert PEOPLE.channel("other") == ()


def test_neither_addresses_nor_hashes_are_shown() -> None:
    shown = repr(PEOPLE) + repr(PEOPLE.users["ann"]) + repr(PEOPLE.users["ann"].tokens)
    assert "hush" not in shown
    assert "sha256" not in shown


def test_an_empty_policy_is_one_and_allows_nobody_anything() -> None:
    assert not parse_policy("", "x").allows(Principal("ann"), "read", ORDER)


def test_every_fault_is_told_at_once_with_its_place() -> None:
    twice = hash_of("wfc_x")
    text = f"""
    [user]
    [users.ann]
    alow = ["read"]
    kind = "robot"
    name = 3
    groups = ["fin"]
    allow = ["re ad"]
    notify = ["hush"]
    tokens = ["{twice}", "{twice}", "wfc_hush", {{hash = "{twice}", knd = "agent"}}]
    [users.bot]
    kind = "agent"
    tokens = [{{hash = "{hash_of("y")}", kind = "person"}}]
    [groups.fin2]
    permit = ["read"]
    [everyone]
    allow = "read"
    [channels]
    ops = 3
    """
    same = "is the same as users.ann.tokens, number 1; each token stands for one user"
    no_hash = "is not a hash (sha256: and 64 digits from 0-9 and a-f); `wfcelery policy token USER` makes one"
    assert faults(text) == (
        "user: is not known; did you mean `users`?",
        "groups.fin2.permit: is not known; the known ones are allow",
        "everyone.allow: must be a list of texts",
        "users.ann.alow: is not known; did you mean `allow`?",
        "users.ann.kind: must be person or agent",
        "users.ann.groups: there is no group fin; did you mean `fin2`?",
        "users.ann.allow: re ad must hold no white space and no control characters",
        "users.ann.name: must be text of at most 200 characters, without control characters",
        "users.ann.notify, number 1: must be an apprise URL, as in mailto://ann@example.org",
        f"users.ann.tokens, number 2: {same}",
        f"users.ann.tokens, number 3: {no_hash}",
        "users.ann.tokens, number 4.knd: is not known; did you mean `kind`?",
        f"users.ann.tokens, number 4: {same}",
        "users.bot.tokens, number 1: an agent cannot have the token of a person; leave kind out",
        "channels.ops: must be a list of texts",
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "users.'': a name must not be empty, nor begin or end with white space"),
        (" ann", "users. ann: a name must not be empty, nor begin or end with white space"),
        ("a" * 201, f"users.{'a' * 57}...: a name must have at most 200 characters"),
        ("a\\u0007b", "users.'a\\x07b': a name must hold no control or invisible characters"),
        ("a\\u202eb", "users.'a\\u202eb': a name must hold no control or invisible characters"),
        ("group:x", "users.group:x: a name must not begin with group: or channel:, nor hold ://"),
        ("channel:x", "users.channel:x: a name must not begin with group: or channel:, nor hold ://"),
        ("json://x", "users.json://x: a name must not begin with group: or channel:, nor hold ://"),
    ],
)
def test_a_user_with_a_name_that_would_mislead_is_refused(name: str, said: str) -> None:
    assert faults(f'[users."{name}"]\n') == (said,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users = 3", "users: must be a table"),
        ("[users]\nann = []", "users.ann: must be a table"),
        ("groups = []", "groups: must be a table"),
        ("everyone = true", "everyone: must be a table"),
        (
            '[users.ann]\ntokens = "x"',
            "users.ann.tokens: must be a list of hashes; `wfcelery policy token USER` makes one",
        ),
        ("[users.ann]\ntokens = [3]", "users.ann.tokens, number 1: must be a table"),
        ("[users.ann]\nallow = [1]", "users.ann.allow: must be a list of texts"),
        ("x = ]", "is not TOML: Invalid value (at line 1, column 5)"),
        ("a = 1\na = 2", "is not TOML: Cannot overwrite a value (at end of document)"),
        ("x = " + "[" * 100_000, "is not TOML that can be read: it is nested too deeply"),
        ("#" * (1024 * 1024 + 1), "is longer than 1048576 characters; it cannot be a policy"),
    ],
    ids=range(11),
)
def test_a_file_of_another_shape_is_refused(text: str, said: str) -> None:
    assert faults(text)[0] == said


def test_a_number_of_thousands_of_digits_is_a_fault_like_others() -> None:
    assert faults("x = " + "9" * 5_000)[0].startswith("is not TOML: ")


def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    user = '[users.ann]\nnotify = ["hush-1"]\ntokens = ["hush-2", {hash = "hush-3"}]\n'
    text = f'{user}[channels]\nops = "hush-4"\n'
    assert "hush" not in "\n".join(faults(text))


def test_the_error_is_one_of_settings_says_everything_and_survives_pickling() -> None:
    error = InvalidPolicy("p.toml", ("a: is wrong", "b: too"))
    assert isinstance(error, InvalidSettings)
    assert str(error) == "policy p.toml has 2 faults:\n  a: is wrong\n  b: too"
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), again.path, again.faults, str(again)) == (
        InvalidPolicy,
        "p.toml",
        error.faults,
        str(error),
    )
    assert str(InvalidPolicy("p.toml", ("a: is wrong",))) == "policy p.toml: a: is wrong"


def told(text: str) -> tuple[str, ...]:
    try:
        parse_policy(text, "x")
    except InvalidPolicy as error:
        return error.faults or ("no fault is told",)
    return ()


@given(st.text(max_size=200))
def test_any_text_is_a_policy_or_one_typed_error(text: str) -> None:
    assert "no fault is told" not in told(text)


@given(
    st.sampled_from(["name", "kind", "groups", "allow", "notify", "tokens", "zzz"]),
    st.sampled_from(
        ['""', "1", "true", "[1]", "[[]]", "{}", '["a"]', "1979-05-27", "[{}]", "nan", '{a="b"}']
    ),
    st.sampled_from(["users.ann", "groups.g", "everyone", "channels"]),
)
def test_any_value_at_any_place_is_taken_or_told(field: str, value: str, table: str) -> None:
    assert all(fault.startswith(table) for fault in told(f"[{table}]\n{field} = {value}\n"))
