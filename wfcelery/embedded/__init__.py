"""The whole engine in one process: the same core, store and executor, mailbox and workers in memory."""

from wfcelery.embedded.clock import VirtualClock
from wfcelery.executor.clock import SystemClock
from wfcelery.embedded.engine import Engine

__all__ = ["Engine", "SystemClock", "VirtualClock"]
