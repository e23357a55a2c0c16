"""What a flow may call, as the validation of flows asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wfcelery.tools.registry import Registry
from wfcelery.tools.signature import check_arguments


class Catalogue:
    """The tools of a registry, seen by somebody who checks flows and calls nothing."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __contains__(self, name: object) -> bool:
        return name in self._registry

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, for suggestions."""
        return self._registry.names

    def events(self, name: str) -> tuple[str, ...]:
        """The outcomes that the tool declares."""
        return self._registry.get(name).events

    def requires_approval(self, name: str) -> bool:
        """Whether the tool may be called only right behind a gate."""
        return self._registry.get(name).requires_approval

    def permission(self, name: str) -> str | None:
        """Name the permission that calling the tool takes."""
        return self._registry.get(name).permission

    def check_arguments(
        self, name: str, args: Mapping[str, object], is_constant: Callable[[object], bool]
    ) -> list[tuple[str, str]]:
        """List what does not fit the tool's signature, each with its place in `args`."""
        return check_arguments(self._registry.get(name), args, is_constant)
