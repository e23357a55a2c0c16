"""The exit codes, and how an error becomes one."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Final

from wfcelery import errors

SUCCESS: Final = 0
FAILED: Final = 1
INVALID: Final = 2
NOT_FOUND: Final = 3
REFUSED: Final = 4
OUT_OF_REACH: Final = 5
WAITS: Final = 6
NOT_CONFIRMED: Final = 7
INTERRUPTED: Final = 130

_BY_CLASS: Final = (
    (errors.InvalidFlow, INVALID),
    (errors.InvalidInput, INVALID),
    (errors.InvalidSettings, INVALID),
    (errors.ExpressionError, INVALID),
    (errors.NotFound, NOT_FOUND),
    (errors.NotAllStarted, REFUSED),
    (errors.NotConfirmed, NOT_CONFIRMED),
    (errors.TimedOut, NOT_CONFIRMED),
    (errors.LostLease, REFUSED),
    (errors.NotReachable, OUT_OF_REACH),
    (errors.StoreError, OUT_OF_REACH),
)
# The answer to a command carries the code of the error that it was, not its class.
_BY_CODE: Final = {
    errors.InvalidFlow.code: INVALID,
    errors.InvalidInput.code: INVALID,
    errors.InvalidSettings.code: INVALID,
    errors.ExpressionError.code: INVALID,
    errors.NotFound.code: NOT_FOUND,
    "internal": FAILED,
}


_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def exit_code(error: BaseException) -> int:
    """Give the documented exit code of an error."""
    if isinstance(error, errors.Refused):
        return _BY_CODE.get(error.code, REFUSED)
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), FAILED)


def tell(error: Exception, *, debug: bool) -> int:
    """Say on stderr what went wrong, and give the exit code."""
    from wfcelery.cli.output import plain

    if debug:
        traceback.print_exception(error)
    if isinstance(error, errors.WfceleryError):
        said = str(error)
    elif isinstance(error, OSError) and error.errno in _FULL:
        said = f"what was asked for cannot be written: {error.strerror}"
    else:
        said = f"this should not have happened: {type(error).__name__}: {error}"
        if not debug:
            said += "\nRun the same command with --debug to see where, and please report it."
    sys.stderr.write(f"wfcelery: {plain(said)}\n")
    return exit_code(error)
