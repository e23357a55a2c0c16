"""A small Flask application, as one finds them: its own database, its own sign-in, and wfcelery beside it.

Run as a script it orders once and is killed between the commit and the sending.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from flask import Flask, Request, session
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, create_engine, event, insert
from sqlalchemy.orm import Session

from wfcelery.contrib.flask import WfceleryFlask, outbox_table
from wfcelery.core.messages import Principal
from wfcelery.core.values import Json

DATABASE = "WFCELERY_TEST_SHOP"
SYSTEM = "WFCELERY_TEST_SYSTEM"
BROKER = "WFCELERY_TEST_BROKER"
SECRET = "a secret of thirty-two characters"  # noqa: S105 - for tests
FLOW: Json = {
    "name": "order",
    "start": "review",
    "steps": {
        "review": {"approval": {}, "next": "ship"},
        "ship": {"tool": "echo", "args": {"value": "shipped {{input.order}}"}, "done": True},
    },
}

metadata = MetaData()
orders = Table("orders", metadata, Column("id", Integer, primary_key=True), Column("item", String))
outbox = outbox_table(metadata)


def current_user(request: Request) -> Principal | None:
    """The application's own sign-in."""
    user = session.get("user")
    return Principal(user) if user else None


def create_app(
    engine: Engine, config: Mapping[str, object], *, signs_in: bool = True
) -> tuple[Flask, WfceleryFlask]:
    app = Flask("shop")
    app.secret_key = SECRET
    app.config["WFCELERY"] = config
    metadata.create_all(engine)
    flows = WfceleryFlask(
        app, current_user=current_user if signs_in else None, outbox_table=outbox, engine=engine
    )

    @app.post("/sign-in/<user>")
    def sign_in(user: str) -> str:
        session["user"] = user
        return user

    @app.get("/")
    def home() -> str:
        return "the shop"

    return app, flows


def order(flows: WfceleryFlask, db: Session, item: str = "A7") -> str:
    """Write an order and the start of its run, in one transaction that the caller ends."""
    db.execute(insert(orders).values(item=item))
    return flows.start(FLOW, {"order": item}, by="ann", outbox=db).id


def make_app() -> Flask:
    """For `flask --app`."""
    made, _ = create_app(create_engine(os.environ[DATABASE]), _config())
    return made


def _config() -> dict[str, object]:
    return {
        "database_url": os.environ[SYSTEM],
        "broker_url": os.environ[BROKER],
        "secret_key": [SECRET],
        "user": "ann",
    }


def _die_after_commit() -> None:
    engine = create_engine(os.environ[DATABASE])
    _, flows = create_app(engine, _config())
    with Session(engine) as db:
        event.listen(db, "after_commit", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        sys.stdout.write(order(flows, db) + "\n")
        sys.stdout.flush()
        db.commit()


if __name__ == "__main__":
    _die_after_commit()
