"""The versions of the tables: `upgrade` for the holder of the lease, `require_known` for everybody else.

An empty database gets the newest tables at once; a test proves that the revisions, one after the other,
lead to the same. Alembic is loaded only where there is something to migrate.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from wfcelery.errors import UnknownSchema
from wfcelery.store.schema import VERSION_TABLE, metadata
from wfcelery.store.triggers import RULES

if TYPE_CHECKING:
    from sqlalchemy import Connection

HEAD: Final = "0002"
KNOWN: Final = ("0001", HEAD)
_UPGRADE_LOCK: Final = 7_733_215


def upgrade(conn: Connection) -> None:
    """Bring the tables to this code's version, inside the caller's transaction; two at once take turns."""
    take_turn(conn)
    found = version(conn)
    if found == HEAD:
        return
    if found is None:
        create(conn)
    elif found in KNOWN:
        migrate(conn)
    else:
        raise UnknownSchema(found, HEAD)


def require_known(conn: Connection) -> None:
    """Refuse tables that this code does not know."""
    found = version(conn)
    if found != HEAD:
        raise UnknownSchema(found or "none", HEAD)


def version(conn: Connection) -> str | None:
    """Read which version the tables have; None where there are none."""
    if conn.dialect.name == "postgresql":
        exists = f"SELECT to_regclass('{VERSION_TABLE}')"
    else:
        exists = f"SELECT name FROM sqlite_master WHERE type = 'table' AND name = '{VERSION_TABLE}'"  # noqa: S608
    if conn.exec_driver_sql(exists).scalar() is None:
        return None
    found = conn.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608
    return None if found is None else str(found)


def create(conn: Connection) -> None:
    """Make the newest tables where there are none."""
    metadata.create_all(conn, checkfirst=False)
    for rule in RULES:
        for statement in rule.ddl(conn.dialect.name):
            conn.exec_driver_sql(statement)
    key = f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num)"
    conn.exec_driver_sql(f"CREATE TABLE {VERSION_TABLE} ( version_num VARCHAR(32) NOT NULL, {key} )")
    conn.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{HEAD}')")  # noqa: S608


def migrate(conn: Connection, to: str = HEAD) -> None:
    """Apply the revisions that are missing, one after the other."""
    from alembic import command  # noqa: PLC0415 -- costs a tenth of a second, and most starts have nothing to do
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = conn
    command.upgrade(config, to)


def take_turn(conn: Connection) -> None:
    """Wait until no other transaction changes the tables themselves; SQLite's writers do so anyway."""
    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
