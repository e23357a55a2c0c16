"""The whole engine in one process: the same core, store and executor, mailbox and workers in memory."""

from wfcelery.embedded.clock import VirtualClock
from wfcelery.embedded.engine import Engine
from wfcelery.executor.clock import SystemClock

__all__ = ["Engine", "SystemClock", "VirtualClock"]
