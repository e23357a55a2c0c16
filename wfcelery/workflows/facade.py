"""`Workflows`: everything that an application asks of a running system."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

from wfcelery.core.values import Json
from wfcelery.errors import InvalidSettings, NotAllStarted, WfceleryError
from wfcelery.executor.answers import new_command_id, raise_refusal
from wfcelery.executor.messages import Define, Retire
from wfcelery.settings import Settings
from wfcelery.tools.registry import ToolSource
from wfcelery.workflows import hosting, starts
from wfcelery.workflows.asking import ask
from wfcelery.workflows.links import Links
from wfcelery.workflows.place import Place
from wfcelery.workflows.run import Definition, Run
from wfcelery.workflows.starts import Beginning, By, FlowLike, Wish
from wfcelery.workflows.telling import Telling

if TYPE_CHECKING:
    from celery import Celery

    from wfcelery.store.commands import Command
    from wfcelery.tools.declare import AnyTool

TIMEOUT_S: Final = 5.0

Runs: TypeAlias = list[Run]


class Workflows(Telling, ToolSource):
    """Starts runs, reads them, and tells them things. Threads may share it, and it survives a fork.

    What is asked for is answered after the answer was read back from the tables: success means that it is
    there. Refusals are raised. `NotConfirmed` says that no answer came within `timeout_s`; the same request
    with the same id may then be repeated.

    Runs are named by id (or a `Run`), or by `flow=` and `key=`: the live run with that key, else the newest.
    Nothing is opened, and no setting is read, before it is needed.
    """

    def __init__(
        self,
        celery_app: Celery | None,
        database_url: str | None = None,
        *,
        secret_key: str | Sequence[str] | None = None,
        allow: Iterable[str] = (),
        user: str | None = None,
        timeout_s: float = TIMEOUT_S,
        broker_url: str | None = None,
        key_prefix: str | None = None,
    ) -> None:
        secrets = secret_key.split(",") if isinstance(secret_key, str) else secret_key
        keys = None if secrets is None else tuple(each.strip() for each in secrets if each.strip())
        super().__init__(
            Links(Place(celery_app, database_url, broker_url, keys, key_prefix)), timeout_s, user
        )
        self._app = celery_app
        self._allowed = (allow,) if isinstance(allow, str) else tuple(allow)
        if celery_app is not None:
            hosting.install(celery_app)

    @classmethod
    def from_settings(cls, settings: Settings) -> Workflows:
        """Talk to the system that the settings name, without a Celery app."""
        if settings.broker_url is None:
            reason = "is not set; give it as WFCELERY_BROKER_URL, like redis://localhost:6379/0"
            raise InvalidSettings("broker_url", reason)
        return cls(
            None,
            settings.database_url,
            broker_url=settings.broker_url,
            secret_key=settings.secret_key,
            user=settings.user or None,
            key_prefix=settings.key_prefix,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections of this process; they are opened again when they are needed."""
        self._links.close()

    def tools(self) -> tuple[AnyTool, ...]:
        """Give the Celery tasks that may be called as tools; a name that is not a task is refused here."""
        if not self._allowed:
            return ()
        if self._app is None:
            raise InvalidSettings("allow", "names tasks, and there is no Celery app to find them in")
        from wfcelery.tools.celery_tasks import allowed_tools  # noqa: PLC0415 - needs Celery

        return allowed_tools(self._app, self._allowed)

    def define(self, flow: FlowLike, *, name: str | None = None, by: By = None) -> Definition:
        """Keep a flow (a document, its text, its path) as the next version of its name, unless it is kept.

        Raises `InvalidFlow` with every fault.
        """
        data, stem = starts.document(flow)
        return _definition(self._ask(Define(new_command_id(), data, self._who(by), name or stem)))

    def retire(self, flow: str, *, by: By = None) -> Definition:
        """Put a version of a flow (`name@version`; `name`: the newest) out of use. Its runs go on."""
        return _definition(self._ask(Retire(new_command_id(), flow, self._who(by))))

    def start(
        self,
        flow: FlowLike,
        input: Json = None,  # noqa: A002 - the word of the flow language
        *,
        key: str | None = None,
        tags: Iterable[str] = (),
        run_id: str | None = None,
        at: dt.datetime | None = None,
        by: By = None,
        on_conflict: Literal["return", "error"] = "return",
        wait: bool = True,
        name: str | None = None,
    ) -> Run:
        """Begin a run of a flow: a name, `name@version`, a document, or the path of one.

        With a key that a live run has, that run is returned, or the start is refused (`on_conflict="error"`).
        A repeat with the same `run_id` finds the run. `wait=False` returns as soon as the request is sent.
        """
        wish = Wish(
            flow=flow,
            input=input,
            key=key,
            tags=tags,
            run_id=run_id,
            at=at,
            on_conflict=on_conflict,
            name=name,
        )
        request = starts.start(wish, self._who(by))
        if not wait:
            self._links.push([request])
            return self.run(request.run_id)
        return self._started(self._ask(request))

    def start_many(self, beginnings: Iterable[Beginning], *, by: By = None) -> Runs:
        """Begin many runs at once; each is a map of what `start` takes, or (flow, input).

        If some are refused the others have begun all the same, and `NotAllStarted` tells which.
        """
        wishes = [starts.wish(each, f"starts[{place}]") for place, each in enumerate(beginnings)]
        requests = [starts.start(each, self._who(by if each.by is None else each.by)) for each in wishes]
        answers = ask(self._links, requests, self.timeout_s)
        refused = {place: error for place, each in enumerate(answers) if (error := _refusal(each))}
        if refused:
            begun = {
                place: str(each.data["run_id"]) for place, each in enumerate(answers) if place not in refused
            }
            raise NotAllStarted(refused, begun)
        return [self._started(answer) for answer in answers]

    def run(self, run_id: str) -> Run:
        """Make a handle of a run; nothing is read."""
        return Run(run_id, None, self)

    def find(self, flow: str, key: str) -> Run:
        """Give the live run of a flow that has the key, else the newest that had it."""
        return self.run(self._id(None, flow, key))

    def _started(self, answer: Command) -> Run:
        return Run(str(answer.data["run_id"]), bool(answer.data["created"]), self)


def _definition(answer: Command) -> Definition:
    data = answer.data
    return Definition(str(data["id"]), str(data["name"]), int(str(data["version"])))


def _refusal(answer: Command) -> WfceleryError | None:
    try:
        raise_refusal(answer)
    except WfceleryError as error:
        return error
    return None
