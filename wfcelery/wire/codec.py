"""Messages as bytes: compact JSON with the name of the class as `kind`, and nothing taken on trust."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, get_args

from wfcelery.core import values
from wfcelery.core.effects import Dispatch
from wfcelery.core.expressions import decode_secrets
from wfcelery.core.limits import DEFAULT, MIB, Limits
from wfcelery.core.messages import Principal, Report, Request, Trace
from wfcelery.core.state import Error, Prepared
from wfcelery.core.values import MAX_INTEGER, Json
from wfcelery.errors import InvalidInput
from wfcelery.executor.messages import Broadcast, Define, Message, NoticeTried, Retire, Sign, Start
from wfcelery.tools.report import LONGEST_RETRY_AFTER, MOST_ANCESTORS
from wfcelery.wire import fields
from wfcelery.wire.fields import Check
from wfcelery.wire.shape import Shape, shape_of

MAX_BYTES: Final = 16 * MIB
"""The largest message that is read at all."""

LONGEST_TIMEOUT: Final = 10 * 366 * 86_400.0
MOST_GROUPS: Final = 1_000
MOST_TAGS: Final = 1_000
MOST_QUEUES: Final = 1_000
MOST_HELD: Final = 100_000
MOST_REACHED: Final = 1_000

SAID: Final[frozenset[type[Message]]] = frozenset(
    [*get_args(Report), *get_args(Trace), *get_args(Sign)],
)
"""What workers may say."""

ASKED: Final[frozenset[type[Message]]] = frozenset([*get_args(Request), Define, Start, Broadcast, Retire])
"""What apps and the command line may ask."""

NOTED: Final[frozenset[type[Message]]] = frozenset([NoticeTried])
"""What the notifier may say, under the key of requests: workers do not have it."""


def encode(message: Message, *, limits: Limits = DEFAULT) -> bytes:
    """Write a message that travels.

    A request is checked here as its reader will check it, so that the one who asks is told what is wrong:
    a message that cannot be read is never answered. Raises `InvalidInput`.
    """
    shape = _SHAPES.get(type(message).__name__)
    if shape is None:
        raise InvalidInput("kind", f"{type(message).__name__} is not a message that travels")
    asked = type(message) in ASKED
    if asked:
        for name in shape.payloads:
            values.check(getattr(message, name), name, max_bytes=limits.payload_bytes)
    data = write({"kind": shape.name, **shape.write(message)})
    if asked:
        decode(data, limits=limits)
    return data


def decode(data: bytes, *, limits: Limits = DEFAULT, max_bytes: int = MAX_BYTES) -> Message:
    """Read a message; whatever is wrong with it raises `InvalidInput`, which says where and what."""
    raw = read(data, max_bytes)
    kind = raw.pop("kind", None)
    shape = _SHAPES.get(kind) if type(kind) is str else None
    if shape is None:
        raise InvalidInput("kind", f"{fields.shown(kind)} is not a message that travels")
    message = shape.made(raw, "")
    if len(data) > limits.payload_bytes:
        for name in shape.payloads:
            values.check(getattr(message, name), name, max_bytes=limits.payload_bytes)
    return message


def encode_order(step: Dispatch) -> bytes:
    """Write what a worker is asked to do."""
    return write(_DISPATCH.write(step))


def decode_order(data: bytes, *, max_bytes: int = MAX_BYTES) -> Dispatch:
    """Read what a worker is asked to do; raises `InvalidInput` like `decode`."""
    return _DISPATCH.made(read(data, max_bytes), "")


def write(raw: dict[str, object]) -> bytes:
    """Write an object as compact JSON in UTF-8."""
    try:
        return _ENCODER.encode(raw).encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput("message", "holds a lone surrogate, which is not valid text") from exc
    except ValueError as exc:
        raise InvalidInput("message", "holds NaN or Infinity, which JSON does not have") from exc
    except TypeError as exc:
        raise InvalidInput("message", f"cannot be written as JSON: {exc}") from exc
    except RecursionError as exc:
        raise InvalidInput("message", "is nested too deeply to be written") from exc


def read(data: bytes, max_bytes: int) -> dict[str, Json]:
    """Read one JSON object and nothing after it."""
    if len(data) > max_bytes:
        raise InvalidInput("message", f"is {len(data):,} bytes; at most {max_bytes:,} are allowed")
    try:
        raw: Json = _DECODER.decode(data.decode())
    except UnicodeDecodeError as exc:
        raise InvalidInput("message", f"is not UTF-8: {exc.reason} (byte {exc.start})") from exc
    except json.JSONDecodeError as exc:
        raise InvalidInput("message", f"is not JSON: {exc.msg} (character {exc.pos})") from exc
    except ValueError as exc:
        raise InvalidInput("message", "holds a number of thousands of digits") from exc
    except RecursionError as exc:
        raise InvalidInput("message", "is nested too deeply to be read") from exc
    if type(raw) is not dict:
        raise InvalidInput("message", f"must be a map, not {values.type_name(raw)}")
    return raw


def _plain(value: object) -> object:
    write_part = _PARTS.get(type(value))
    if write_part is not None:
        return write_part(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _no_constant(name: str) -> Json:
    raise InvalidInput("message", f"holds {name}, which JSON does not have")


def _flow(value: Json, path: str) -> object:
    return fields.short(value, path) if type(value) is str else fields.document(value, path)


def _secrets(value: Json, path: str) -> object:
    fields.mapping(value, path)
    decode_secrets(value)
    return value


_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False, default=_plain
)
_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)

_PRINCIPAL: Final = shape_of(
    Principal,
    {
        "id": fields.text(1, 200),
        "kind": fields.kind,
        "groups": fields.several(fields.text(1, 200), MOST_GROUPS),
        "at_terminal": fields.never,
    },
)
_ERROR: Final = shape_of(Error, {"type": fields.free, "message": fields.long})
_PREPARED: Final = shape_of(Prepared, {"args": fields.payload, "secrets": _secrets})

_CHECKS: Final[dict[str, Check]] = {
    "active": fields.several(fields.begun, MOST_HELD),
    "again": fields.truth,
    "ancestors": fields.several(fields.free, MOST_ANCESTORS),
    "approve": fields.truth,
    "at": fields.moment,
    "attempt": fields.whole(1, fields.MAX_COUNT),
    "begun": fields.truth,
    "boot_id": fields.short,
    "brief": fields.truth,
    "by": _PRINCIPAL.read,
    "command_id": fields.short,
    "comment": fields.long,
    "counted": fields.truth,
    "document": fields.document,
    "epoch": fields.whole(0, MAX_INTEGER),
    "error": _ERROR.read,
    "NoticeTried.error": fields.long,
    "event": fields.short,
    "final": fields.truth,
    "flow": fields.short,
    "Start.flow": _flow,
    "form": fields.payload,
    "input": fields.payload,
    "item": fields.whole(-1, fields.MAX_COUNT),
    "key": fields.free,
    "leaving": fields.truth,
    "name": fields.short,
    "notice_id": fields.short,
    "number": fields.whole(0, MAX_INTEGER),
    "payload": fields.payload,
    "pool": fields.free,
    "prepared": _PREPARED.read,
    "priority": fields.whole(0, 9),
    "queue": fields.short,
    "queues": fields.several(fields.short, MOST_QUEUES),
    "reached": fields.several(fields.text(1, 2_000), MOST_REACHED),
    "reason": fields.long,
    "ref": fields.ref,
    "refuse_conflict": fields.truth,
    "reserved": fields.several(fields.ref, MOST_HELD),
    "result": fields.payload,
    "retry": fields.truth,
    "retry_after": fields.number(0.0, LONGEST_RETRY_AFTER),
    "run_id": fields.short,
    "started_at": fields.moment,
    "step": fields.short,
    "tags": fields.several(fields.free, MOST_TAGS),
    "timeout_s": fields.number(0.0, LONGEST_TIMEOUT),
    "tool": fields.short,
    "unsent": fields.several(fields.ref, MOST_HELD),
    "user": fields.free,
    "via": fields.free,
    "worker": fields.short,
}

_SHAPES: Final[dict[str, Shape[Message]]] = {
    cls.__name__: shape_of(cls, _CHECKS) for cls in SAID | ASKED | NOTED
}
_DISPATCH: Final = shape_of(Dispatch, _CHECKS)
_PARTS: Final[dict[type, Callable[..., dict[str, object]]]] = {
    Principal: _PRINCIPAL.write,
    Error: _ERROR.write,
    Prepared: _PREPARED.write,
}
