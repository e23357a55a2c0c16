"""Templates: JSON values whose texts may hold `{{ expression }}`.

A text that is exactly one placeholder keeps the type of its value; inside a longer text the value becomes
text. One pass: what a value holds is never read as a template again. Keys of maps are not templates. The
lexer finds the closing `}}`, so `{{ "{{" }}` writes a literal `{{`; `{% %}` and a lone `}}` are plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from wfcelery.core.expressions import functions, lexer, parser
from wfcelery.core.expressions.evaluate import Evaluation, Scope
from wfcelery.core.expressions.operations import Unfit
from wfcelery.core.expressions.references import Reference, references_of
from wfcelery.core.expressions.secrets import SecretRef, Secrets, pointer_to
from wfcelery.core.values import MAX_DEPTH, Json
from wfcelery.errors import ExpressionError

if TYPE_CHECKING:
    from wfcelery.core.expressions.syntax import Node

MAX_OUTPUT: Final = 2**20


class TemplateError(ExpressionError):
    """A text of a template does not parse or has no value; `path` says which, like `args.query`."""

    def __init__(self, source: str, column: int, reason: str, path: str) -> None:
        super().__init__(source, column, reason)
        self.args = (source, column, reason, path)
        self.path = path

    def __str__(self) -> str:
        words = super().__str__() if self.source else self.reason
        return f"{self.path}: {words}" if self.path else words


@dataclass(frozen=True, slots=True)
class Rendered:
    """The value, the places of secrets in it, and the input paths that were missing and became ""."""

    value: Json
    secrets: Secrets = field(default_factory=dict)
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A template that parsed; `references` are its uses of the scope, in the order of the value."""

    source: Json
    references: tuple[Reference, ...]
    _root: _Part = field(repr=False, compare=False)

    @property
    def is_constant(self) -> bool:
        """Tell whether rendering gives `source` itself, whatever the scope."""
        return isinstance(self._root, _Constant)

    def render(self, scope: Scope, *, lenient_input: bool = False, max_size: int = MAX_OUTPUT) -> Rendered:
        """Fill in the values of `scope`; `max_size` bounds the length of the result as JSON text."""
        if isinstance(self._root, _Constant) and self._root.size <= max_size:
            return Rendered(self._root.value)
        rendering = _Rendering(scope, lenient_input=lenient_input, max_size=max_size)
        value = rendering.value(self._root)
        return Rendered(value, rendering.secrets, tuple(rendering.missing))


def parse_template(value: Json, path: str = "") -> Template:
    """Parse every text in `value`; `path` is where `value` stands, for messages. Raises `TemplateError`."""
    references: list[Reference] = []
    root = _compiled(value, _Place(path, "", 0), references)
    return Template(value, tuple(references), root)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a part stands: for people, for machines, and how deep."""

    path: str
    pointer: str
    depth: int

    def below(self, key: str | int) -> _Place:
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else key
        return _Place(self.path + step, pointer_to(self.pointer, key), self.depth + 1)


@dataclass(frozen=True, slots=True)
class _Constant:
    value: Json
    size: int
    place: _Place


@dataclass(frozen=True, slots=True)
class _Single:
    """A text that is one placeholder."""

    source: str
    node: Node
    place: _Place


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with placeholders among other text."""

    source: str
    pieces: tuple[str | Node | SecretRef, ...]
    place: _Place


@dataclass(frozen=True, slots=True)
class _List:
    items: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Map:
    items: tuple[tuple[str, _Part], ...]


_Part: TypeAlias = _Single | _Text | _Constant | _Map | _List


def _compiled(value: Json, place: _Place, references: list[Reference]) -> _Part:
    if isinstance(value, str) and "{{" in value:
        return _compiled_text(value, place, references)
    if not isinstance(value, (list, tuple, Mapping)):
        return _constant(value, place)
    if place.depth >= MAX_DEPTH:
        raise TemplateError("", 1, f"nested deeper than {MAX_DEPTH} levels", place.path)
    if isinstance(value, Mapping):
        entries = [(key, _compiled(item, place.below(key), references)) for key, item in value.items()]
        if all(isinstance(part, _Constant) for _, part in entries):
            return _constant(value, place)
        return _Map(tuple(entries))
    parts = [_compiled(item, place.below(index), references) for index, item in enumerate(value)]
    if all(isinstance(part, _Constant) for part in parts):
        return _constant(value, place)
    return _List(tuple(parts))


