"""Whether the user of this command may do what it does. Without a policy or hook, everybody may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfcelery.errors import Forbidden

if TYPE_CHECKING:
    from wfcelery.rights import Resource
    from wfcelery.settings import Settings

READ: Final = "read"
START: Final = "start"


def is_governed(settings: Settings) -> bool:
    """Tell whether there is anybody to ask."""
    return settings.policy is not None or settings.authorize is not None


def require(settings: Settings, permission: str, resource: Resource | None = None) -> None:
    """Refuse, in words, what the user of the settings may not do; without a resource: to all there is."""
    if not is_governed(settings):
        return
    from wfcelery.core.messages import Principal
    from wfcelery.rights import Resource, confirmed, load_authority

    authority = load_authority(settings)
    wanted = resource or Resource()
    if authority.allows(confirmed(authority, Principal(settings.user)), permission, wanted):
        return
    what = f" to flow {wanted.flow}" if wanted.flow else ""
    reason = f"{settings.user} may not do this{what}: the permission `{permission}` is missing"
    raise Forbidden(reason)
