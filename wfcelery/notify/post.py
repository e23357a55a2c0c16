"""Sending through apprise. An address may hold a password: nothing here says more of it than its scheme."""

from __future__ import annotations

import importlib.util
import logging
import re
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Final

from wfcelery.errors import WfceleryError

if TYPE_CHECKING:
    import apprise

    from wfcelery.notify.texts import Text

TIMEOUT_S: Final = 20.0
"""For one address."""

# These write addresses, and what is sent to them, into the log.
_TALKATIVE: Final = ("apprise", "urllib3", "requests", "slixmpp")
_STATUS: Final = re.compile(r"error=(\d{3})\b")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://")


class NoApprise(WfceleryError):
    """Apprise is not installed: nothing can be sent."""

    code = "no-apprise"

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return (
            "notices go through apprise, which is not installed; `pip install 'wfcelery[notify]'` does that"
        )


class NotSent(WfceleryError):
    """A service did not take a notice. With `final`, trying again would not help."""

    code = "not-sent"

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason, final)
        self.reason = reason
        self.final = final

    def __str__(self) -> str:
        return self.reason


class Post:
    """Sends texts to addresses, one at a time and in bounded time. Threads may share it."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._apprise = apprise = _loaded()
        self._timeout_s = timeout_s
        self._asset = apprise.AppriseAsset(
            storage_mode="memory",
            service_timeout=timeout_s,
            allow_templates=False,
            app_id="wfcelery",
            app_desc="wfcelery",
            # A link is for whom it was sent to, and not for where they point.
            http_redirects=False,
            interpret_emojis=False,
            interpret_escapes=False,
        )

    def send(self, address: str, text: Text) -> None:
        """Send a text. Raises `NotSent` unless the service has taken it."""
        service = self._apprise.Apprise(asset=self._asset)
        try:
            known = service.add(address)
        except Exception as error:  # noqa: BLE001 - one of a hundred services, each with code of its own
            raise NotSent(f"{scheme_of(address)}: {type(error).__name__}", final=True) from None
        if not known:
            reason = "apprise does not know such an address, or it is incomplete"
            raise NotSent(f"{scheme_of(address)}: {reason}", final=True)
        try:
            told = service.notify(
                title=text.title,
                body=text.body,
                body_format=self._apprise.NotifyFormat.TEXT,
                timeout=self._timeout_s,
            )
        except Exception as error:  # noqa: BLE001 - same
            raise NotSent(f"{scheme_of(address)}: {type(error).__name__}") from None
        if not told:
            raise NotSent(f"{scheme_of(address)}: {_reason(told)}")


def is_installed() -> bool:
    """Tell whether anything can be sent here."""
    return importlib.util.find_spec("apprise") is not None


def scheme_of(address: str) -> str:
    """Say of an address what may be said."""
    found = _SCHEME.match(address)
    return "an address" if found is None else found[0]


def _reason(told: apprise.AppriseResult) -> str:
    """Say what went wrong in words of our own: those of the service may repeat the address."""
    statuses = {found[1] for entry in told.logs() if (found := _STATUS.search(str(entry))) is not None}
    if statuses:
        return f"the service answered {', '.join(sorted(statuses))}"
    if told.timeout_count:
        return "the service did not answer in time"
    return "the service was not reached, or did not take it"


def _loaded() -> ModuleType:
    """Load apprise and all its services now: they are many, and some complain of old Python modules."""
    _silence()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import apprise  # noqa: PLC0415 - an extra, and slow to load
        except ModuleNotFoundError:
            raise NoApprise from None
        apprise.Apprise().add("json://localhost")
    return apprise


def _silence() -> None:
    """Let these keep to themselves what they say; apprise's warnings tell us why something was not sent."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [logging.NullHandler()]
