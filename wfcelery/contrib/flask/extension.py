"""`WfceleryFlask`: the extension. Starts, the outbox, the console, the commands."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from flask import Blueprint, Flask, Response, current_app, has_app_context, has_request_context, request

from wfcelery.contrib.flask.caller import Caller, join
from wfcelery.contrib.flask.commands import NAME, wfcelery
from wfcelery.contrib.flask.config import read_config
from wfcelery.contrib.flask.host import CurrentUser, EngineLike, Host
from wfcelery.contrib.flask.mount import Mount
from wfcelery.contrib.flask.prompt_sender import GRACE_S
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, InvalidSettings
from wfcelery.workflows import Run, Workflows
from wfcelery.workflows.outbox import entry
from wfcelery.workflows.starts import By, FlowLike

if TYPE_CHECKING:
    from sqlalchemy import Table

CONFIG: Final = "WFCELERY"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class WfceleryFlask:
    """wfcelery in a Flask application; settings are in `app.config["WFCELERY"]`.

    `current_user` says who comes, in the words of the application's own sign-in: then whoever is signed in
    there is signed in to the console, and starts are theirs. `outbox_table` and `engine` (or a function that
    gives it) are for `start(..., outbox=...)` and `flask wfcelery relay`. One object may serve several apps.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        current_user: CurrentUser | None = None,
        outbox_table: Table | None = None,
        engine: EngineLike | None = None,
    ) -> None:
        self._current_user = current_user
        self._table = outbox_table
        self._engine = engine
        self._last: Host | None = None
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask, *, engine: EngineLike | None = None) -> None:
        """Join an application. Raises `InvalidSettings` for what is wrong in its settings."""
        if NAME in app.extensions:
            raise InvalidSettings(NAME, "has joined this application already; call init_app once")
        config = read_config(app.config.get(CONFIG))
        host = Host(app, config, self._current_user, self._table, engine or self._engine)
        if config.url_prefix is not None:
            app.register_blueprint(_console(host, config.url_prefix))
        app.cli.add_command(wfcelery)
        app.extensions[NAME] = host
        self._last = host

    @property
    def workflows(self) -> Workflows:
        """Everything else that can be asked of the system: see docs/python.md."""
        return self._host().workflows()

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
        outbox: Caller | None = None,
    ) -> Run:
        """Begin a run, as `Workflows.start` does; by the one who is signed in, unless somebody is named.

        With `outbox` (a session or connection of the application) nothing is sent now: the start is written
        in that transaction, and begins once it has committed, exactly once, whether or not the broker is
        there then. Rolled back, it never was. What the executor refuses stays in the table with the reason.
        """
        host = self._host()
        who = by if by is not None else _signed_in(host)
        if outbox is None:
            return host.workflows().start(
                flow,
                input,
                key=key,
                tags=tags,
                run_id=run_id,
                at=at,
                by=who,
                on_conflict=on_conflict,
                wait=wait,
                name=name,
            )
        table, workflows, now = host.outbox(), host.workflows(), time.time()
        made = entry(
            flow,
            input,
            by=who if who is not None else host.config.settings().user,
            now=now,
            key=key,
            tags=tags,
            run_id=run_id,
            at=at,
            on_conflict=on_conflict,
            name=name,
        )
        # This process sends it when it is committed; the relay takes it up if that does not happen.
        join(outbox, table, replace(made, next_at=now + GRACE_S), host.sender)
        return workflows.run(made.id)

    def _host(self) -> Host:
        if has_app_context() and isinstance(found := current_app.extensions.get(NAME), Host):
            return found
        if self._last is None:
            raise InvalidSettings(NAME, "has joined no application; call init_app(app) first")
        return self._last


def _signed_in(host: Host) -> By:
    if host.current_user is None or not has_request_context():
        return None
    found = host.current_user(request)
    if found is None:
        # Else a stranger would act as the user of this process.
        raise InvalidInput("by", "is missing, and nobody is signed in; name who starts this")
    return found


def _console(host: Host, url_prefix: str) -> Blueprint:
    """Make the blueprint that hands requests under the prefix to our web app."""
    blueprint = Blueprint(NAME, __name__, url_prefix=url_prefix)
    mount = Mount(host.web, host.config.streams)

    def console(rest: str = "") -> Response:  # noqa: ARG001 - the environment has it, undecoded
        who = host.current_user(request) if host.current_user is not None else None
        return mount.answer(request, url_prefix, who)

    for rule in ("/", "/<path:rest>"):
        blueprint.add_url_rule(
            rule, "console", console, methods=METHODS, provide_automatic_options=False, merge_slashes=False
        )
    return blueprint
