"""What conditions and templates can see of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wfcelery.core.state import NO_ITEM, Attempt, Key, StepStatus
from wfcelery.core.values import Json

if TYPE_CHECKING:
    from wfcelery.core.decide.draft import Draft


def scope_of(draft: Draft, **more: Json) -> dict[str, Json]:
    """Give the names an expression may use; `more` adds `result`, `item` and `index` where they exist."""
    run = draft.run
    about: Mapping[str, Json] = {"id": run.id, "name": run.name, "created_by": run.created_by, "key": run.key}
    return {"input": run.input, "steps": _Steps(draft.attempts, draft.results), "run": about, **more}


class _Steps(Mapping[str, "Json"]):
    """`steps.NAME`, made only when it is asked for."""

    def __init__(self, attempts: Mapping[Key, Attempt], results: Mapping[str, Json]) -> None:
        self._attempts = attempts
        self._results = results

    def __getitem__(self, name: str) -> Json:
        attempt = self._attempts[name, NO_ITEM]
        seen: dict[str, Json] = {"status": attempt.status.value}
        if attempt.status is StepStatus.DONE and name in self._results:
            seen["result"] = self._results[name]
        if attempt.error is not None:
            seen["error"] = attempt.error.as_json()
        return seen

    def __iter__(self) -> Iterator[str]:
        return (name for name, item in self._attempts if item == NO_ITEM)

    def __len__(self) -> int:
        return sum(1 for _ in self)
