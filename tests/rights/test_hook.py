"""The application's hook: only True means yes, and nothing it does hurts us."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidSettings
from wfcelery.rights import Authority, Everybody, Permission, Resource, load_authority
from wfcelery.rights.bounded import Bounded
from wfcelery.rights.hook import Hook, load_hook
from wfcelery.rights.policy import PolicyFile
from wfcelery.settings import Settings

ANN = Principal("ann")
MODULE = """
from wfcelery.core.messages import Kind, Principal

asked = []
answer = True


def authorize(user, permission, resource):
    asked.append((user, permission, resource))
    return answer


async def later(user, permission, resource):
    return True


class Shop:
    def authorize(self, user, permission, resource):
        return user.id == "ann" and permission == "read"

    def principal(self, user):
        return Principal(user, Kind.AGENT, ("shop",)) if user == "bot" else None

    def by_token(self, token):
        return Principal("ann") if token == "open sesame" else None

    def members(self, group):
        return ["ann", "bob"]

    def addresses(self, user):
        return "json://" + user

    def channel(self, name):
        return 3


class Broken:
    def __init__(self):
        raise ValueError("no shop today")

    def authorize(self, *args): ...


shop = Shop()
nothing = object()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "shop_rights.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "shop_rights"
    sys.modules.pop("shop_rights", None)


def refusal(spec: str) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load_hook(spec)
    return str(caught.value)


def test_a_function_is_asked_with_user_permission_and_resource(module: str) -> None:
    hook = load_hook(f"{module}:authorize")
    resource = Resource("order", "r1", "bob")
    assert hook.allows(ANN, Permission.READ, resource)
    assert sys.modules[module].asked == [(ANN, "read", resource)]
    assert type(sys.modules[module].asked[0][1]) is str
    assert (hook.is_open, hook.principal("ann"), hook.by_token("x"), hook.members("g")) == (
        False,
        None,
        None,
        (),
    )


@pytest.mark.parametrize("answer", [False, None, 1, "yes", [True], object()])
def test_anything_but_true_means_no(module: str, answer: object) -> None:
    hook = load_hook(f"{module}:authorize")
    vars(sys.modules[module])["answer"] = answer
    assert not hook.allows(ANN, "read", Resource())


@pytest.mark.parametrize("name", ["shop", "Shop"])
def test_an_object_or_its_class_may_answer_more(module: str, name: str) -> None:
    hook = load_hook(f"{module}:{name}")
    assert hook.allows(ANN, "read", Resource())
    assert not hook.allows(Principal("bob"), "read", Resource())
    assert hook.principal("bot") == Principal("bot", Kind.AGENT, ("shop",))
    assert hook.principal("ann") is None
    assert hook.by_token("open sesame") == ANN
    assert hook.members("any") == ("ann", "bob")
    assert hook.addresses("ann") == ("json://ann",)
    assert hook.channel("ops") == ()


def test_no_agent_decides_and_the_hook_is_not_even_asked(module: str) -> None:
    hook = load_hook(f"{module}:authorize")
    assert not hook.allows(Principal("ann", Kind.AGENT), "decide", Resource())
    assert sys.modules[module].asked == []
    assert hook.allows(ANN, "decide", Resource())


@pytest.mark.parametrize("error", [ValueError("hush"), SystemExit(1), KeyboardInterrupt()])
def test_an_exception_means_no_and_is_logged_without_its_words(
    caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def authorize(*_: object) -> bool:
        raise error

    hook = Hook("shop:authorize", {"authorize": authorize})
    with caplog.at_level(logging.INFO):
        assert [hook.allows(ANN, "read", Resource()) for _ in range(50)] == [False] * 50
    assert len(caplog.records) == 1
    said = caplog.records[0].getMessage()
    assert said.startswith(f"authorize of shop:authorize raised {type(error).__name__} at {__file__}:")
    assert said.endswith("; that counts as no")
    assert (caplog.records[0].exc_info, "hush" in caplog.text) == (None, False)


def test_what_is_neither_a_principal_nor_a_list_of_texts_is_nothing(caplog: pytest.LogCaptureFixture) -> None:
    hook = Hook(
        "shop:x", {"principal": lambda _: "ann", "by_token": lambda _: 1, "members": lambda _: ["a", 1]}
    )
    assert (hook.principal("a"), hook.by_token("t"), hook.members("g")) == (None, None, ())
    assert len(caplog.records) == 3


def test_a_hook_that_hangs_means_no_within_its_time_and_holds_up_nobody_for_long() -> None:
    end = threading.Event()
    hook = Hook("shop:x", {"authorize": lambda *_: end.wait()}, bounded=Bounded(threads=4, seconds=0.1))
    began = time.monotonic()
    assert [hook.allows(ANN, "read", Resource()) for _ in range(500)] == [False] * 500
    assert time.monotonic() - began < 10
    end.set()


def test_by_default_a_hook_has_two_seconds() -> None:
    end = threading.Event()
    hook = Hook("shop:x", {"authorize": lambda *_: end.wait()})
    began = time.monotonic()
    assert not hook.allows(ANN, "read", Resource())
    assert 2 <= time.monotonic() - began < 10
    end.set()


def test_what_cannot_be_a_hook_is_told_when_it_is_loaded(module: str) -> None:
    form = "setting authorize: must be module:name, as in shop.rights:authorize, not"
    assert [refusal(spec) for spec in ("shop", "shop:", ":x")] == [
        f"{form} shop",
        f"{form} shop:",
        f"{form} :x",
    ]
    assert refusal("no_such_module_here:x") == (
        "setting authorize: no_such_module_here:x cannot be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module_here'"
    )
    assert refusal(f"{module}:nobody").startswith(
        "setting authorize: shop_rights:nobody cannot be loaded: AttributeError"
    )
    assert refusal(f"{module}:Broken") == (
        "setting authorize: shop_rights:Broken cannot be loaded: ValueError: no shop today"
    )
    assert refusal(f"{module}:nothing") == (
        "setting authorize: shop_rights:nothing is neither a function nor an object with a method "
        "authorize(user, permission, resource)"
    )
    assert refusal(f"{module}:later") == (
        "setting authorize: authorize of shop_rights:later must be a plain function, not an async one"
    )


def test_a_hook_is_found_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rights_here.py").write_text("def may(user, permission, resource):\n    return True\n")
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.chdir(tmp_path)
    authority = load_authority(Settings(authorize="rights_here:may"))
    sys.modules.pop("rights_here")
    assert authority.allows(ANN, "read", Resource())


def test_the_settings_name_the_authority(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text('[users.ann]\nallow = ["read"]\n')
    found: list[Authority] = [
        load_authority(Settings()),
        load_authority(Settings(policy="people.toml")),
        load_authority(Settings(authorize=f"{module}:shop")),
    ]
    assert [type(each) for each in found] == [Everybody, PolicyFile, Hook]
    assert [each.is_open for each in found] == [True, False, False]
    assert [each.allows(ANN, "read", Resource()) for each in found] == [True, True, True]
    assert [each.allows(Principal("eve"), "read", Resource()) for each in found] == [True, False, False]
