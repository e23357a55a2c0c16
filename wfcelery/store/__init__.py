"""The only speaker of SQL: the tables on SQLite and PostgreSQL, and functions that read and write them.

Every function takes a connection: the caller owns the transaction. Reading order: `schema` → `database` →
`changes` (writing) → `runs` and `steps` (reading for the executor) → `views` (reading for people) → `lease`
→ `check`.
"""

from sqlalchemy import Connection

from wfcelery.store.changes import RunChange
from wfcelery.store.database import Database, open_database

__all__ = ["Connection", "Database", "RunChange", "open_database"]
