"""The tools that a process knows, by name. Nothing gets in by being imported somewhere."""

from __future__ import annotations

import abc
import importlib
from typing import TYPE_CHECKING

from wfcelery.core.faults import nearest
from wfcelery.errors import InvalidInput, InvalidSettings, NotFound
from wfcelery.tools import builtin
from wfcelery.tools.declare import AnyTool, Tool, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType


class ToolSource(abc.ABC):
    """Something in a module of tools that stands for several of them."""

    @abc.abstractmethod
    def tools(self) -> Iterable[AnyTool]:
        """Give the tools."""


class Registry:
    """A map from tool name to tool, filled explicitly."""

    def __init__(self, tools: Iterable[AnyTool | Callable[..., object]] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for each in tools:
            self.add(each)

    @classmethod
    def with_builtins(cls) -> Registry:
        """Make a registry that holds `echo`, `sleep` and `fail`."""
        return cls((builtin.echo, builtin.sleep, builtin.fail))

    @classmethod
    def load(cls, modules: Iterable[str]) -> Registry:
        """Make a registry of the built-ins and the tools of `modules` (WFCELERY_TOOLS).

        Every module that cannot be used is named, with its reason, in one `InvalidSettings`.
        """
        registry = cls.with_builtins()
        reasons = []
        for name in modules:
            try:
                registry.add_module(importlib.import_module(name))
            except (InvalidInput, InvalidSettings) as error:
                reasons.append(f"module `{name}`: {error}")
            except (Exception, SystemExit) as error:  # noqa: BLE001 - importing runs user code
                reasons.append(f"module `{name}` cannot be imported: {type(error).__name__}: {error}")
        if reasons:
            raise InvalidSettings("WFCELERY_TOOLS", "; ".join(reasons))
        return registry

    def add(self, function: AnyTool | Callable[..., object], *, replace: bool = False) -> AnyTool:
        """Add a tool, or a plain function under its own name. The same tool twice is one tool.

        Another tool of the same name is refused, unless it is to `replace` the first (for stubs in tests).
        """
        added: AnyTool = function if isinstance(function, Tool) else tool(function)
        known = self._tools.get(added.name)
        if known is not None and known.function is not added.function and not replace:
            both = f"is defined twice, by {known.place} and by {added.place}"
            raise InvalidInput(f"tool {added.name!r}", f"{both}; rename one with @tool(name=...)")
        self._tools[added.name] = added
        return added

    def add_module(self, module: ModuleType) -> None:
        """Add every tool in the namespace of `module`; a module without any is refused."""
        found: list[AnyTool] = []
        for value in vars(module).values():
            if isinstance(value, Tool):
                found.append(value)
            elif isinstance(value, ToolSource):
                found += value.tools()
        if not found:
            raise InvalidInput(module.__name__, "holds no tools; mark functions with @tool")
        for each in found:
            self.add(each)

    def get(self, name: str) -> AnyTool:
        """Return the tool of this name, or raise `NotFound` with the nearest one."""
        try:
            return self._tools[name]
        except KeyError:
            raise NotFound("tool", name, nearest(name, self._tools)) from None

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._tools))

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[AnyTool]:
        return iter([self._tools[name] for name in self.names])

    def __len__(self) -> int:
        return len(self._tools)
