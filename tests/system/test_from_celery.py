"""docs/from-celery.md: each pair is run as it is written, on a worker of the host and on a system of ours."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery._state import _on_app_finalizers, _set_current_app, get_current_app
from celery.beat import Scheduler
from celery.exceptions import ChordError, TaskRevokedError
from celery.exceptions import TimeoutError as CeleryTimeout
from celery.result import AsyncResult

from tests.system.flower import start_flower
from tests.system.system import ROOT, SECRET, Process, System
from wfcelery.broker.names import Names
from wfcelery.errors import NotFound, TimedOut
from wfcelery.testing import run_to_end

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("from-celery")]

PAGE = (ROOT / "docs" / "from-celery.md").read_text()
APP = "tests.system.canvas_app"
QUEUES = ("wfcelery.steps", "reports", "idle")
WAIT_S = 60.0


class Pair:
    """One section of the page: what stands left, and what stands right."""

    def __init__(self, title: str) -> None:
        found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
        assert found is not None, f"docs/from-celery.md has no section {title}"
        left, right = found[1].split("</td><td>")
        self.title = title
        self.canvas = re.findall(r"```python\n(.*?)```", left, re.DOTALL)
        self.flows = re.findall(r"```yaml\n(.*?)```", right, re.DOTALL)
        self.calls = re.findall(r"```python\n(.*?)```", right.partition("</td>")[0], re.DOTALL)


class Shop:
    """A host with its worker, and a system beside it."""

    def __init__(self, system: System, module: ModuleType) -> None:
        self.system = system
        self.app: Celery = module.app
        self.workflows = module.workflows
        self._names = {
            **{name: value for name, value in vars(module).items() if not name.startswith("_")},
            "AsyncResult": AsyncResult,
            "chain": chain,
            "chord": chord,
            "group": group,
        }
        self._log = str(module.LOG)

    def canvas(self, title: str) -> Iterator[dict[str, Any]]:
        """Run the left side, block by block."""
        yield from self._run(Pair(title).canvas)

    def flow(self, title: str) -> Iterator[dict[str, Any]]:
        """Define the flows of the right side, and run it, block by block."""
        pair = Pair(title)
        for each in pair.flows:
            self.workflows.define(each)
        yield from self._run(pair.calls)

    def define_all(self) -> None:
        """Some sections start what another has defined, and a test may come first or alone."""
        for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL):
            if each.startswith("name:"):
                self.workflows.define(each)

    def both(self, title: str) -> tuple[Any, Any]:
        """Run both sides of a pair of one block each; give the `result` and the `run`."""
        (left,), (right,) = self.canvas(title), self.flow(title)
        return left.get("result"), right.get("run")

    def _run(self, blocks: list[str]) -> Iterator[dict[str, Any]]:
        assert blocks
        names = dict(self._names)
        for block in blocks:
            exec(compile(block, "docs/from-celery.md", "exec"), names)  # noqa: S102
            yield names

    def log(self) -> list[str]:
        """What tasks have noted, in order."""
        with self.system.redis() as client:
            lines: list[bytes] = client.lrange(self._log, 0, -1)
        return [line.decode() for line in lines]

    def until_noted(self, *lines: str) -> list[str]:
        return self.system.until(lambda: self.log() if set(lines) <= set(self.log()) else [], f"{lines}")

    def start(self, steps: dict[str, Any], name: str = "asked") -> Any:  # noqa: ANN401 - a run
        return self.workflows.start({"name": name, "start": next(iter(steps)), "steps": steps})

    def output(self, run: Any) -> Any:  # noqa: ANN401 - JSON
        found = run.wait(timeout_s=WAIT_S)
        assert found["status"] == "completed", found
        return found["output"]

    @contextmanager
    def worker(self, name: str, *queues: str, **environment: str) -> Iterator[Process]:
        """A Celery worker of the host's, started as it always was; ended with the block."""
        process = self.begin_worker(name, *queues, **environment)
        self.system.ready(process)
        try:
            yield process
        finally:
            process.terminate()

    def begin_worker(self, name: str, *queues: str, **environment: str) -> Process:
        log = self.system.folder / f"{name}.log"
        options = ("--concurrency", "1", "--hostname", f"{name}@here", "-Q", ",".join(queues), "-l", "INFO")
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "celery", "-A", APP, "worker", *options],
                cwd=self.system.folder,
                env={**os.environ, "SHOP_PROCESS": name, "PYTHONPATH": str(ROOT), **environment},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        process = Process(name, popen, log)
        self.system.processes.append(process)
        return process


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One host and one system for the whole page."""
    folder: Path = tmp_path_factory.mktemp("canvas")
    system = System(folder, f"sqlite:///{folder / 'wfcelery.db'}")
    current, shared = get_current_app(), set(_on_app_finalizers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_BROKER_URL", system.broker_url)
        patch.setenv("SHOP_DATABASE_URL", system.database_url)
        patch.setenv("WFCELERY_SECRET_KEY", SECRET)
        module = importlib.import_module(APP)
        _set_current_app(module.app)
        made = Shop(system, module)
        tools = {"SHOP_BROKER_URL": system.broker_url, "WFCELERY_TOOLS": APP, "SHOP_PROCESS": "ours"}
        try:
            system.ready(
                made.begin_worker("shop", "shop", "shop.mail"),
                system.executor(ready=None, **tools),
                system.worker(ready=None, concurrency=1, queues=QUEUES, **tools),
            )
            made.define_all()
            yield made
        finally:
            module.workflows.close()
            module.app.close()
            system.close()
            sys.modules.pop(APP)
            _set_current_app(current)
            # Tasks are shared with all apps of a process: those of other tests shall not get these.
            _on_app_finalizers.intersection_update(shared)
        system.check()


@pytest.fixture(autouse=True)
def _begin_with_an_empty_log(shop: Shop) -> None:
    with shop.system.redis() as client:
        client.delete("shop.log")


def test_every_section_of_the_page_is_run_by_a_test() -> None:
    pairs = PAGE.partition("## Pairs")[2]
    titles = set(re.findall(r"^### (.*)$", pairs, re.MULTILINE))
    source = Path(__file__).read_text()
    assert {title for title in titles if f'("{title}"' not in source} == set()
    assert all(Pair(title).canvas and Pair(title).calls for title in titles)


@pytest.mark.parametrize(
    ("title", "value"),
    [("Chain", 216), ("Group", [200, 500, 900]), ("Chord", 1700)],
)
def test_a_canvas_and_its_flow_give_the_same(shop: Shop, title: str, value: object) -> None:
    result, run = shop.both(title)
    assert result.get(timeout=WAIT_S) == shop.output(run) == value


def test_a_flow_is_tested_without_a_system(shop: Shop) -> None:
    (flow,) = Pair("Chain").flows
    assert run_to_end(flow, {"sku": "pen"}, tools=shop.workflows.tools())["output"] == 216


def test_the_body_of_a_chord_does_not_run_after_an_error_and_somebody_is_told(shop: Shop) -> None:
    result, run = shop.both("Chord error")
    # With `propagate` it is the error of the header, if that is known already when one asks.
    assert isinstance(result.get(timeout=WAIT_S, propagate=False), ChordError)
    assert shop.output(run) == "a price is missing"
    statuses = {step["name"]: step["status"] for step in run.get()["steps"] if step["item"] is None}
    assert statuses == {"prices": "failed", "total": "skipped", "missing": "done"}
    shop.system.until(lambda: shop.log() == ["a price is missing"] * 2, "both to be told")


def test_a_chord_waits_for_ever_for_what_the_broker_lost_and_a_flow_does_not(shop: Shop) -> None:
    with _busy_worker(shop):
        result, run = shop.both("Chord that never fires")
        keys = ["shop.idle", *_keys("idle")]
        with shop.system.redis() as client:
            shop.system.until(lambda: client.exists(*keys) == 2, "both queues to be filled")
            assert client.delete(*keys) == 2
    assert shop.output(run) == 700
    assert shop.system.count_events("step_resent") >= 1
    with pytest.raises(CeleryTimeout):
        result.get(timeout=0.5)
    # All that is left of it is a count of one part, which nothing will ever change.
    assert result.state == "PENDING"


def test_maps_and_chunks_are_items(shop: Shop) -> None:
    (left,), (right,) = shop.canvas("map, starmap, chunks"), shop.flow("map, starmap, chunks")
    assert left["mapped"].get(timeout=WAIT_S) == [200, 500]
    chunks = left["chunked"].get(timeout=WAIT_S)
    assert chunks == [[400, 1500], [900]]
    whole = left["starred"].get(timeout=WAIT_S)
    assert (
        whole == [each for chunk in chunks for each in chunk] == shop.output(right["run"]) == [400, 1500, 900]
    )


def test_links_follow_success_and_failure(shop: Shop) -> None:
    (left,), (right,) = shop.canvas("link, link_error"), shop.flow("link, link_error")
    for sku, noted in (("pen", "200"), ("gold", "not there")):
        left["ask_price"](sku)
        shop.output(right["start_price"](sku))
        shop.system.until(lambda noted=noted: shop.log().count(noted) == 2, f"{noted} twice")  # type: ignore[misc]


def test_what_is_to_begin_later_does(shop: Shop) -> None:
    before = time.time()
    (left,), (right,) = shop.canvas("ETA, countdown"), shop.flow("ETA, countdown")
    assert left["result"].get(timeout=WAIT_S) == shop.output(right["run"]) == 200
    assert shop.output(right["second"]) == 216
    assert time.time() - before >= 1.5
    for run, name in ((right["run"], "price"), (right["second"], "price")):
        (step,) = [each for each in run.get()["steps"] if each["name"] == name]
        assert datetime.fromisoformat(step["ready_at"]).timestamp() - before >= 1.4


def test_an_eta_runs_twice_and_a_delay_once(shop: Shop) -> None:
    with shop.worker("later", "shop.later", SHOP_VISIBILITY_S="1"):
        _, run = shop.both("ETA that runs twice")
        shop.output(run)
        shop.system.until(lambda: shop.log().count("eta") > 1, "the ETA to run again")
    assert shop.log().count("delay") == 1


def test_an_entry_of_beat_calls_a_task_or_starts_a_run(shop: Shop) -> None:
    (_,), (_,) = shop.canvas("Beat"), shop.flow("Beat")
    for name in ("wfcelery-tick", "wfcelery-watchdog"):  # nobody needs them here
        shop.app.conf.beat_schedule.pop(name, None)
    scheduler = Scheduler(app=shop.app)
    shop.system.until(lambda: scheduler.tick() and {"restock", "monday"} <= set(shop.log()), "both entries")
    assert {run["key"] for run in shop.workflows.list(flow="nightly")} == {"monday"}


def test_what_has_not_begun_can_be_called_off(shop: Shop) -> None:
    result, run = shop.both("Revoke: queued")
    with pytest.raises(TaskRevokedError):
        result.get(timeout=WAIT_S)
    assert run.status == "cancelled"
    (cancelled,) = shop.system.events(run.id, "run_cancelled")
    assert "no longer wanted" in json.dumps(cancelled)
    assert shop.log() == []


def test_what_has_begun_goes_on_and_nothing_follows_it(shop: Shop) -> None:
    left, right = shop.canvas("Revoke: running"), shop.flow("Revoke: running")
    result, run = next(left)["result"], next(right)["run"]
    shop.until_noted("left begins", "right begins")
    next(left)
    next(right)
    assert run.status == "cancelled"
    assert result.get(timeout=WAIT_S) == "left"
    shop.until_noted("left ends", "right ends")
    shop.system.finish([run.id])
    (step,) = [each for each in run.get()["steps"] if each["name"] == "nap"]
    assert (step["status"], step["result"]) == ("done", "right")
    assert "never" not in shop.log()


def test_what_has_begun_can_be_killed(shop: Shop) -> None:
    left, right = shop.canvas("Revoke: terminate"), shop.flow("Revoke: terminate")
    result, run = next(left)["result"], next(right)["run"]
    shop.until_noted("left begins", "right begins")
    next(left)
    next(right)
    with pytest.raises(TaskRevokedError):
        result.get(timeout=WAIT_S)
    found = run.wait(timeout_s=WAIT_S)
    assert (found["status"], found["error"]["type"]) == ("failed", "revoked")
    assert set(shop.log()) == {"left begins", "right begins"}


def test_results_and_states_are_asked_for(shop: Shop) -> None:
    (left,), (right,) = shop.canvas("AsyncResult"), shop.flow("AsyncResult")
    assert [left["value"], left["state"], left["again"]] == [200, "SUCCESS", 200]
    assert [right["value"], right["state"], right["again"]] == [200, "completed", 200]
    assert left["unknown"] == "PENDING"
    with pytest.raises(NotFound):
        shop.workflows.get("0" * 26)

    with pytest.raises(KeyError):
        left["cost"].delay("gold").get(timeout=WAIT_S)
    failed = shop.workflows.start("one", {"sku": "gold"}).wait(timeout_s=WAIT_S)
    assert failed["status"] == "failed"
    assert failed["error"] == {"type": "KeyError", "message": "step price failed: 'gold'"}

    with pytest.raises(CeleryTimeout):
        left["cost"].apply_async(("pen",), countdown=2).get(timeout=0.1)
    waits = shop.start({"wait": {"wait": {"signal": "never"}, "done": True}})
    with pytest.raises(TimedOut):
        waits.wait(timeout_s=0.1)
    waits.cancel()


def test_one_task_id_is_two_tasks_and_one_key_one_run(shop: Shop) -> None:
    (_,), (right,) = shop.canvas("task_id"), shop.flow("task_id")
    first, second = right["runs"]
    assert (first.id, first.created, second.created) == (second.id, True, False)
    shop.until_noted("A7", "B8")
    shop.system.until(lambda: shop.log().count("A7") == 2, "the task to run again")
    assert shop.log().count("B8") == 1
    first.cancel()


def test_what_is_more_urgent_goes_first(shop: Shop) -> None:
    with _busy_worker(shop), _busy_host(shop):
        shop.both("Priority")
    noted = shop.until_noted("left low", "left high", "right low", "right high")
    assert noted.index("left high") < noted.index("left low")
    assert noted.index("right high") < noted.index("right low")


def test_a_task_and_a_step_have_queues(shop: Shop) -> None:
    result, run = shop.both("Routing")
    assert result.get(timeout=WAIT_S)["by"] == "shop"
    assert shop.output(run)["by"] == "ours"
    assert run.get()["steps"][0]["status"] == "done"


def test_a_worker_of_the_host_takes_steps_from_its_own_queue(shop: Shop) -> None:
    environment = {"WFCELERY_TOOLS": APP, "WFCELERY_LEASE_S": "4"}
    with shop.worker("both", "shop.both", "wfcelery.steps", **environment):
        run = shop.start({"who": {"tool": "shop.who", "queue": "shop.both", "done": True}})
        result = shop.app.send_task("shop.who", queue="shop.both")
        assert shop.output(run)["by"] == result.get(timeout=WAIT_S)["by"] == "both"


def test_what_comes_to_a_worker_that_does_not_know_it_is_dropped_and_the_worker_goes_on(shop: Shop) -> None:
    host, _, ours = shop.system.processes[:3]
    run = shop.start({"who": {"tool": "shop.who", "queue": "shop.mail", "done": True}})
    lost = shop.app.send_task("shop.who", queue="reports")
    sentence = "steps arrive at a Celery worker that is not set up for them; start it with `wfcelery worker`"
    shop.system.until(lambda: sentence in host.said(), "the host's worker to complain")
    shop.system.until(
        lambda: "Received unregistered task of type 'shop.who'" in ours.said(), "ours to complain"
    )
    result, after = shop.both("Routing")
    assert [result.get(timeout=WAIT_S)["by"], shop.output(after)["by"]] == ["shop", "ours"]
    assert (lost.state, run.status) == ("PENDING", "running")
    run.cancel()


def test_a_task_that_retries_by_itself_succeeds_at_the_second_try(shop: Shop) -> None:
    result, run = shop.both("Retry, backoff")
    assert result.get(timeout=WAIT_S) == shop.output(run) == {"order": "A7", "tries": 2}
    first, second = run.get()["steps"]
    assert (first["status"], first["error"]["message"]) == ("failed", "ConnectionError: the bank is busy")
    assert second["status"] == "done"


def test_so_many_in_a_second_or_so_many_at_a_time(shop: Shop) -> None:
    (left,), (right,) = shop.canvas("Rate limit"), shop.flow("Rate limit")
    begun = time.monotonic()
    assert [each.get(timeout=WAIT_S) for each in left["results"]] == ["left 0", "left 1", "left 2"]
    assert time.monotonic() - begun > 0.4
    assert shop.output(right["run"]) == ["right 1", "right 2", "right 3"]
    noted = [line for line in shop.log() if line.startswith("right")]
    assert noted == [f"right {n} {what}" for n in (1, 2, 3) for what in ("begins", "ends")]


def test_results_expire_and_runs_do_not(shop: Shop) -> None:
    result, run = shop.both("Result expiry")
    assert result.get(timeout=WAIT_S) == shop.output(run) == 200
    with shop.system.redis() as client:
        key = f"celery-task-meta-{result.id}"
        assert 3500 < int(client.ttl(key)) <= 3600
        client.pexpire(key, 0)  # an hour later
        assert AsyncResult(result.id, app=shop.app).state == "PENDING"
        expiring = [each for each in client.scan_iter("*") if run.id.encode() in each]
    assert expiring == []
    assert shop.workflows.get(run.id)["output"] == 200


def test_what_took_its_process_with_it_is_tried_again(shop: Shop) -> None:
    result, run = shop.both("acks_late")
    assert result.get(timeout=WAIT_S) == shop.output(run) == 2
    first, second = run.get()["steps"]
    assert (first["status"], first["error"]["type"], second["status"]) == ("failed", "lost", "done")


def test_flower_shows_both(shop: Shop) -> None:
    flower = start_flower(shop.system)

    def seen() -> bool:
        """Run both; nothing if Flower had not yet asked for all events."""
        result, run = shop.both("Flower")
        assert result.get(timeout=WAIT_S) == shop.output(run) == 200
        tasks = flower.tasks()
        ours = {each["name"] for name, each in tasks.items() if run.id in name}
        return ours == {"one.price"} and tasks.get(result.id, {}).get("name") == "shop.cost"

    shop.system.until(seen, "Flower to show a task and a step")


# -- inside a task


def test_a_bound_task_that_ignores_its_result_and_one_with_defaults_are_steps(shop: Shop) -> None:
    found = shop.output(shop.start({"who": {"tool": "shop.who", "done": True}}))
    assert (found["by"], found["task"], found["retries"]) == ("ours", "shop.who", 0)
    assert (
        shop.output(shop.start({"x": {"tool": "shop.note", "args": {"text": "kept"}, "done": True}}))
        == "kept"
    )
    assert shop.output(shop.start({"x": {"tool": "shop.multiply", "args": {"cents": 3}, "done": True}})) == 3


def test_how_often_is_for_the_flow_to_say_and_not_for_the_task(shop: Shop) -> None:
    insist = shop.app.tasks["shop.insist"]
    with pytest.raises(insist.MaxRetriesExceededError):
        insist.delay(2).get(timeout=WAIT_S)
    step = {"tool": "shop.insist", "args": {"times": 2}, "done": True}
    assert shop.output(shop.start({"insist": step})) == 3
    once = shop.start({"insist": {**step, "retry": {"max_attempts": 1}}}).wait(timeout_s=WAIT_S)
    assert once["status"] == "failed"
    assert once["error"]["message"] == "step insist failed: the task asks to be tried again"


def test_the_time_limit_of_a_step_is_its_own_and_is_raised_in_the_task(shop: Shop) -> None:
    steps = {"tool": "shop.count", "args": {"seconds": 1.3}, "done": True}
    runs = [shop.start({"count": steps}), shop.start({"count": {**steps, "timeout_s": 0.5}})]
    result = shop.app.tasks["shop.count"].delay(1.3)
    assert result.get(timeout=WAIT_S) == "as far as I came"
    assert [shop.output(run) for run in runs] == ["all of it", "as far as I came"]


def test_what_a_task_sends_goes_through_its_app_to_the_hosts_own_workers(shop: Shop) -> None:
    assert (
        shop.output(shop.start({"pack": {"tool": "shop.pack", "args": {"order": "A7"}, "done": True}}))
        == "A7"
    )
    shop.until_noted("A7 is packed, says shop")


@contextmanager
def _busy_worker(shop: Shop) -> Iterator[None]:
    """Our worker has one step in hand and one more beside it, for the whole of the block."""
    with _holding(shop, "ours"):
        step = {"tool": "shop.hold", "args": {"name": "ours"}, "done": True}
        runs = [shop.start({"hold": step}) for _ in range(2)]
        shop.until_noted("ours holds")
        _until_taken(shop, *_keys("wfcelery.steps"))
        shop.system.until(lambda: shop.system.out() == len(runs), "both to be with the worker")
        yield
    for run in runs:
        shop.output(run)


@contextmanager
def _busy_host(shop: Shop) -> Iterator[None]:
    """The same of the host's worker."""
    with _holding(shop, "host"):
        results = [shop.app.tasks["shop.hold"].delay("host") for _ in range(2)]
        shop.until_noted("host holds")
        _until_taken(shop, "shop")
        yield
    for each in results:
        each.get(timeout=WAIT_S)


@contextmanager
def _holding(shop: Shop, name: str) -> Iterator[None]:
    """As long as the key is there `shop.hold` does not end."""
    with shop.system.redis() as client:
        client.set(f"shop.hold.{name}", 1)
        try:
            yield
        finally:
            client.delete(f"shop.hold.{name}")


def _until_taken(shop: Shop, *keys: str) -> None:
    with shop.system.redis() as client:
        shop.system.until(lambda: client.exists(*keys) == 0, "the queue to be empty")


def _keys(queue: str) -> list[str]:
    """Name the lists of a queue, one for each line of priority."""
    return [Names().queue_key(queue, each) for each in (0, 3, 6, 9)]
