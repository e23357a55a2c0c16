"""Celery tasks as tools: called by their Celery name, in the worker's own process, not through the broker.

The task sees what it is used to: `self.request` with an id that stays the same for all attempts, `retries`
that count them, `self.retry()`. What it asks for becomes the step's: a retry is a failed attempt with that
delay, and how often there is another one is for the flow's `retry` to say, not for `max_retries`.
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

from celery import Celery, Task
from celery._state import _set_current_app, _task_stack, get_current_app
from celery.app.autoretry import add_autoretry_behaviour
from celery.app.task import Task as AnyTask
from celery.exceptions import Ignore, Reject, Retry
from celery.local import Proxy

from wfcelery.core.faults import nearest
from wfcelery.errors import InvalidSettings, NoRetry, ToolError
from wfcelery.tools.context import Context
from wfcelery.tools.declare import AnyTool, Tool

_OUR_PARAMETER: Final = inspect.Parameter("_context", inspect.Parameter.POSITIONAL_ONLY, annotation=Context)
"""Stands before the task's own: it is filled in by the engine, whatever they are called."""


def celery_tool(task: Task) -> AnyTool:
    """Give the tool that calls a Celery task by keyword, in this process; the same one for the same task."""
    return _tool_of(task._get_current_object() if isinstance(task, Proxy) else task)  # noqa: SLF001 - Celery's


def allowed_tools(app: Celery, names: Iterable[str]) -> tuple[AnyTool, ...]:
    """Find tasks of an app by their Celery names; every name that is not known is told in one error.

    Modules that the app would import when a worker starts are imported if a name is missing without them.
    """
    wanted = tuple(dict.fromkeys(names))
    if any(name not in app.tasks for name in wanted):
        app.loader.import_default_modules()
    unknown = [name for name in wanted if name not in app.tasks]
    if unknown:
        known = [name for name in app.tasks if not name.startswith(("celery.", "wfcelery."))]
        raise InvalidSettings("allow", "; ".join(_is_unknown(name, known) for name in unknown))
    return tuple(celery_tool(app.tasks[name]) for name in wanted)


def _is_unknown(name: str, known: Sequence[str]) -> str:
    hint = nearest(name, known) or "import the module that defines it, or add it to the app's `include`"
    return f"the Celery app has no task `{name}`; {hint}"


@functools.lru_cache(maxsize=1024)
def _tool_of(task: Task) -> AnyTool:
    signature = inspect.signature(task.run)

    def function(context: Context, /, *args: object, **kwargs: object) -> object:
        return _attempt(task, signature, context, args, kwargs)

    function.__signature__ = signature.replace(  # type: ignore[attr-defined] # what inspect looks for
        parameters=[_OUR_PARAMETER, *signature.parameters.values()]
    )
    functools.update_wrapper(function, inspect.unwrap(task.run), assigned=("__module__", "__qualname__"))
    return Tool(function=function, name=task.name, description=inspect.getdoc(task.run) or "")


