"""What one application has of us: its settings, its ways to the system, its outbox, its console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from flask import Flask, Request

from wfcelery.contrib.flask.config import Config
from wfcelery.contrib.flask.prompt_sender import PromptSender
from wfcelery.contrib.flask.table import OutboxRows
from wfcelery.core.messages import Principal
from wfcelery.errors import InvalidSettings
from wfcelery.web.app import make_app
from wfcelery.workflows import Workflows
from wfcelery.workflows.outbox import Relay

if TYPE_CHECKING:
    from sqlalchemy import Engine, Table
    from starlette.applications import Starlette

CurrentUser: TypeAlias = Callable[[Request], Principal | None]
EngineLike: TypeAlias = "Engine | Callable[[], Engine]"


@dataclass(slots=True)
class Host:
    """Threads share it. Nothing is opened before it is needed."""

    app: Flask
    config: Config
    current_user: CurrentUser | None = None
    table: Table | None = None
    engine: EngineLike | None = None
    sender: PromptSender = field(init=False)
    _workflows: Workflows | None = None

    def __post_init__(self) -> None:
        self.sender = PromptSender(self.relay)

    def workflows(self) -> Workflows:
        """Give the ways to the system; they survive a fork."""
        if self._workflows is None:
            self._workflows = Workflows.from_settings(self.config.settings())
        return self._workflows

    def relay(self) -> Relay:
        """Give what sends rows of the outbox."""
        return Relay(self.workflows().links)

    def outbox(self) -> Table:
        """Give the table of the outbox."""
        if self.table is None:
            reason = "is not set: WfceleryFlask(app, outbox_table=outbox_table(metadata), engine=engine)"
            raise InvalidSettings("outbox_table", reason)
        return self.table

    def rows(self) -> OutboxRows:
        """Give the outbox for who is not inside a transaction of the application."""
        table = self.outbox()
        if self.engine is None:
            reason = (
                "is not set: WfceleryFlask(app, outbox_table=..., engine=engine) names the database of it"
            )
            raise InvalidSettings("engine", reason)
        if callable(self.engine):
            with self.app.app_context():
                return OutboxRows(self.engine(), table)
        return OutboxRows(self.engine, table)

    def web(self) -> Starlette:
        """Make the web app. Raises `InvalidSettings` where everybody could do everything."""
        settings = self.config.settings()
        if self.current_user is None and settings.policy is None and settings.authorize is None:
            reason = (
                "is needed to mount the console, or a policy, or authorize: everybody could do everything"
            )
            raise InvalidSettings("current_user", reason)
        # Which names lead here is for the application to say (TRUSTED_HOSTS): it answers to them anyway.
        return make_app(settings, hosts=None, trust_host_user=self.current_user is not None)
