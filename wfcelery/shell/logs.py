"""How processes log: lines for people, or a JSON object per line, with run, step and attempt where known."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final

from wfcelery.core.state import NO_ITEM
from wfcelery.tools.context import CURRENT

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
JSON: Final = "json"
_PLACE: Final = {"run_id": "run", "flow": "flow", "step": "step", "item": "item", "attempt": "attempt"}
_OWN: Final = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", (), None)), *_PLACE, "message", "asctime", "taskName", "data"}
)


class JsonLines(logging.Formatter):
    """Writes `time`, `level`, `logger`, `message`; of a step `run`, `flow`, `step`, `item`, `attempt`.

    `error` is the traceback. What a tool adds as `extra` stands beside these, and never instead of them.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write one object on one line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        shown: dict[str, object] = {
            "time": moment.removesuffix("+00:00") + "Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        place = _place(record)
        shown |= place
        if record.exc_info:
            shown["error"] = self.formatException(record.exc_info)
        if not place:
            return json.dumps(shown)
        extra = {
            name: value for name, value in vars(record).items() if name not in _OWN and name not in shown
        }
        try:
            return json.dumps({**shown, **extra}, default=repr, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return json.dumps({**shown, **{name: repr(value) for name, value in extra.items()}})


def configure(log_format: str, level: str) -> None:
    """Log to stderr in this form, whatever was set before."""
    logging.basicConfig(format=TEXT, level=level.upper(), force=True)
    if log_format == JSON:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())


def _place(record: logging.LogRecord) -> dict[str, object]:
    """Say which step a line is about: as it says itself, else the one whose tool is being called."""
    source: object = record if hasattr(record, "run_id") else CURRENT.get()
    if source is None:
        return {}
    found = {shown: getattr(source, name, None) for name, shown in _PLACE.items()}
    return {name: value for name, value in found.items() if value is not None and value != NO_ITEM}