def _attempt(
    task: Task,
    signature: inspect.Signature,
    context: Context,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> object:
    retries = _Retries(task, signature.bind(*args, **kwargs))
    twin = _twin(task, retries)
    try:
        with _requested(twin, context, args, kwargs):
            # As Celery's own worker does: `__call__` counts only where somebody has overridden it.
            value = (twin if _has_own_call(task) else twin.run)(*args, **kwargs)
    except Retry as asked:
        retries.give_up(asked)
    except (Ignore, Reject) as error:
        said = f"the task raised {type(error).__name__}"
        raise NoRetry(f"{said}: {error.args[0]}" if error.args and error.args[0] else said) from error
    if retries.asked is not None:  # `retry(throw=False)`, and then it returned
        retries.give_up(retries.asked)
    return value


def _twin(task: Task, retries: _Retries) -> Task:
    """Copy a task, so that what we put into it is seen by this attempt alone."""
    twin = object.__new__(type(task))
    twin.__dict__.update(task.__dict__)
    if "_orig_run" in twin.__dict__:
        # The wrapper that retries by itself holds on to the task that it was made for: wrap the copy anew.
        del twin.__dict__["_orig_run"], twin.__dict__["run"]
        add_autoretry_behaviour(twin)
    twin.retry = retries.ask
    twin.replace = _no_replace
    twin.update_state = _no_state
    return twin


@contextmanager
def _requested(
    twin: Task, context: Context, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Iterator[None]:
    """Give a task its `self.request`, and make it Celery's `current_task`, its app the `current_app`.

    In our workers another app is the current one: tasks that ask for it, as shared ones do, would send what
    they send to queues that nobody of the host consumes.
    """
    before = get_current_app()
    _set_current_app(twin.app)
    _task_stack.push(twin)
    twin.push_request(
        id=context.idempotency_key,
        root_id=context.idempotency_key,
        task=twin.name,
        args=args,
        kwargs=dict(kwargs),
        retries=context.attempt - 1,
        called_directly=False,
        is_eager=False,
    )
    try:
        yield
    finally:
        twin.pop_request()
        _task_stack.pop()
        _set_current_app(before)


def _has_own_call(task: Task) -> bool:
    for cls in type(task).__mro__:
        if "__call__" in vars(cls):
            return cls is not AnyTask
    return False


class _Retries:
    """Stands in for `task.retry` during one attempt."""

    def __init__(self, task: Task, given: inspect.BoundArguments) -> None:
        self._task = task
        self._given = given
        self.asked: Retry | None = None

    def ask(  # noqa: PLR0917 - the signature is Celery's
        self,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        exc: Exception | None = None,
        throw: bool = True,  # noqa: FBT001, FBT002 - same
        eta: dt.datetime | None = None,
        countdown: float | None = None,
        max_retries: int | None = None,  # noqa: ARG002 - the flow says how often
        **_options: object,
    ) -> Retry:
        """Ask for another attempt."""
        if args is not None or kwargs is not None:
            self._insist_on_the_same(args, kwargs)
        self.asked = Retry(exc=exc, when=eta or countdown)
        if throw:
            raise self.asked
        return self.asked

    def give_up(self, asked: Retry) -> NoReturn:
        """End the attempt as failed, with the delay that was asked for."""
        delay = self._delay(asked.when)
        exc = asked.exc if isinstance(asked.exc, BaseException) else None
        if exc is not None and delay is None:
            raise exc
        said = "the task asks to be tried again" if exc is None else f"{type(exc).__name__}: {exc}"
        raise ToolError(said, delay) from exc

    def _delay(self, when: object) -> float | None:
        """Give the seconds from now; None leaves it to the flow's retry policy."""
        if isinstance(when, dt.datetime):
            now = dt.datetime.now(dt.UTC)
            moment = when if when.tzinfo is not None else when.replace(tzinfo=dt.UTC)
            return max(0.0, (moment - now).total_seconds())
        if isinstance(when, (int, float)):
            return max(0.0, float(when))
        own: object = self._task.default_retry_delay
        return float(own) if isinstance(own, (int, float)) and own != AnyTask.default_retry_delay else None

    def _insist_on_the_same(self, args: Sequence[object] | None, kwargs: Mapping[str, object] | None) -> None:
        """Refuse other arguments for the next attempt: those of a step are what its flow says."""
        try:
            wanted = self._given.signature.bind(*(args or ()), **(kwargs or {}))
        except TypeError:
            wanted = None
        if wanted is None or wanted.arguments != self._given.arguments:
            reason = "asks to be tried again with other arguments; those of a step never change"
            raise NoRetry(f"the task `{self._task.name}` {reason}")


def _no_replace(*_args: object, **_kwargs: object) -> NoReturn:
    raise NoRetry("a task that is called as a tool cannot be replaced by a canvas; write it as a flow")


def _no_state(*_args: object, **_kwargs: object) -> None:
    """Keep nothing: the tables know the step's state, and there is no result backend."""
