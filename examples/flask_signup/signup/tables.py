"""The application's own tables. The outbox of wfcelery is one of them."""

from __future__ import annotations

import os
from functools import cache

from sqlalchemy import Engine, MetaData, String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from wfcelery.contrib.flask import outbox_table

DATABASE = "SIGNUP_DATABASE_URL"
DEFAULT = "sqlite:///signup.sqlite"


class Base(DeclarativeBase):
    """What `create_all`, or a migration, makes."""

    metadata = MetaData()


outbox = outbox_table(Base.metadata)


class Signup(Base):
    """Somebody who wants an account. `status`: waiting, approved or declined."""

    __tablename__ = "signups"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(20), default="waiting")
    run: Mapped[str] = mapped_column(String(64), default="")


class Account(Base):
    """Somebody who has one. One for each sign-up, however often its step is tried."""

    __tablename__ = "accounts"

    id: Mapped[int] = mapped_column(primary_key=True)
    signup: Mapped[int] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(String(200), unique=True)


class Staff(Base):
    """Who decides. `notify`: where to write, as apprise has it."""

    __tablename__ = "staff"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    password: Mapped[str] = mapped_column(String(300))
    notify: Mapped[str] = mapped_column(String(300), default="")


@cache
def engine() -> Engine:
    """Give the application's database, in whichever process this is: web, worker, executor or notifier."""
    return create_engine(os.environ.get(DATABASE, DEFAULT))


def staff() -> list[Staff]:
    """Read who is on the staff."""
    with Session(engine()) as db:
        return list(db.scalars(select(Staff)))
