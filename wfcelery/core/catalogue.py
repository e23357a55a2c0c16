"""What a validator must know of the world beyond the flow: which tools and which flows there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class ToolCatalogue(Protocol):
    """The tools that steps may call."""

    @property
    def names(self) -> Iterable[str]:
        """Every name."""

    def __contains__(self, name: object, /) -> bool: ...

    def events(self, name: str, /) -> tuple[str, ...]:
        """Name the outcomes that a tool declares."""

    def requires_approval(self, name: str, /) -> bool:
        """Tell whether a tool may be called only right behind a gate."""

    def permission(self, name: str, /) -> str | None:
        """Name the permission that calling a tool takes; None if everybody may."""

    def check_arguments(
        self, name: str, args: Mapping[str, object], is_constant: Callable[[object], bool], /
    ) -> list[tuple[str, str]]:
        """List every misfit as (path inside the arguments, what is wrong)."""


class FlowCatalogue(Protocol):
    """The flows that steps may run."""

    def find(self, name: str, version: int | None, /) -> tuple[str, int] | None:
        """Give the definition's id, and how many levels of flows it is: 1 without sub-flows."""
