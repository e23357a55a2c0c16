"""Talking to a running system: requests go through the broker, answers and runs are read from the tables."""

from wfcelery.workflows.facade import Workflows
from wfcelery.workflows.run import Definition, Run

__all__ = ["Definition", "Run", "Workflows"]
