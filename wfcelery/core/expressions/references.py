"""What an expression reads, as far as its text tells.

A use is *optional* when the expression itself deals with its absence: to the left of `??`, inside `has()`,
or where a `has()` of the same path, of a shorter or of a longer one has been found true: `has(p) && p.x`,
`!has(p) || p.x`, `has(p) ? p.x : y`. This is a promise about paths written out, not about computed ones:
`p[i]` counts as a use of `p`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wfcelery.core.expressions import syntax
from wfcelery.core.expressions.syntax import Chain, Has, Index, Literal, Member, Name, Node

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Reference:
    """One use of a root and the path below it that is written out; `optional`: may be missing."""

    root: str
    path: tuple[str | int, ...] = ()
    optional: bool = False
    column: int = 1


_Path: TypeAlias = tuple[str | int, ...]
_Proven: TypeAlias = frozenset[_Path]


def references_of(root: Node) -> tuple[Reference, ...]:
    """List every use of the scope in `root`, from left to right."""
    return tuple(_walk(root, optional=False, proven=frozenset()))


def _walk(node: Node, *, optional: bool, proven: _Proven) -> Iterator[Reference]:
    match node:
        case Has(target):
            yield from _walk(target, optional=True, proven=proven)
        case syntax.Default(terms):
            for term in terms[:-1]:
                yield from _walk(term, optional=True, proven=proven)
            yield from _walk(terms[-1], optional=optional, proven=proven)
        case syntax.And(terms) | syntax.Or(terms):
            holds = isinstance(node, syntax.And)
            for term in terms:
                yield from _walk(term, optional=optional, proven=proven)
                proven |= _proofs(term, holds=holds)
        case syntax.Conditional(test, then, otherwise):
            yield from _walk(test, optional=optional, proven=proven)
            yield from _walk(then, optional=optional, proven=proven | _proofs(test, holds=True))
            yield from _walk(otherwise, optional=optional, proven=proven | _proofs(test, holds=False))
        case _:
            below, path = syntax.children(node), _path(node)
            if path is not None:
                excused = optional or any(_along(path, other) for other in proven)
                yield Reference(str(path[0]), path[1:], excused, node.column)
                below = below[1:]
            for child in below:
                yield from _walk(child, optional=optional, proven=proven)


def _proofs(node: Node, *, holds: bool) -> _Proven:
    """Collect the paths that are certainly there once `node` came out true (or false)."""
    match node:
        case Has(target) if holds:
            path = _path(target)
            return frozenset() if path is None else frozenset({path})
        case syntax.Not(operand):
            return _proofs(operand, holds=not holds)
        case syntax.And(terms) if holds:
            return frozenset().union(*(_proofs(term, holds=True) for term in terms))
        case syntax.Or(terms) if not holds:
            return frozenset().union(*(_proofs(term, holds=False) for term in terms))
        case _:
            return frozenset()


def _path(node: Node) -> _Path | None:
    """Give root and written-out path of a use, or None where `node` is not one."""
    match node:
        case Name(name):
            return (name,)
        case Chain(Name(name), links):
            path: list[str | int] = [name]
            for link in links:
                match link:
                    case Member(field):
                        path.append(field)
                    case Index(Literal(str() | int() as key)) if not isinstance(key, bool):
                        path.append(key)
                    case _:
                        break
            return tuple(path)
        case _:
            return None


def _along(path: _Path, other: _Path) -> bool:
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]
