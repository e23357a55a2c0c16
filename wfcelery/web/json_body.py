"""The body of an API request: strict JSON in UTF-8, no key twice, nested within reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from wfcelery.core.limits import Limits
from wfcelery.core.reading import from_json
from wfcelery.core.values import Json
from wfcelery.errors import InvalidFlow, InvalidInput
from wfcelery.web.failures import WrongContent

KIND: Final = "application/json"
_CHARSETS: Final = ("", "utf-8", "utf8")
# More than a flow may have: that one is nested too deeply is for the flow's own faults to say.
_LIMITS: Final = Limits(depth=64)


def read(body: bytes, headers: Mapping[str, str]) -> Json:
    """Give what was sent; None if nothing was."""
    if not body:
        return None
    kind, _, rest = headers.get("content-type", "").partition(";")
    if kind.strip().lower() != KIND:
        raise WrongContent(KIND, kind.strip())
    name, _, charset = rest.strip().partition("=")
    if name.strip().lower() not in ("", "charset") or charset.strip().strip('"').lower() not in _CHARSETS:
        raise WrongContent(f"{KIND} in UTF-8", rest.strip())
    if encoding := headers.get("content-encoding", ""):
        raise WrongContent(f"{KIND} as it is", encoding)
    try:
        data, _ = from_json.parse(body.decode(), _LIMITS)
    except UnicodeDecodeError as error:
        raise InvalidInput("body", f"is not UTF-8: byte {error.start + 1:,} cannot be read") from None
    except InvalidFlow as error:
        fault = error.faults[0]
        place = f" (line {fault.line}, column {fault.column})" if fault.line else ""
        raise InvalidInput(fault.path or "body", f"{fault.message}{place}") from None
    return cast("Json", data)
