"""The application's own say in who may do what: `module:name`, a function or an object with `authorize`.

Whatever goes wrong in it means no. It is never waited for longer than two seconds.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import threading
import time
import traceback
from collections.abc import Callable
from functools import reduce
from typing import Final

from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidSettings
from wfcelery.rights.bounded import Bounded, Failed, Overdue
from wfcelery.rights.permission import Permission, Resource

logger: Final = logging.getLogger("wfcelery.rights")

SETTING: Final = "authorize"
OPTIONAL: Final = ("principal", "by_token", "members", "addresses", "channel")
# The same complaint is written at most so often: a hook may be asked a thousand times a second.
COMPLAIN_EVERY_S: Final = 60.0

Method = Callable[..., object]


class Hook:
    """Answers by asking the application. `methods` are its functions by name; `authorize` must be there."""

    is_open = False

    def __init__(self, spec: str, methods: dict[str, Method], *, bounded: Bounded | None = None) -> None:
        self._spec = spec
        self._methods = methods
        self._bounded = bounded or Bounded()
        self._lock = threading.Lock()
        self._complained: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"Hook({self._spec!r})"

    def allows(self, who: Principal, permission: str, resource: Resource, /) -> bool:
        """Tell whether somebody may do something. Only `True` means yes, and only a person decides."""
        if permission == Permission.DECIDE and who.kind is not Kind.PERSON:
            return False
        answer = self._ask("authorize", who, str(permission), resource)
        if answer is not True and answer is not False and answer is not None:
            self._complain("authorize", f"gave {type(answer).__name__}, not True or False")
        return answer is True

    def principal(self, user: str, /) -> Principal | None:
        """Give what is known of a user."""
        return self._principal("principal", user)

    def by_token(self, token: str, /) -> Principal | None:
        """Give whom a token stands for."""
        return self._principal("by_token", token)

    def holds(self, who: Principal, token_hash: str, /) -> bool:  # noqa: ARG002 - the port
        """Say yes: only the application knows its tokens. To end a session, it forgets the user."""
        return True

    def members(self, group: str, /) -> tuple[str, ...]:
        """Name the people of a group."""
        return self._texts("members", group)

    def addresses(self, user: str, /) -> tuple[str, ...]:
        """Give the places where somebody wants to be told things."""
        return self._texts("addresses", user)

    def channel(self, name: str, /) -> tuple[str, ...]:
        """Give the places that a channel means."""
        return self._texts("channel", name)

    def _principal(self, method: str, word: str) -> Principal | None:
        answer = self._ask(method, word)
        if answer is None or isinstance(answer, Principal):
            return answer
        self._complain(method, f"gave {type(answer).__name__}, not a Principal or None")
        return None

    def _texts(self, method: str, word: str) -> tuple[str, ...]:
        answer = self._ask(method, word)
        if answer is None:
            return ()
        found = (answer,) if isinstance(answer, str) else answer
        if isinstance(found, list | tuple | set | frozenset) and all(isinstance(each, str) for each in found):
            return tuple(found)
        self._complain(method, "gave something that is not a list of texts")
        return ()

    def _ask(self, method: str, *args: object) -> object:
        function = self._methods.get(method)
        if function is None:
            return None
        try:
            return self._bounded.call(function, *args)
        except Overdue:
            self._complain(method, "gave no answer in time")
        except Failed as failed:
            self._complain(method, f"raised {_what(failed.error)}")
            # The whole story may tell secrets: only who asks for debugging gets it.
            logger.debug("%s of %s raised", method, self._spec, exc_info=failed.error)
        return None

    def _complain(self, method: str, what: str) -> None:
        now = time.monotonic()
        with self._lock:
            last = self._complained.get(method)
            if last is not None and now - last < COMPLAIN_EVERY_S:
                return
            self._complained[method] = now
        logger.warning("%s of %s %s; that counts as no", method, self._spec, what)


def load_hook(spec: str, *, bounded: Bounded | None = None) -> Hook:
    """Find `module:name`. Raises `InvalidSettings` if there is nothing that can be asked."""
    module_name, colon, name = spec.partition(":")
    if not module_name or not colon or not name:
        raise InvalidSettings(SETTING, f"must be module:name, as in shop.rights:authorize, not {spec}")
    try:
        module: object = importlib.import_module(module_name)
        target = reduce(getattr, name.split("."), module)
        # A class is given for what it makes.
        found: object = target() if isinstance(target, type) else target
    except (Exception, SystemExit) as error:
        raise InvalidSettings(SETTING, f"{spec} cannot be loaded: {type(error).__name__}: {error}") from error
    return Hook(spec, _methods(spec, found), bounded=bounded)


def _methods(spec: str, found: object) -> dict[str, Method]:
    authorize = getattr(found, "authorize", found)
    if not callable(authorize):
        reason = (
            f"{spec} is neither a function nor an object with a method authorize(user, permission, resource)"
        )
        raise InvalidSettings(SETTING, reason)
    methods: dict[str, Method] = {"authorize": authorize}
    # A function has attributes of its own, none of which were meant for us.
    for name in OPTIONAL if authorize is not found else ():
        method = getattr(found, name, None)
        if method is None:
            continue
        if not callable(method):
            raise InvalidSettings(SETTING, f"{name} of {spec} must be a method")
        methods[name] = method
    for name, method in methods.items():
        if inspect.iscoroutinefunction(method):
            raise InvalidSettings(SETTING, f"{name} of {spec} must be a plain function, not an async one")
    return methods


def _what(error: BaseException) -> str:
    """Say which kind of error it was and where, without its words: they may hold secrets."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
