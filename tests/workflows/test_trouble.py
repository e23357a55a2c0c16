"""What callers are told when something is missing, and how threads, forks and host apps are treated."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from tests.workflows.system import SECRET, System, celery_app
from tests.workflows.test_workflows import ECHO
from wfcelery.core.limits import DEFAULT
from wfcelery.core.values import Json
from wfcelery.errors import InvalidInput, InvalidSettings, NotConfirmed, NotFound, NotReachable
from wfcelery.executor.answers import new_run_id
from wfcelery.settings import Settings
from wfcelery.tools import Registry
from wfcelery.workflows import Run, Workflows

NOBODY = "0" * 26
TOO_SHORT = (
    "setting secret_key: has 5 characters, at least 16 are needed; `wfcelery keys --new` prints a good one"
)


def facade(broker_url: str, database_url: str | None, **more: Any) -> Workflows:  # noqa: ANN401
    return Workflows(
        celery_app(broker_url),
        database_url,
        **{"secret_key": SECRET, "user": "ann", "timeout_s": 0.2, **more},
    )


def test_without_a_broker_a_start_says_so_within_five_seconds(sqlite_url: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with facade(f"redis+socket://{tmp_path}/none.sock", sqlite_url) as workflows:
        with pytest.raises(NotReachable) as away:
            workflows.start(ECHO, {"x": 1})
        with pytest.raises(NotReachable):
            workflows.start(ECHO, {"x": 1}, wait=False)
    assert time.monotonic() - began < 5
    assert str(away.value).startswith("the broker is out of reach: ")


def test_without_an_executor_nothing_is_confirmed_and_the_repeat_is_safe(
    broker_url: str, database_url: str
) -> None:
    run_id = new_run_id(time.time())
    with facade(broker_url, database_url) as workflows:
        with pytest.raises(NotConfirmed) as start:
            workflows.start(ECHO, {"x": 1}, run_id=run_id)
        assert (start.value.ids, start.value.seconds) == ((run_id,), 0.2)
        assert str(start.value).startswith(
            "the request Start was not confirmed within 0.2 s, and may happen yet; "
        )
        assert str(start.value).endswith(f". Repeating it with the same id ({run_id}) is safe")
        assert "it has no tables of wfcelery yet; the executor makes them when it starts" in str(start.value)
        with pytest.raises(NotConfirmed) as signal:
            workflows.signal(NOBODY, "paid", command_id="c1")
        assert signal.value.ids == ("c1",)
        with pytest.raises(NotConfirmed) as many:
            workflows.start_many([(ECHO, {"x": 1})] * 3)
        assert many.value.what == "a part of what was asked for (3 of 3)"
        assert len(many.value.ids) == 3
        with pytest.raises(NotReachable) as unread:
            workflows.get(run_id)
        assert str(unread.value).endswith(
            "is out of reach: it has no tables of wfcelery yet; the executor makes them when it starts"
        )
        with System(broker_url, database_url):
            run = facade(broker_url, database_url, timeout_s=10.0).start(ECHO, {"x": 1}, run_id=run_id)
            assert (run.id, run.wait(30)["output"]) == (run_id, 1)
        run._facade.close()


def test_once_the_tables_are_there_a_missing_executor_is_guessed(broker_url: str, sqlite_url: str) -> None:
    with facade(broker_url, sqlite_url, timeout_s=10.0) as workflows:
        with System(broker_url, sqlite_url):
            workflows.start(ECHO, {"x": 1}).wait(30)
        workflows.timeout_s = 0.05
        with pytest.raises(NotConfirmed) as silent:
            workflows.cancel(NOBODY, command_id="c1")
        assert str(silent.value) == (
            "the request Cancel was not confirmed within 0.05 s, and may happen yet; "
            "perhaps no executor is running. Repeating it with the same id (c1) is safe"
        )
        with pytest.raises(NotFound):
            workflows.wait(NOBODY)


def test_a_database_out_of_reach_is_told_before_anything_is_sent(broker_url: str, valkey_url: str) -> None:
    with facade(broker_url, "postgresql://nobody@127.0.0.1:1/none") as workflows, pytest.raises(NotReachable):
        workflows.start(ECHO, {"x": 1})
    client = redis.Redis.from_url(valkey_url)
    assert client.keys("*") == []
    client.close()


def test_a_reader_makes_no_database(broker_url: str, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with facade(broker_url, str(path)) as workflows, pytest.raises(NotReachable):
        workflows.list()
    assert not path.exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"secret_key": ()},
            "setting secret_key: is not set; give it as WFCELERY_SECRET_KEY, the same as the executor's",
        ),
        (
            {"secret_key": "short"},
            TOO_SHORT,
        ),
    ],
)
def test_a_secret_that_is_missing_or_weak_is_told_when_it_is_needed(
    broker_url: str, sqlite_url: str, more: dict[str, Any], message: str
) -> None:
    with facade(broker_url, sqlite_url, **more) as workflows, pytest.raises(InvalidSettings) as invalid:
        workflows.start(ECHO)
    assert str(invalid.value) == message


def test_a_database_in_memory_and_settings_without_a_broker_are_refused(broker_url: str) -> None:
    with facade(broker_url, "sqlite://") as workflows, pytest.raises(InvalidSettings) as memory:
        workflows.list()
    assert str(memory.value) == (
        "setting database_url: is in memory, where no executor can see it; name a file or a server"
    )
    with pytest.raises(InvalidSettings) as nowhere:
        Workflows.from_settings(Settings())
    assert str(nowhere.value) == (
        "setting broker_url: is not set; give it as WFCELERY_BROKER_URL, like redis://localhost:6379/0"
    )


def test_what_is_not_said_comes_from_the_environment(
    broker_url: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFCELERY_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("WFCELERY_BROKER_URL", broker_url)
    monkeypatch.setenv("WFCELERY_SECRET_KEY", f"{SECRET}, an older secret of the tests")
    monkeypatch.setenv("WFCELERY_USER", "eve")
    with System(broker_url, sqlite_url), Workflows(None) as workflows:
        assert workflows.start(ECHO, {"x": 1}).wait(30)["created_by"] == "eve"


def test_an_input_that_is_too_large_is_refused_before_it_is_sent(broker_url: str, sqlite_url: str) -> None:
    with facade(broker_url, sqlite_url) as workflows, pytest.raises(InvalidInput) as large:
        workflows.start(ECHO, {"x": "x" * DEFAULT.payload_bytes})
    assert large.value.path == "input"


def test_threads_share_a_facade(broker_url: str, sqlite_url: str) -> None:
    outputs: list[Json] = []
    with System(broker_url, sqlite_url), facade(broker_url, sqlite_url, timeout_s=20.0) as workflows:

        def work(number: int) -> None:
            outputs.append(workflows.start(ECHO, {"x": number}).wait(30)["output"])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(outputs) == list(range(8))  # type: ignore[type-var]


def test_a_fork_opens_its_own_and_leaves_its_parents_alone(broker_url: str, database_url: str) -> None:
    script = """
