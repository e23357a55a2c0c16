"""Who calls: somebody that a token stands for; where nobody signs in, an agent of this machine's user."""

from __future__ import annotations

from wfcelery.core.messages import Kind, Principal
from wfcelery.errors import InvalidSettings, WfceleryError
from wfcelery.rights import Authority
from wfcelery.settings import Settings


class TokenGone(WfceleryError):
    """The token stands for nobody, or not any more."""

    code = "not-signed-in"

    def __str__(self) -> str:
        return "the token stands for nobody any more; ask for another (`wfcelery policy token` makes one)"


class Caller:
    """Says who calls, each time anew: a token that is taken out of the policy is good for nothing more."""

    def __init__(self, settings: Settings, authority: Authority) -> None:
        """Raise `InvalidSettings` if nobody can be named."""
        self._settings = settings
        self._authority = authority
        if settings.token is None and not authority.is_open:
            how = "`wfcelery policy token USER --agent` makes one"
            raise InvalidSettings("token", f"is not set; give it as WFCELERY_TOKEN ({how})")
        if settings.token is not None and authority.is_open:
            raise InvalidSettings(
                "token", "is set, and there is no policy that knows it; set WFCELERY_POLICY"
            )
        if settings.token is not None and authority.by_token(settings.token) is None:
            raise InvalidSettings(
                "token", "stands for nobody in the policy; `wfcelery policy token` makes one"
            )

    def principal(self) -> Principal:
        """Give who calls. Raises `TokenGone`."""
        if self._settings.token is None:
            return Principal(self._settings.user, Kind.AGENT)
        found = self._authority.by_token(self._settings.token)
        if found is None:
            raise TokenGone
        return found
