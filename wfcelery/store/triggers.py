"""What never changes, said to the database: even a caller that is wrong cannot.

An attempt that has ended keeps its status, result and error (only the way it `took` may follow later); a line
of history and a definition's content are never rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """Columns of a table that may not change, in rows for which `when` holds."""

    name: str
    table: str
    columns: tuple[str, ...]
    message: str
    when: str = ""

    def ddl(self, dialect: str) -> tuple[str, ...]:
        """Write the statements that make the rule."""
        differs = "IS DISTINCT FROM" if dialect == "postgresql" else "IS NOT"
        changed = " OR ".join(f"NEW.{column} {differs} OLD.{column}" for column in self.columns)
        condition = f"({self.when}) AND ({changed})" if self.when else changed
        watched = ", ".join(self.columns)
        create = f"CREATE TRIGGER {self.name} BEFORE UPDATE OF {watched} ON {self.table}"
        if dialect == "postgresql":
            body = f"$$ BEGIN RAISE EXCEPTION '{self.message}'; END $$"
            return (
                f"CREATE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS {body}",
                f"{create} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {self.name}()",
            )
        return (f"{create} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{self.message}'); END",)


RULES: Final = (
    Rule(
        name="workflow_steps_end_once",
        table="workflow_steps",
        columns=("status", "result", "error", "completed_at", "attempt"),
        when="OLD.status IN ('done', 'failed', 'skipped', 'cancelled')",
        message="workflow_steps: an attempt that has ended never changes",
    ),
    Rule(
        name="workflow_events_are_appended",
        table="workflow_events",
        columns=("seq", "at", "type", "step", "item", "attempt", "actor", "data", "transition"),
        message="workflow_events: history is never rewritten",
    ),
    Rule(
        name="workflow_definitions_are_fixed",
        table="workflow_definitions",
        columns=("id", "name", "version", "document", "pins", "depth"),
        message="workflow_definitions: a definition never changes; define a new version",
    ),
)
