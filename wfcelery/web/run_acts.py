"""What can be done to a run from its page: which acts there are, when each makes sense, and who may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wfcelery.core.state import Run, RunStatus
from wfcelery.rights import Permission, Resource

if TYPE_CHECKING:
    from wfcelery.core.messages import Principal
    from wfcelery.web.desk import Desk


@dataclass(frozen=True, slots=True)
class Act:
    """One act. `asks` is the question before it, `means` what will come of it."""

    name: str
    label: str
    permission: Permission
    asks: str
    means: str
    fits: Callable[[Run], bool]
    is_final: bool = False
    wants_reason: bool = False

    @property
    def door(self) -> str:
        """Name the door where it is confirmed."""
        return f"run_{self.name}"


ACTS: Final = {
    act.name: act
    for act in (
        Act(
            name="pause",
            label="Pause",
            permission=Permission.CANCEL,
            asks="Pause this run?",
            means="What runs now goes on to its end; nothing new starts until somebody resumes the run.",
            fits=lambda run: run.is_live and not run.held,
        ),
        Act(
            name="resume",
            label="Resume",
            permission=Permission.CANCEL,
            asks="Let this run go on?",
            means="Steps that were held back start now, and timers that ran out meanwhile act.",
            fits=lambda run: run.is_live and run.held,
        ),
        Act(
            name="retry",
            label="Retry",
            permission=Permission.RETRY,
            asks="Retry this run?",
            means="The run goes on from where it failed: failed and cancelled steps get a new attempt.",
            fits=lambda run: run.status is RunStatus.FAILED,
        ),
        Act(
            name="cancel",
            label="Cancel",
            permission=Permission.CANCEL,
            asks="Cancel this run for good?",
            means="What has not begun never will; what runs is asked to stop. This cannot be taken back.",
            fits=lambda run: run.is_live,
            is_final=True,
            wants_reason=True,
        ),
    )
}


def possible(desk: Desk, who: Principal | None, run: Run) -> list[Act]:
    """List what somebody may do to a run as it stands."""
    resource = Resource(run.name, run.id, run.created_by)
    return [act for act in ACTS.values() if act.fits(run) and desk.may(who, act.permission, resource)]
