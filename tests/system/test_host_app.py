"""Beside a host's own Celery application: it keeps working as it was, and its tasks can be steps."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from typing import Any

from celery import Celery

from tests.system import host_app
from tests.system.system import ROOT, SECRET, TOOLS, Process, System
from wfcelery import Workflows
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse

OUR_TASKS = {
    "wfcelery.doorbell",
    "wfcelery.marker",
    "wfcelery.notify",
    "wfcelery.step",
    "wfcelery.tick",
    "wfcelery.watchdog",
}
BOTH = f"{TOOLS},tests.system.host_app"
CALLS = """
import json
from tests.system.host_app import mail, order, price
sent = [price.delay(100), mail.delay("ann"), order.delay(200, "bob")]
print(json.dumps([each.get(timeout=60) for each in sent]))
"""


def host_environment(system: System) -> dict[str, str]:
    """What the shop's own processes are given. Only who starts runs needs our secret."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WFCELERY_")}
    return inherited | {
        host_app.BROKER: system.broker_url,
        host_app.DATABASE: system.database_url,
        "WFCELERY_SECRET_KEY": SECRET,
        "PYTHONPATH": str(ROOT),
    }


def celery(system: System, name: str, *arguments: str) -> Process:
    """Start Celery's own command with the shop's app."""
    log = system.folder / f"{name}.log"
    with log.open("wb") as out:
        popen = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "celery", "-A", "tests.system.host_app", *arguments],
            cwd=system.folder,
            env=host_environment(system),
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    process = Process(name, popen, log)
    system.processes.append(process)
    return process


def ask_the_shop(system: System) -> list[Any]:
    """Call the shop's tasks as its own code does, and wait for the results in its own result backend."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALLS],
        cwd=system.folder,
        env=host_environment(system),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr + system.report()
    found: list[Any] = json.loads(done.stdout)
    return found


def test_a_host_keeps_its_tasks_queues_and_results_and_its_tasks_are_steps_too(system: System) -> None:
    url = system.broker_url
    shop = celery(system, "shop", "worker", "--concurrency", "2", "--hostname", "shop@here", "-l", "INFO")
    ours = (
        system.executor(ready=None, SHOP_BROKER_URL=url, WFCELERY_TOOLS=BOTH),
        system.worker(ready=None, SHOP_BROKER_URL=url, WFCELERY_TOOLS=BOTH),
    )
    system.ready(shop, *ours)

    price, mail, run = ask_the_shop(system)
    assert price == {"total": 108, "by": "shop"}
    assert mail == {"to": "ann", "tries": 2, "by": "shop"}

    system.finish([run])
    found: dict[str, Any] = dict(system.workflows.get(run))
    assert (found["status"], found["created_by"]) == ("completed", "shop")
    assert found["output"] == {
        "price": {"total": 216, "by": "wfcelery"},
        "mail": {"to": "bob", "tries": 2, "by": "wfcelery"},
    }
    first, second = (step for step in found["steps"] if step["name"] == "mail")
    assert first["error"] == {"type": "ToolError", "message": "ConnectionError: the mail server is busy"}
    assert 1.4 <= _seconds(first["completed_at"], second["ready_at"]) <= 6

    client = Celery("client", broker=system.broker_url, set_as_current=False)
    with client:
        told = client.control.inspect(destination=["shop@here"], timeout=20).active_queues()
    assert {queue["name"] for queue in told["shop@here"]} == {"shop", "shop.mail"}


def test_the_beat_of_a_host_serves_both(sqlite_system: System) -> None:
    system = sqlite_system
    shop = celery(system, "shop", "worker", "--concurrency", "1", "--hostname", "shop@here", "-l", "INFO")
    executor = system.executor(ready=None)
    celery(system, "beat", "beat", "--schedule", str(system.folder / "beat"))
    system.ready(shop, executor)
    with system.redis() as client:
        pulse = Pulse(client, Names())
        system.until(lambda: "beat" in pulse.pulses(), "our entry of the host's beat to be heard")
    system.until(lambda: "'total': 5, 'by': 'shop'" in shop.said(), "the host's own entry to be done")


def test_a_worker_of_the_host_cannot_be_an_executor_by_mistake(sqlite_system: System) -> None:
    process = celery(
        sqlite_system, "mistake", "worker", "-Q", "wfcelery.executor", "-P", "prefork", "-c", "1"
    )
    assert process.popen.wait(60) != 0
    sentence = "the executor runs on the solo pool, not on prefork; start it with `--pool solo`"
    assert sentence in process.said()


def test_nothing_of_a_hosts_settings_changes_but_two_entries_of_beat() -> None:
    app, untouched = _shop(), _shop()
    untouched.finalize()
    Workflows(app, None)
    app.finalize()
    before, after = _settings(untouched), _settings(app)
    added = {"wfcelery-tick", "wfcelery-watchdog"}
    assert {name for name in before | after if before.get(name) != after.get(name)} == {"beat_schedule"}
    assert after["beat_schedule"].keys() - before["beat_schedule"].keys() == added
    assert after["beat_schedule"]["count-stock"] == before["beat_schedule"]["count-stock"]
    assert set(app.tasks) - set(untouched.tasks) == OUR_TASKS
    assert set(app.amqp.queues) == set(app.amqp.queues.consume_from) == {"shop", "shop.mail"}
    assert app.amqp.router.route({}, "shop.mail")["queue"].name == "shop.mail"
    assert type(app.backend) is type(untouched.backend)


def test_another_app_in_the_same_process_does_not_get_our_tasks() -> None:
    host_app.app.finalize()
    other = Celery("other", set_as_current=False)
    other.finalize()
    assert set(host_app.app.tasks) >= OUR_TASKS
    assert {name for name in other.tasks if name.startswith("wfcelery.")} == set()


def _shop() -> Celery:
    app = Celery("shop", set_as_current=False)
    app.conf.update(host_app.SETTINGS)
    return app


def _settings(app: Celery) -> dict[str, Any]:
    """Every setting with its value, defaults included."""
    return {name: app.conf[name] for name in app.conf.defaults[-1] | dict(app.conf.changes)}


def _seconds(begin: str, end: str) -> float:
    return (dt.datetime.fromisoformat(end) - dt.datetime.fromisoformat(begin)).total_seconds()
