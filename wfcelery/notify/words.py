"""Foreign words in a notice: names, comments, arguments. They are shown, and can do nothing else.

A notice ends up in a mail, a chat or a phone, each with its own ideas of what is a command. So whatever is
not ours stays within its line, and what cannot be seen, would call people, or lead elsewhere than it says, is
made visible.
"""

from __future__ import annotations

import json
import re
from typing import Final

from wfcelery.core.values import Json

LONGEST_VALUE: Final = 300
"""Characters that are shown of one argument, comment or error. All of it is in the console."""

LONGEST_NAME: Final = 100

# A word that begins with @ calls people in many chats; an address inside of a word does not.
_CALL: Final = re.compile(r"(?<!\w)@(?=\w)")
_FULL_WIDTH_AT: Final = "\N{FULLWIDTH COMMERCIAL AT}"
# `<!channel>`, `<@U123>`, `<https://evil|harmless>`: chats read these as calls and links.
_MARK: Final = re.compile(r"<(?=[@!#/a-zA-Z])")
_QUOTE: Final = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"


def name(text: str) -> str:
    """Show a name: of a person, a flow, a step."""
    return _shortened(harmless(text), LONGEST_NAME)


def value(given: Json) -> str:
    """Show a value in one line: text in quotes, everything else as JSON."""
    return _shortened(harmless(json.dumps(given, ensure_ascii=False)), LONGEST_VALUE)


def remark(text: str) -> str:
    """Show what somebody or something has said, in one line."""
    return _shortened(harmless(text), LONGEST_VALUE)


def harmless(text: str) -> str:
    """Make visible what is not, and let nothing be a line of its own, a call to people or a masked link."""
    visible = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    visible = _CALL.sub(_FULL_WIDTH_AT, _MARK.sub(_QUOTE, visible))
    return visible.replace("](", "] (")


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
