"""A supervisor in a process of its own: `python supervised.py FOLDER WISHES`, the wishes as JSON.

Each program of the wishes is `[name, shell script, seconds to stop, file that makes it ready]`; one named
`valkey` is the real one. Prints `started` when all are started, and in the end why it has stopped.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path

from wfcelery.errors import WfceleryError
from wfcelery.shell.supervisor import folder, valkey
from wfcelery.shell.supervisor.backoff import Backoff
from wfcelery.shell.supervisor.guard import Guard
from wfcelery.shell.supervisor.log import Log
from wfcelery.shell.supervisor.process import Program
from wfcelery.shell.supervisor.supervisor import Supervisor


def program(here: Path, name: str, script: str, stop_s: float = 10.0, ready: str = "") -> Program:
    if name == "valkey":
        return valkey.program(valkey.find_server(), here / "valkey.sock", os.environ)
    return Program(
        name=name,
        command=("/bin/sh", "-c", script),
        environ=os.environ,
        stop_s=stop_s,
        is_ready=functools.partial(os.path.exists, here / ready) if ready else None,
        mute=("nobody cares",),
    )


def main() -> None:
    here, wishes = Path(sys.argv[1]), json.loads(sys.argv[2])
    programs = [program(here, *each) for each in wishes["programs"]]
    log = Log(sys.stdout, [each.name for each in programs])
    with folder.locked(here) as lock:
        guard = Guard(lock)
        try:
            supervisor = Supervisor(
                programs,
                guard=guard,
                log=log,
                quiet=wishes["quiet"],
                backoff=Backoff(first_s=0.05, longest_s=0.2),
                ready_s=wishes["ready_s"],
                tell_up=lambda: log.say("started"),
            )
            log.say(supervisor.run().name)
        except WfceleryError as error:
            log.say(str(error))
        finally:
            guard.stop()


if __name__ == "__main__":
    main()
