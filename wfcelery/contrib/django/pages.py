"""Admin pages over tables that are not Django's: read through the facade, changed by asking the executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from wfcelery.contrib.django import acting
from wfcelery.contrib.django.acting import Gate
from wfcelery.contrib.django.place import place
from wfcelery.core.limits import DEFAULT
from wfcelery.errors import NotFound, NotReachable, WfceleryError
from wfcelery.executor.definitions import Definitions
from wfcelery.insight import gates
from wfcelery.insight.gates import GateView
from wfcelery.rights import Permission, Resource

PAGE: Final = 50
STATUSES: Final = ("running", "paused", "completed", "failed", "cancelled")
FILTERS: Final = ("status", "flow", "key", "created_by", "tag")


class TableAdmin(ModelAdmin):  # type: ignore[misc] # Django ships no types
    """A place in the admin for what Django neither keeps nor writes."""

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002 - Django's signature
        """Let in who may read runs."""
        return acting.may(request, Permission.READ)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show it to who may read runs."""
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - same
        """Nothing is added here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002 - same
        """Nothing is written here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002 - same
        """Nothing is deleted here."""
        return False

    def page(self, request: HttpRequest, template: str, title: str, **more: Any) -> HttpResponse:  # noqa: ANN401 - what is shown
        """Show a page of the admin."""
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.model._meta,  # noqa: SLF001 - Django's own name for it
            **acting.shown(request, **more),
        }
        return TemplateResponse(request, f"admin/wfcelery/{template}", context)

    def require_reader(self, request: HttpRequest) -> None:
        """Refuse who may not read."""
        if not self.has_view_permission(request):
            raise PermissionDenied


class RunAdmin(TableAdmin):
    """The list of runs, and the page of each with its steps."""

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:  # noqa: ARG002 - same
        """List runs by filters, newest first; cancel or retry those that are chosen."""
        self.require_reader(request)
        acts: dict[str, Callable[[HttpRequest, str], bool]] = {"cancel": acting.cancel, "retry": acting.retry}
        if request.method == "POST":
            act = acts.get(str(request.POST.get("act")))
            for run in request.POST.getlist("run"):
                if act is not None:
                    act(request, run)
            return redirect(request.get_full_path())
        wanted = {name: str(request.GET[name]) for name in FILTERS if request.GET.get(name)}
        found = _read(
            request,
            lambda: place().workflows.list(**wanted, limit=PAGE + 1, before=request.GET.get("before")),
            [],
        )
        older = request.GET.copy()
        if len(found) > PAGE:
            older["before"] = str(found[PAGE - 1]["id"])
        return self.page(
            request,
            "runs.html",
            "Runs",
            runs=[run for run in found[:PAGE] if _readable(request, run)],
            statuses=STATUSES,
            wanted=wanted,
            older=older.urlencode() if len(found) > PAGE else "",
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",  # noqa: ARG002 - same
        extra_context: object = None,  # noqa: ARG002 - same
    ) -> HttpResponse:
        """Show a run with its steps and gates; approve, deny, cancel, retry."""
        self.require_reader(request)
        try:
            run = place().workflows.get(object_id)
        except NotFound as error:
            raise Http404(str(error)) from error
        except WfceleryError as error:
            messages.error(request, str(error))
            return redirect("admin:wfcelery_run_changelist")
        if not _readable(request, run):
            raise Http404
        if request.method == "POST":
            _act(request, object_id)
            return redirect(request.get_full_path())
        waiting = _read(request, lambda: _gates_of(run), [])
        return self.page(
            request,
            "run.html",
            f"Run {object_id}",
            run=run,
            gates=[(view, Gate(object_id, view.step.name, view.attempt.attempt)) for view in waiting],
            is_live=run["status"] in ("running", "paused"),
        )


class ApprovalAdmin(TableAdmin):
    """The gates that wait for people."""

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:  # noqa: ARG002 - same
        """List gates, newest first; approve or deny those that are chosen, with one comment."""
        self.require_reader(request)
        if request.method == "POST":
            for each in map(Gate.read, request.POST.getlist("gate")):
                if each is not None and request.POST.get("act") in ("approve", "deny"):
                    acting.decide(request, each, approve=request.POST["act"] == "approve")
            return redirect(request.get_full_path())
        found = _read(request, lambda: _open_gates(request.GET.get("before")), [])
        views = [view for view in found[:PAGE] if acting.may(request, Permission.READ, _resource(view))]
        return self.page(
            request,
            "approvals.html",
            "Approvals",
            gates=[(view, Gate(view.run.id, view.step.name, view.attempt.attempt)) for view in views],
            older=found[PAGE - 1].cursor if len(found) > PAGE else "",
        )

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        """Lead to the page of the run."""
        self.require_reader(request)
        return redirect("admin:wfcelery_run_change", object_id.partition(":")[0])


def _act(request: HttpRequest, run: str) -> None:
    act = request.POST.get("act")
    gate = Gate.read(str(request.POST.get("gate", "")))
    if act in ("approve", "deny") and gate is not None and gate.run == run:
        acting.decide(request, gate, approve=act == "approve")
    elif act == "cancel":
        acting.cancel(request, run)
    elif act == "retry":
        acting.retry(request, run)


def _read(request: HttpRequest, look: Callable[[], list[Any]], nothing: list[Any]) -> list[Any]:
    """Read from our tables; a database that is away is said, and the page is there all the same."""
    try:
        return look()
    except (NotReachable, WfceleryError) as error:
        messages.error(request, str(error))
        return nothing


def _readable(request: HttpRequest, run: dict[str, Any]) -> bool:
    return acting.may(request, Permission.READ, Resource(run["name"], run["id"], run["created_by"]))


def _resource(view: GateView) -> Resource:
    return Resource(view.flow.name, view.run.id, view.run.created_by)


def _open_gates(before: str | None) -> list[GateView]:
    with place().workflows.links.reading() as conn:
        return gates.open_gates(conn, Definitions(None, DEFAULT), PAGE + 1, before)


def _gates_of(run: dict[str, Any]) -> list[GateView]:
    """Read the gates of a run that are open, with what would come next."""
    names = dict.fromkeys(step["name"] for step in run["steps"] if step["status"] == "pending")
    with place().workflows.links.reading() as conn:
        known = Definitions(None, DEFAULT)
        found = [gates.gate(conn, known, run["id"], name) for name in names]
    return [view for view in found if view is not None and view.is_open]
