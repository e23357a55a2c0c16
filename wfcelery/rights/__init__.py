"""Rights: who may do what. One question, `Authority.allows`, asked by every surface and by the executor."""

from wfcelery.rights.authority import Authority, Everybody, confirmed
from wfcelery.rights.loading import load_authority
from wfcelery.rights.permission import SOMETHING, Permission, Resource

__all__ = ["SOMETHING", "Authority", "Everybody", "Permission", "Resource", "confirmed", "load_authority"]