import os, sys
from wfcelery.workflows import Workflows
workflows = Workflows(None, sys.argv[1], broker_url=sys.argv[2], secret_key=sys.argv[3], user="ann")
flow = {"name": "n", "start": "a", "steps": {"a": {"done": True}}}
first = workflows.start(flow)
child = os.fork()
if child == 0:
    again = workflows.start(flow)
    os._exit(0 if again.wait(30)["status"] == first.status == "completed" else 1)
_, status = os.waitpid(child, 0)
assert first.status == "completed" and workflows.start(flow).wait(30)["status"] == "completed"
workflows.close()
print(os.waitstatus_to_exitcode(status))
"""
    with System(broker_url, database_url):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, database_url, broker_url, SECRET],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_handle_is_its_id(broker_url: str) -> None:
    workflows = Workflows(None)
    run = workflows.run(NOBODY)
    assert {run: 1}[Run(NOBODY, created=True)] == 1
    assert (str(run), repr(run)) == (NOBODY, f"Run(id='{NOBODY}', created=None)")
    with pytest.raises(TypeError, match="made by hand"):
        Run(NOBODY).get()


def hosts_app() -> Celery:
    """An app with habits of its own."""
    app = Celery("shop", broker="redis://127.0.0.1:1/0", backend="cache+memory://", set_as_current=False)
    app.conf.update(
        task_default_queue="shop",
        task_routes={"shop.*": {"queue": "fast"}},
        task_acks_late=True,
        beat_schedule={"hourly": {"task": "shop.tidy", "schedule": 3600.0}},
    )

    @app.task(name="shop.tidy", shared=False)  # type: ignore[untyped-decorator] # Celery ships no types
    def tidy() -> str:
        return "tidy"

    return app


def test_the_hosts_app_keeps_its_settings_and_gets_our_tasks_and_beat_entries() -> None:
    plain, hosting = hosts_app(), hosts_app()
    Workflows(hosting)
    assert (hosting.configured, hosting.finalized) == (False, False)
    hosting.finalize()
    plain.finalize()
    assert set(hosting.tasks) - set(plain.tasks) == {
        "wfcelery.doorbell",
        "wfcelery.marker",
        "wfcelery.notify",
        "wfcelery.step",
        "wfcelery.tick",
        "wfcelery.watchdog",
    }
    before, after = dict(plain.conf), dict(hosting.conf)
    schedule = after.pop("beat_schedule")
    assert schedule.pop("hourly") == before.pop("beat_schedule")["hourly"]
    assert {name: (each["task"], each["schedule"]) for name, each in schedule.items()} == {
        "wfcelery-tick": ("wfcelery.tick", 1.0),
        "wfcelery-watchdog": ("wfcelery.watchdog", 5.0),
    }
    assert [each["options"]["expires"] for each in schedule.values()] == [2.0, 10.0]
    assert {each["options"]["queue"] for each in schedule.values()} == {"wfcelery.executor"}
    assert after == before
    assert hosting.tasks["shop.tidy"].apply().get() == "tidy"
    assert "wfcelery.tick" not in plain.tasks


def test_an_app_that_is_ready_already_or_configured_later_gets_them_too() -> None:
    ready = hosts_app()
    ready.finalize()
    Workflows(ready)
    Workflows(ready)
    later = Celery("shop", set_as_current=False)
    Workflows(later)
    later.config_from_object({"beat_schedule": {"hourly": {"task": "t", "schedule": 60}}})
    for app in (ready, later):
        assert set(app.conf.beat_schedule) == {"hourly", "wfcelery-tick", "wfcelery-watchdog"}
        assert "wfcelery.step" in app.tasks


def test_an_entry_of_the_host_under_our_name_is_its_own() -> None:
    app = hosts_app()
    app.conf.beat_schedule["wfcelery-tick"] = {"task": "wfcelery.tick", "schedule": 5.0}
    Workflows(app)
    app.finalize()
    assert app.conf.beat_schedule["wfcelery-tick"] == {"task": "wfcelery.tick", "schedule": 5.0}


def test_allowed_tasks_are_tools_of_the_module_that_holds_the_facade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_flows.py").write_text(
        "from celery import Celery\n"
        "from wfcelery import Workflows\n"
        "app = Celery('shop', set_as_current=False)\n"
        "@app.task(name='shop.tidy', shared=False)\n"
        "def tidy(): ...\n"
        "workflows = Workflows(app, allow=['shop.tidy'])\n"
        "mistaken = Workflows(app, allow=['shop.tydi'])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidSettings) as unknown:
        Registry.load(["shop_flows"])
    assert str(unknown.value) == (
        "setting WFCELERY_TOOLS: module `shop_flows`: setting allow: "
        "the Celery app has no task `shop.tydi`; did you mean `shop.tidy`?"
    )
    module = sys.modules["shop_flows"]
    del module.mistaken
    assert "shop.tidy" in Registry.load(["shop_flows"])
    with pytest.raises(InvalidSettings) as homeless:
        Workflows(None, allow=["shop.tidy"]).tools()
    assert str(homeless.value) == "setting allow: names tasks, and there is no Celery app to find them in"
