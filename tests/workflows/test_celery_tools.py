"""Tasks of a host application as tools, with real Celery apps and no broker."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery, Task, current_app, current_task
from celery.exceptions import Ignore, Reject
from celery.signals import task_prerun, task_success

from wfcelery.core.values import Json
from wfcelery.errors import InvalidSettings
from wfcelery.testing import run_to_end
from wfcelery.tools import Context, Registry
from wfcelery.tools.call import Failed, Returned, call
from wfcelery.tools.catalogue import Catalogue
from wfcelery.tools.celery_tasks import allowed_tools, celery_tool
from wfcelery.tools.declare import AnyTool

OTHER_ARGUMENTS = (
    "the task `shop.tasks.send` asks to be tried again with other arguments; those of a step never change"
)


@pytest.fixture
def app() -> Celery:
    return Celery("shop", set_as_current=False, broker="redis://127.0.0.1:1/0")


def task(app: Celery, name: str, **options: object) -> Callable[[Callable[..., object]], Any]:
    """Make a task as a host does; Celery ships no types."""
    return app.task(name=name, shared=False, **options)  # type: ignore[no-any-return]


def run(tool: AnyTool, attempt: int = 1, **args: Any) -> Returned | Failed:  # noqa: ANN401
    report = call(tool, args, Context(run_id="r", step="s", attempt=attempt))
    assert isinstance(report, Returned | Failed)
    return report


def failed(tool: AnyTool, **args: Any) -> tuple[str, str, bool, float | None]:  # noqa: ANN401
    report = run(tool, **args)
    assert isinstance(report, Failed)
    return report.type, report.message, report.retry, report.retry_after


def test_a_task_is_called_by_keyword_in_this_process(app: Celery) -> None:
    @task(app, "shop.tasks.add")
    def add(x: int, y: int = 2) -> int:
        """Add."""
        return x + y

    tool = celery_tool(add)
    assert (tool.name, tool.description) == ("shop.tasks.add", "Add.")
    assert run(tool, x=40) == Returned(42)
    assert run(tool, x=1, y=1) == Returned(2)


def test_its_arguments_are_checked_like_those_of_any_tool(app: Celery) -> None:
    @task(app, "shop.tasks.add", bind=True)
    def add(self: Any, x: int, *, y: int = 2) -> int:  # noqa: ANN401
        return x + y

    catalogue = Catalogue(Registry([celery_tool(add)]))
    assert catalogue.check_arguments("shop.tasks.add", {"z": 1, "y": "2"}, lambda _: True) == [
        ("z", "is not an argument of the tool `shop.tasks.add`; it takes `x`, `y`"),
        ("x", "is missing; the tool `shop.tasks.add` requires it"),
        ("y", "should be a valid integer, but is text"),
    ]
    assert run(celery_tool(add), x=1) == Returned(3)


def test_an_argument_named_ctx_is_the_tasks_own(app: Celery) -> None:
    @task(app, "shop.tasks.show")
    def show(ctx: dict[str, int], *rest: int, **more: int) -> object:
        return [ctx, rest, more]

    assert run(celery_tool(show), ctx={"a": 1}, b=2) == Returned([{"a": 1}, [], {"b": 2}])


def test_a_bound_task_sees_its_request(app: Celery) -> None:
    @task(app, "shop.tasks.look", bind=True)
    def look(self: Any, order: str) -> object:  # noqa: ANN401
        request = self.request
        assert current_task.request is request
        return [request.id, request.args, request.kwargs, request.retries, request.called_directly]

    seen = [run(celery_tool(look), attempt, order="A7") for attempt in (1, 3)]
    key = Context(run_id="r", step="s").idempotency_key
    assert seen == [Returned([key, [], {"order": "A7"}, retries, False]) for retries in (0, 2)]
    assert look.request.id is None


def test_the_current_app_is_that_of_the_task_while_it_runs(app: Celery) -> None:
    @task(app, "shop.tasks.look")
    def look() -> bool:
        return current_app._get_current_object() is app

    before = current_app._get_current_object()
    assert before is not app
    assert run(celery_tool(look)) == Returned(True)
    assert current_app._get_current_object() is before


def test_the_task_of_the_host_is_left_as_it_is(app: Celery) -> None:
    @task(app, "shop.tasks.flaky", autoretry_for=(ValueError,), retry_backoff=2)
    def flaky() -> None:
        raise ValueError("no")

    own = app.tasks["shop.tasks.flaky"]
    before = dict(vars(own))
    run(celery_tool(flaky))
    assert vars(own) == before
    assert own.retry.__func__ is Task.retry


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"countdown": 7}, ("ToolError", "the task asks to be tried again", True, 7.0)),
        (
            {"countdown": 7.5, "exc": OSError("away")},
            ("ToolError", "OSError: away", True, 7.5),
        ),
        ({"exc": OSError("away")}, ("OSError", "away", True, None)),
        ({}, ("ToolError", "the task asks to be tried again", True, None)),
        ({"countdown": 1, "max_retries": 0}, ("ToolError", "the task asks to be tried again", True, 1.0)),
        (
            {"countdown": 1, "kwargs": {"order": "A7"}},
            ("ToolError", "the task asks to be tried again", True, 1.0),
        ),
        ({"countdown": 1, "args": ["A7"]}, ("ToolError", "the task asks to be tried again", True, 1.0)),
        (
            {"kwargs": {"order": "B8"}},
            (
                "NoRetry",
                OTHER_ARGUMENTS,
                False,
                None,
            ),
        ),
    ],
)
@pytest.mark.parametrize("throw", [True, False])
def test_a_retry_is_a_failed_attempt_with_that_delay(
    app: Celery, asked: dict[str, Any], expected: tuple[str, str, bool, float | None], throw: bool
) -> None:
    @task(app, "shop.tasks.send", bind=True, max_retries=0)
    def send(self: Any, order: str) -> str:  # noqa: ANN401
        self.retry(**asked, throw=throw)
        return order

    assert failed(celery_tool(send), order="A7") == expected


def test_a_retry_at_a_moment_is_one_after_the_time_until_then(app: Celery) -> None:
    @task(app, "shop.tasks.send", bind=True)
    def send(self: Any, seconds: int) -> None:  # noqa: ANN401
        raise self.retry(eta=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds))

    _, _, _, later = failed(celery_tool(send), seconds=60)
    _, _, _, past = failed(celery_tool(send), seconds=-60)
    assert later is not None
    assert (59 < later <= 60, past) == (True, 0.0)


def test_a_delay_that_the_task_has_of_its_own_counts(app: Celery) -> None:
    @task(app, "shop.tasks.send", bind=True, default_retry_delay=11)
    def send(self: Any) -> None:  # noqa: ANN401
        raise self.retry()

    assert failed(celery_tool(send))[3] == 11.0


def test_a_task_that_retries_by_itself_does_so_by_the_flow(app: Celery) -> None:
    @task(app, "shop.tasks.flaky", autoretry_for=(OSError,), retry_kwargs={"countdown": 5})
    def flaky(kind: str) -> None:
        raise {"os": OSError, "value": ValueError}[kind]("no")

    @task(
        app,
        "shop.tasks.bound",
        bind=True,
        autoretry_for=(OSError,),
        retry_backoff=3,
        retry_jitter=False,
    )
    def bound(self: Any) -> None:  # noqa: ANN401
        raise OSError(f"attempt {self.request.retries + 1}")

    assert failed(celery_tool(flaky), kind="os") == ("ToolError", "OSError: no", True, 5.0)
    assert failed(celery_tool(flaky), kind="value") == ("ValueError", "no", True, None)
    third = run(celery_tool(bound), 3)
    assert isinstance(third, Failed)
    assert (third.message, third.retry_after) == ("OSError: attempt 3", 12.0)


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (Ignore(), "the task raised Ignore"),
        (Ignore("not for us"), "the task raised Ignore: not for us"),
        (Reject("broken", requeue=True), "the task raised Reject: broken"),
    ],
)
def test_a_task_that_ignores_or_rejects_has_failed_for_good(
    app: Celery, raised: Exception, message: str
) -> None:
    @task(app, "shop.tasks.refuse")
    def refuse() -> None:
        raise raised

    assert failed(celery_tool(refuse)) == ("NoRetry", message, False, None)


def test_a_task_cannot_replace_itself_and_its_states_go_nowhere(app: Celery) -> None:
    @task(app, "shop.tasks.replace", bind=True)
    def replace(self: Any) -> None:  # noqa: ANN401
        self.update_state(state="PROGRESS", meta={"done": 1})
        self.replace(self.s())

    assert failed(celery_tool(replace)) == (
        "NoRetry",
        "a task that is called as a tool cannot be replaced by a canvas; write it as a flow",
        False,
        None,
    )


def test_a_base_class_with_a_call_of_its_own_is_respected(app: Celery) -> None:
    class Loud(Task):  # type: ignore[misc] # Celery ships no types
        abstract = True

        def __call__(self, *args: object, **kwargs: object) -> object:
            return f"{self.run(*args, **kwargs)}!"

    @task(app, "shop.tasks.hello", base=Loud)
    def hello(who: str) -> str:
        return f"hello {who}"

    assert run(celery_tool(hello), who="Ann") == Returned("hello Ann!")


def test_handlers_and_signals_of_celery_are_not_called(app: Celery) -> None:
    called: list[str] = []

    class Loud(Task):  # type: ignore[misc] # celery ships no types
        def before_start(self, *_: object) -> None:
            called.append("before_start")

        def on_success(self, *_: object) -> None:
            called.append("on_success")

        def after_return(self, *_: object) -> None:
            called.append("after_return")

    def hear(**_: object) -> None:
        called.append("signal")

    @task(app, "shop.tasks.add", base=Loud)
    def add(x: int) -> int:
        return x + 1

    task_prerun.connect(hear)
    task_success.connect(hear)
    assert run(celery_tool(add), x=1) == Returned(2)
    assert called == []


def test_allowed_tasks_are_found_by_name_once(app: Celery) -> None:
    @task(app, "shop.tasks.add")
    def add(x: int) -> int:
        return x

    tools = allowed_tools(app, ["shop.tasks.add", "shop.tasks.add"])
    assert [tool.name for tool in tools] == ["shop.tasks.add"]
    registry = Registry.with_builtins()
    for tool in (*tools, *allowed_tools(app, ["shop.tasks.add"])):
        registry.add(tool)
    assert "shop.tasks.add" in registry


def test_names_that_are_not_tasks_are_refused_with_the_nearest_one(app: Celery) -> None:
    @task(app, "shop.tasks.send_mail")
    def send_mail() -> None: ...

    with pytest.raises(InvalidSettings) as refused:
        allowed_tools(app, ["shop.tasks.send_mial", "warehouse.tasks.pack", "shop.tasks.send_mail"])
    assert str(refused.value) == (
        "setting allow: the Celery app has no task `shop.tasks.send_mial`; "
        "did you mean `shop.tasks.send_mail`?; "
        "the Celery app has no task `warehouse.tasks.pack`; "
        "import the module that defines it, or add it to the app's `include`"
    )


def test_modules_that_the_app_includes_are_imported_for_their_tasks(tmp_path: Any) -> None:  # noqa: ANN401
    (tmp_path / "shop_app.py").write_text(
        "from celery import Celery\napp = Celery('shop', include=['shop_tasks'])\n"
    )
    (tmp_path / "shop_tasks.py").write_text(
        "from shop_app import app\n@app.task\ndef pay(order: str) -> str:\n    return order\n"
    )
    script = (
        "from shop_app import app\nfrom wfcelery.tools.celery_tasks import allowed_tools\n"
        "print([tool.name for tool in allowed_tools(app, ['shop_tasks.pay'])])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("['shop_tasks.pay']\n", "")


def test_a_flow_calls_a_task_by_its_dotted_name_and_tries_it_again_when_it_asks(app: Celery) -> None:
    @task(app, "shop.tasks.charge", bind=True, max_retries=0)
    def charge(self: Any, order: str) -> object:  # noqa: ANN401
        if self.request.retries < 2:
            raise self.retry(countdown=5, exc=OSError("the bank is away"))
        return {"order": order, "retries": self.request.retries}

    flow: Json = {
        "name": "pay",
        "start": "charge",
        "steps": {
            "charge": {"tool": "shop.tasks.charge", "args": {"order": "{{input.order}}"}, "done": True},
        },
    }
    seen: Any = run_to_end(flow, {"order": "A7"}, tools=[celery_tool(charge)])
    assert (seen["status"], seen["output"]) == ("completed", {"order": "A7", "retries": 2})
    assert [step["error"] for step in seen["steps"]] == [
        {"type": "ToolError", "message": "OSError: the bank is away"},
        {"type": "ToolError", "message": "OSError: the bank is away"},
        None,
    ]