def _constant(value: Json, place: _Place) -> _Constant:
    sizes: list[int] = []
    try:
        functions.plain(value, sizes.append, MAX_DEPTH - place.depth)
    except Unfit as unfit:
        raise TemplateError("", 1, str(unfit), place.path) from None
    return _Constant(value, sum(sizes), place)


def _compiled_text(source: str, place: _Place, references: list[Reference]) -> _Part:
    pieces: list[str | Node | SecretRef] = []
    position = 0
    try:
        while (opening := source.find("{{", position)) >= 0:
            if opening > position:
                pieces.append(source[position:opening])
            tokens = lexer.scan(source, opening + 2, braces=True)
            piece = _placeholder(source, tokens)
            pieces.append(piece)
            if isinstance(piece, SecretRef):
                references.append(Reference("secret", (piece.name,), column=tokens[0].column))
            else:
                references.extend(references_of(piece))
            position = tokens[-1].end
    except ExpressionError as error:
        raise TemplateError(source, error.column, error.reason, place.path) from None
    if position < len(source):
        pieces.append(source[position:])
    if len(pieces) == 1 and not isinstance(pieces[0], (str, SecretRef)):
        return _Single(source, pieces[0], place)
    return _Text(source, tuple(pieces), place)


def _placeholder(source: str, tokens: list[lexer.Token]) -> Node | SecretRef:
    match [token.kind for token in tokens], [token.text for token in tokens]:
        case ["name", ".", "name", "end"], ["secret", _, name, _]:
            return SecretRef(name)
    return parser.read_tokens(source, tokens)


class _Rendering:
    """One pass over the parts, with what is left of the allowed size."""

    __slots__ = ("_evaluation", "_left", "_max_size", "missing", "secrets")

    def __init__(self, scope: Scope, *, lenient_input: bool, max_size: int) -> None:
        self._evaluation = Evaluation("", scope, lenient_input=lenient_input)
        self._max_size = max_size
        self._left = max_size
        self.secrets: dict[str, tuple[str | SecretRef, ...]] = {}
        self.missing = self._evaluation.missing

    def value(self, part: _Part) -> Json:
        match part:
            case _Map():
                return {key: self.value(item) for key, item in part.items}
            case _List():
                return [self.value(item) for item in part.items]
            case _:
                return self._leaf(part)

    def _leaf(self, part: _Single | _Text | _Constant) -> Json:
        source = "" if isinstance(part, _Constant) else part.source
        try:
            if isinstance(part, _Constant):
                self._spend(part.size)
                return part.value
            self._evaluation.source = source
            if isinstance(part, _Text):
                return self._text(part)
            value = self._evaluation.value(part.node)
            if isinstance(value, str):  # by far the most common, so it goes the short way
                self._spend(len(value) + 3)
                return value
            return functions.plain(value, self._spend, MAX_DEPTH - part.place.depth)
        except Unfit as unfit:
            raise TemplateError(source, 1, str(unfit), part.place.path) from None
        except ExpressionError as error:
            raise TemplateError(source, error.column, error.reason, part.place.path) from None

    def _text(self, part: _Text) -> str:
        pieces: list[str | SecretRef] = []
        secret = False
        for piece in part.pieces:
            if isinstance(piece, SecretRef):
                secret = True
                pieces.append(piece)
            else:
                text = piece if isinstance(piece, str) else self._evaluation.text(piece)
                self._spend(len(text))
                pieces.append(text)
        if secret:
            self.secrets[part.place.pointer] = _merged(pieces)
        return "".join(map(str, pieces))

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            message = f"the rendered template is larger than {self._max_size:,} characters of JSON"
            raise Unfit(f"{message}; store large data elsewhere and pass a reference")


def _merged(pieces: list[str | SecretRef]) -> tuple[str | SecretRef, ...]:
    """Join neighbouring texts, so that equal outcomes are equal values."""
    merged: list[str | SecretRef] = []
    for piece in pieces:
        if isinstance(piece, SecretRef) or not merged or isinstance(merged[-1], SecretRef):
            merged.append(piece)
        else:
            merged[-1] += piece
    return tuple(piece for piece in merged if piece != "")
