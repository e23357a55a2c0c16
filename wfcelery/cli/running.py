"""From what was asked for to a run that has ended: find the flow, open the engine, print the result."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from wfcelery.cli import allowed, files
from wfcelery.cli.checking import check_file
from wfcelery.cli.database import Right, is_there, reading
from wfcelery.cli.failures import FAILED, SUCCESS, WAITS
from wfcelery.cli.output import print_json
from wfcelery.cli.prompt import Prompt
from wfcelery.cli.session import Session
from wfcelery.cli.siblings import in_order
from wfcelery.cli.streams import only_ours
from wfcelery.cli.view import Live, Plain, Quiet, View
from wfcelery.core.messages import Principal
from wfcelery.embedded.engine import Engine, new_command_id, new_run_id
from wfcelery.embedded.process import own_process
from wfcelery.errors import NotFound, Refused
from wfcelery.executor.messages import Define, Start
from wfcelery.rights import Resource, load_authority
from wfcelery.store import definitions, runs, views
from wfcelery.tools import Registry
from wfcelery.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfcelery.cli.files import FlowFile
    from wfcelery.cli.interrupt import Interrupt
    from wfcelery.cli.progress import Progress
    from wfcelery.cli.run_request import Request
    from wfcelery.cli.run_words import Words
    from wfcelery.core.values import Json

LIVE = ("running", "paused")


class Running:
    """One invocation of `wfcelery run`. `has_begun`: the run is in the database and can be resumed."""

    def __init__(self, request: Request, words: Words) -> None:
        self.request = request
        self.words = words
        self.run_id = request.resume or new_run_id(time.time())
        self.has_begun = False
        self._by = Principal(request.settings.user, at_terminal=True)
        self._stderr = sys.stderr

    def answer(self, interrupt: Interrupt) -> int:
        """Bring the run to its end, or as far as it goes, and give the exit code."""
        request = self.request
        if request.resume is not None:
            ended = self._ended(request.resume)
            if ended is not None:
                return self._tell(ended, sys.stdout)
        tools = Registry.load(request.settings.tools)
        file = self._file(Catalogue(tools))
        self._require_right(file)
        session = Session(
            self.run_id,
            by=self._by,
            answers=request.answers,
            interrupt=interrupt,
            view_of=self._view,
            began=self._has_begun,
        )
        with ExitStack() as stack:
            stdout = stack.enter_context(only_ours(session.view.say))
            engine = Engine(
                request.settings.database_url,
                tools,
                workers=request.workers,
                only=self.run_id,
                observer=session.observe,
                authority=load_authority(request.settings),
            )
            stack.enter_context(engine)
            own_process()
            session.attach(engine)
            self._begin(engine, session, file)
            try:
                has_ended = session.go_on(self._prompt(session))
            except Refused:
                self.words.can_go_on(self.run_id)
                raise
            finally:
                session.view.stop()
            run = engine.run_json(self.run_id)
            if has_ended:
                return self._tell(run, stdout)
            if request.as_json:
                print_json(run, stdout)
            self.words.waits(self.run_id, session.unanswered(), session.unused())
            return WAITS

    def _begin(self, engine: Engine, session: Session, file: FlowFile | None) -> None:
        request = self.request
        if request.resume is not None:
            _refuse_sub_run(engine, request.resume)
            self.has_begun = True
            self.words.goes_on(self.run_id)
            session.recover()
            return
        if file is not None:
            for sibling in in_order(file):
                self._define(engine, sibling)
        flow: Json = request.flow if file is None else file.data
        name = None if file is None else file.name
        engine.ask(
            Start(
                new_command_id(),
                self.run_id,
                flow,
                request.input,
                self._by,
                key=request.key,
                tags=request.tags,
                name=name,
                refuse_conflict=True,
            )
        )

    def _has_begun(self) -> None:
        """The run is in the database: tell its id before anything else."""
        self.has_begun = True
        self.words.begins(self.run_id)

    def _define(self, engine: Engine, file: FlowFile) -> None:
        with engine.database.reading() as conn:
            before = definitions.find(conn, file.own_name)
        made = engine.ask(Define(new_command_id(), file.data, self._by, file.name)).data
        if before is None or before.id != made["id"]:
            self.words.defined(f"{made['name']}@{made['version']}", file.path)

    def _file(self, tools: Catalogue) -> FlowFile | None:
        """Read and check the flow if it is in a file; None if it is the name of a definition."""
        request = self.request
        if request.flow is None:
            return None
        if files.is_file_name(request.flow):
            file = files.read_flow(Path(request.flow))
            check_file(file, tools, request.settings)
            return file
        if not is_there(request.settings):
            hint = (
                "and no file of that name; a flow is a .yaml or .json file, or is kept by `wfcelery define`"
            )
            raise NotFound("definition", request.flow, hint)
        return None

    def _require_right(self, file: FlowFile | None) -> None:
        """Refuse who may not start this flow; whether a run may go on was asked when it was looked for."""
        if self.request.flow is not None:
            flow = self.request.flow.partition("@")[0] if file is None else file.own_name
            allowed.require(self.request.settings, allowed.START, Resource(flow=flow))

    def _ended(self, run_id: str) -> dict[str, Json] | None:
        with reading(self.request.settings, Right(allowed.START, run=run_id)) as conn:
            run = views.run(conn, run_id)
        if run is None:
            raise NotFound("run", run_id, "`wfcelery ps` lists the runs")
        return None if run["status"] in LIVE else run

    def _tell(self, run: Mapping[str, Json], stdout: TextIO) -> int:
        """Print the result of a run that has ended."""
        if self.request.as_json:
            print_json(run, stdout)
        self.words.ended(run)
        if run["status"] != "completed":
            return FAILED
        if not self.request.as_json:
            print_json(run["output"], stdout)
        return SUCCESS

    def _view(self, progress: Progress) -> View:
        if self.request.is_quiet:
            return Quiet(self._stderr)
        if self._stderr.isatty():
            return Live(self._stderr, time.time, progress.lines)
        return Plain(self._stderr, time.time)

    def _prompt(self, session: Session) -> Prompt | None:
        if not self.request.may_ask:
            return None
        return Prompt(self._stderr, sys.stdin.fileno(), session.keep_going)


def _refuse_sub_run(engine: Engine, run_id: str) -> None:
    """A sub-run goes on with the run it belongs to, and not without it."""
    with engine.database.reading() as conn:
        root = runs.root_of(conn, run_id)
    if root not in (None, run_id):
        raise Refused(f"{run_id} is a sub-run; go on with `wfcelery run --resume {root}`")
