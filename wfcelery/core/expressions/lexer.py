"""From text to tokens. Only ASCII has meaning outside quotes; every other character is named and refused."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from wfcelery.core.expressions.syntax import MAX_SOURCE
from wfcelery.errors import ExpressionError


class Token(NamedTuple):
    """A piece of the source; `kind` is the sign itself, or number, text, name, end. Columns count from 1."""

    kind: str
    text: str
    column: int
    end: int


def scan(source: str, start: int = 0, *, braces: bool = False) -> list[Token]:
    """Cut `source` from `start` into tokens, to its end or, within braces, to the `}}` that closes them."""
    limit = min(len(source), start + MAX_SOURCE + (2 if braces else 0))
    if limit < len(source) and not braces:
        raise ExpressionError(source, MAX_SOURCE + 1, _TOO_LONG)
    tokens: list[Token] = []
    position = start
    while position < limit:
        match = _TOKEN.match(source, position, limit)
        if match is None:
            raise _unexpected(source, position, limit)
        kind, text, end = str(match.lastgroup), match.group(), match.end()
        if kind == "number" and _WORD.match(source, end, limit):
            reason = f"the number {text} runs into `{source[end]}`; put a space or an operator between"
            raise ExpressionError(source, end + 1, reason)
        if text == "}}":
            if not braces:
                raise ExpressionError(source, position + 1, "`}}` closes a template, and none is open here")
            tokens.append(Token("end", text, position + 1, end))
            return tokens
        if kind == "sign":
            tokens.append(Token(text, text, position + 1, end))
        elif kind == "name" and not (tokens and tokens[-1].kind == "."):
            tokens.append(Token(_KEYWORDS.get(text, kind), text, position + 1, end))
        elif kind != "space":
            tokens.append(Token(kind, text, position + 1, end))
        position = end
    if braces:
        reason = _TOO_LONG if limit < len(source) else "`{{` is never closed; add `}}`"
        raise ExpressionError(source, start - 1, reason)
    tokens.append(Token("end", "", position + 1, position))
    return tokens


def unquote(source: str, token: Token) -> str:
    """Give the text that a quoted token stands for."""

    def replaced(match: re.Match[str]) -> str:
        short, code = match["short"], match["u4"] or match["u8"]
        if code:
            number = int(code, 16)
            if number == 0 or 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:  # noqa: PLR2004
                reason = f"`{match.group()}` is not a character that text may hold"
                raise ExpressionError(source, token.column + 1 + match.start(), reason)
            return chr(number)
        if short not in _ESCAPES:
            known = "\\\\ \\\" \\' \\n \\r \\t \\b \\f \\uXXXX \\UXXXXXXXX"
            reason = f"`{match.group()[:2]}` is not an escape; these are: {known}"
            raise ExpressionError(source, token.column + 1 + match.start(), reason)
        return _ESCAPES[short]

    inner = token.text[1:-1]
    bad = _NOT_TEXT.search(inner)
    if bad:
        reason = f"U+{ord(bad.group()):04X} is not a character that text may hold"
        raise ExpressionError(source, token.column + 1 + bad.start(), reason)
    return _ESCAPE.sub(replaced, inner) if "\\" in inner else inner


def _unexpected(source: str, position: int, limit: int) -> ExpressionError:
    character = source[position]
    if character in "\"'":
        if limit < len(source):
            return ExpressionError(source, position + 1, _TOO_LONG)
        return ExpressionError(source, position + 1, f"the text is never closed; add {character}")
    named = f"`{character}`" if character.isprintable() else "character"
    if not character.isascii() or not character.isprintable():
        named += f" (U+{ord(character):04X} {unicodedata.name(character, 'without a name')})"
    hint = _HINTS.get(character)
    return ExpressionError(source, position + 1, f"unexpected {named}" + (f"; {hint}" if hint else ""))


_TOO_LONG: Final = f"the expression is longer than {MAX_SOURCE:,} characters; do this work in a tool"
_KEYWORDS: Final = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "in": "in",
    "true": "true",
    "false": "false",
    "null": "null",
    "nil": "null",
}
_ESCAPES: Final = {
    "\\": "\\",
    '"': '"',
    "'": "'",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
}
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<text>"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*')
      | (?P<sign>\?\?|\|\||&&|==|!=|<=|>=|\}\}|[?:.,()\[\]!<>+\-*/%])""",
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[A-Za-z0-9_]")
_ESCAPE: Final = re.compile(r"\\(?:u(?P<u4>[0-9A-Fa-f]{4})|U(?P<u8>[0-9A-Fa-f]{8})|(?P<short>.))")
_NOT_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
_HINTS: Final = {
    "=": "compare with ==",
    "&": "write && or and",
    "|": "write || or or; there are no filters",
    "{": "there are no maps and no nested templates in an expression",
    "}": "close a template with `}}`",
    "^": "there are no powers",
    "~": "write ! or not",
    "`": "quote text with \" or '",
    **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\uff02", 'write "'),
    **dict.fromkeys("\u2018\u2019\u201a\uff07", "write '"),
    **dict.fromkeys("\u2264\u2a7d", "write <="),
    **dict.fromkeys("\u2265\u2a7e", "write >="),
    **dict.fromkeys("\u2212\u2013\u2014\uff0d", "write -"),
    **dict.fromkeys("\uff1d\u2550\ua78a", "write =="),
    "\u2260": "write !=",
    "\u00d7": "write *",
    "\u00f7": "write /",
    "\u2208": "write in",
    "\u2227": "write &&",
    "\u2228": "write ||",
    "\u00ac": "write !",
    "\u00a0": "write a plain space",
}
