"""People are told of gates, reminders, decisions and failures: by real processes, through a real server."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, inspect, text

from tests.notify.receiver import Received, Receiver, receiving
from tests.system.system import SECRET, Process, System
from wfcelery.broker.names import NOTIFY_QUEUE, NOTIFY_TASK, Names
from wfcelery.broker.task_message import task_message
from wfcelery.core.messages import Decide, Principal
from wfcelery.core.values import Json
from wfcelery.executor.answers import new_command_id
from wfcelery.wire.keys import keyring
from wfcelery.wire.link import read_link
from wfcelery.wire.seal import Seal

BASE = "https://flows.example/ops"
TOKEN = re.compile(rf"{BASE}/a/(\S+)")
POLICY = """
[users.ann]
allow = ["start", "define", "read", "cancel", "retry"]
notify = ["{ann}"]
[users.bob]
allow = ["decide"]
notify = ["{bob}"]
[users.cleo]
groups = ["ops"]
notify = ["{cleo}"]
[users.dora]
groups = ["ops"]
notify = ["{dora}"]
[users.mute]
allow = ["decide"]
[groups.ops]
allow = ["decide"]
[channels]
ops = ["{channel}"]
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def environment(system: System, receiver: Receiver) -> dict[str, str]:
    path = system.folder / "people.toml"
    names = ("ann", "bob", "cleo", "dora", "channel")
    path.write_text(POLICY.format(**{name: receiver.address(name) for name in names}))
    return {"WFCELERY_POLICY": str(path), "WFCELERY_BASE_URL": BASE, "WFCELERY_NOTIFY": "channel:ops"}


def begin(system: System, receiver: Receiver, *options: str) -> tuple[Process, Process, Process]:
    told = environment(system, receiver)
    processes = (
        system.executor(ready=None, **told),
        system.worker(ready=None),
        system.spawn("notifier", *options, ready=None, **told),
    )
    system.ready(*processes)
    return processes


def gated(*, tool: str = "act", **gate: Json) -> Json:
    steps: dict[str, Json] = {
        "gate": {"approval": {"approvers": ["bob"], **gate}, "next": "pay"},
        "pay": {"tool": tool, "args": {"value": "{{input.sum}}"}, "done": True, "retry": {"max_attempts": 1}},
    }
    return {"name": "ship", "start": "gate", "steps": steps}


def got(system: System, receiver: Receiver, path: str, title: str, count: int = 1) -> list[Received]:
    """Wait until so many notices with a title have come to a place."""

    def there() -> list[Received]:
        found = [each for each in receiver.at(path) if each.title == title]
        return found if len(found) >= count else []

    return system.until(there, f"{title!r} at {path}")


def links(received: list[Received]) -> list[str]:
    return [token for each in received for token in TOKEN.findall(each.body)]


def decide(system: System, run: str, by: str, *, approve: bool) -> None:
    request = Decide(new_command_id(), run, "gate", approve=approve, by=Principal(by), comment="as I said")
    system.push(Seal(keyring((SECRET,))).write(request))


def statuses(system: System, run: str) -> dict[tuple[str, str], tuple[str, int, str | None]]:
    """How the notices of a run stand, by kind and recipient."""
    rows = system.query(f"SELECT kind, recipient, status, tries, error FROM notices WHERE run_id = '{run}'")  # noqa: S608
    return {
        (str(row[0]), str(row[1])): (str(row[2]), int(str(row[3])), None if row[4] is None else str(row[4]))
        for row in rows
    }


def every_text(system: System) -> str:
    """Everything that the tables hold."""
    engine = create_engine(system.database_url)
    try:
        with engine.connect() as conn:
            return "\n".join(
                str(tuple(row))
                for table in inspect(engine).get_table_names()
                for row in conn.execute(text(f'SELECT * FROM "{table}"'))  # noqa: S608
            )
    finally:
        engine.dispose()


def test_an_approver_gets_a_link_the_channel_none_and_the_starter_the_decision(
    system: System, receiver: Receiver
) -> None:
    begin(system, receiver)
    run = system.start(gated(timeout_s=3600), {"sum": 1200})
    title = "Please decide: gate of ship"
    to_bob = got(system, receiver, "bob", title)
    to_channel = got(system, receiver, "channel", "Waits for a decision: gate of ship")
    (token,) = links(to_bob)
    link = read_link(keyring((SECRET,)), token, time.time())
    assert (link.run_id, link.step, link.attempt, link.approver) == (run, "gate", 1, "bob")
    assert 3000 < link.expires_at - time.time() <= 3600
    assert to_bob[0].body.endswith("    value = 1200")
    assert links(to_channel) == []
    assert f"Console: {BASE}/runs/{run}\n" in to_channel[0].body

    decide(system, run, "bob", approve=False)
    system.finish([run])
    for place in ("ann", "channel"):
        (told,) = got(system, receiver, place, "Denied: gate of ship")
        said = "gate was denied by bob.\nComment: as I said\nWith that, the run is cancelled.\n"
        assert told.body.startswith(said)
    wanted = {
        ("gate_opened", "bob"),
        ("gate_opened", "channel:ops"),
        ("gate_decided", "ann"),
        ("gate_decided", "channel:ops"),
    }
    system.until(
        lambda: statuses(system, run) == dict.fromkeys(wanted, ("sent", 1, None)),
        "all notices to be recorded",
    )
    assert links(receiver.received) == [token]


def test_the_link_of_a_notice_shows_and_decides_on_the_web(sqlite_system: System, receiver: Receiver) -> None:
    system = sqlite_system
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}/flows"
    told = environment(system, receiver) | {"WFCELERY_BASE_URL": base}
    web = system.spawn("web", "--port", str(port), ready=None, **told)
    system.ready(
        system.executor(ready=None, **told),
        system.worker(ready=None),
        system.spawn("notifier", ready=None, **told),
    )
    run = system.start(gated(), {"sum": 5})
    (asked,) = got(system, receiver, "bob", "Please decide: gate of ship")
    (url,) = re.findall(rf"^{base}/a/\S+$", asked.body, re.MULTILINE)
    with httpx.Client() as client:
        system.until(lambda: answers(port), "the web to listen")
        page = client.get(url)
        assert page.status_code == 200, page.text
        assert system.workflows.get(run)["status"] == "paused"
        (csrf,) = re.findall(r'name="csrf" value="([^"]+)"', page.text)
        decided = client.post(url, data={"csrf": csrf, "decision": "approve", "comment": "fine"})
        assert decided.status_code == 200, decided.text
        system.finish([run])
        assert system.workflows.get(run)["output"] == 5
        assert client.post(url, data={"csrf": csrf, "decision": "deny"}).status_code == 409
    assert url.rpartition("/")[2] not in web.said()


def test_a_reminder_brings_a_link_again_to_who_has_not_voted(
    sqlite_system: System, receiver: Receiver
) -> None:
    system = sqlite_system
    begin(system, receiver)
    run = system.start(gated(approvers=["group:ops"], quorum=2, remind_every_s=1), {"sum": 1})
    got(system, receiver, "cleo", "Please decide: gate of ship")
    decide(system, run, "cleo", approve=True)
    system.until(lambda: system.events(run, "vote_cast"), "the vote")
    seen = len(receiver.at("dora"))
    system.until(lambda: len(receiver.at("dora")) >= seen + 2, "two reminders more")
    reminder = receiver.at("dora")[-1]
    assert reminder.title == "Still to be decided: gate of ship"
    assert "It takes 2 approvals; so far: cleo\n" in reminder.body
    (token,) = links([reminder])
    assert read_link(keyring((SECRET,)), token, time.time()).approver == "dora"
    # One may have been on its way while the vote was cast.
    assert len([each for each in receiver.at("cleo") if each.title.startswith("Still")]) <= 2
    decide(system, run, "dora", approve=True)
    system.finish([run])


def test_who_is_asked_after_the_time_is_up_gets_a_link(sqlite_system: System, receiver: Receiver) -> None:
    system = sqlite_system
    begin(system, receiver)
    gate = gated(timeout_s=2, on_timeout="escalate", escalate_to=["cleo"])
    run = system.start(gate, {"sum": 1})
    (told,) = got(system, receiver, "cleo", "Nobody decided yet: gate of ship")
    (token,) = links([told])
    assert read_link(keyring((SECRET,)), token, 0.0).approver == "cleo"
    (denied,) = got(system, receiver, "ann", "Denied: gate of ship")
    assert denied.body.startswith("gate was denied, for nobody decided in time.\n")
    system.finish([run])


def test_a_failed_run_is_told_to_who_started_it(sqlite_system: System, receiver: Receiver) -> None:
    system = sqlite_system
    begin(system, receiver)
    steps: dict[str, Json] = {"only": {"tool": "fail", "args": {"message": "broken\npipe"}, "done": True}}
    run = system.start(
        {"name": "frail", "start": "only", "steps": steps, "defaults": {"retry": {"max_attempts": 1}}}
    )
    (told,) = got(system, receiver, "ann", "Failed: frail")
    assert re.match(r"The run has failed\.\nError: \w+: .*broken\\npipe", told.body)
    assert f"Run: {run}, started by ann" in told.body


def test_a_service_that_fails_twice_is_asked_a_third_time(sqlite_system: System, receiver: Receiver) -> None:
    system = sqlite_system
    receiver.answers["bob"] = [500, 503]
    begin(system, receiver)
    run = system.start(gated(), {"sum": 1})
    for tries, status in ((1, 500), (2, 503)):
        error = f"bob was not reached: json://: the service answered {status}"
        wanted = ("waiting", tries, error)
        system.until(lambda wanted=wanted: opened(system, run) == wanted, f"try {tries}")  # type: ignore[misc] # bound at once
        make_due(system)
    system.until(lambda: opened(system, run) == ("sent", 3, None), "the third try")
    assert len(receiver.at("bob")) == 3


def test_who_cannot_be_reached_at_all_is_recorded_with_the_reason(
    sqlite_system: System, receiver: Receiver
) -> None:
    system = sqlite_system
    begin(system, receiver)
    run = system.start(gated(approvers=["mute"]), {"sum": 1})
    error = "mute has no address: add one as `notify` in the policy"
    system.until(lambda: opened(system, run, "mute") == ("failed", 1, error), "the failure to be recorded")


def test_a_notice_is_sent_once_however_often_the_bell_rings(
    sqlite_system: System, receiver: Receiver
) -> None:
    system = sqlite_system
    _, _, notifier = begin(system, receiver)
    run = system.start(gated(), {"sum": 1})
    system.until(lambda: opened(system, run)[0] == "sent", "the notice to be sent")
    ids = [str(row[0]) for row in system.query("SELECT id FROM notices")]
    ring(system, *ids, "nothing", "x" * 300)
    ring(system, *ids)
    with system.redis() as client:
        system.until(lambda: client.llen(NOTIFY_QUEUE) == 0, "the bells to be taken")
    assert notifier.terminate() == 0
    assert [each.title for each in receiver.at("bob")] == ["Please decide: gate of ship"]


def test_a_link_is_in_no_table_no_log_no_message_and_no_address_anywhere(
    sqlite_system: System, receiver: Receiver
) -> None:
    system = sqlite_system
    receiver.answers["channel"] = [500]
    begin(system, receiver, "--loglevel", "DEBUG")
    with system.redis() as client, client.monitor() as monitor:
        run = system.start(gated(), {"sum": 1})
        tokens = links(got(system, receiver, "bob", "Please decide: gate of ship"))
        system.until(lambda: opened(system, run)[0] == "sent", "the notice to be recorded")
        system.until(lambda: opened(system, run, "channel:ops")[1] == 1, "the failure to be recorded")
        client.set("wfcelery.end", "now")
        messages: list[str] = []
        while not messages or "wfcelery.end" not in messages[-1]:
            messages.append(str(monitor.next_command()["command"]))
    logs = "\n".join(process.said() for process in system.processes)
    (token,) = tokens
    for where in ("\n".join(messages), logs, every_text(system)):
        assert run in where or "ship" in where or where is logs
        for part in (token, *token.split("."), "json://127.0.0.1"):
            assert part not in where
    assert "channel:ops was not reached: json://: the service answered 500" in logs


def test_a_notifier_without_what_it_needs_says_what_to_set(sqlite_system: System, tmp_path: Path) -> None:
    system = sqlite_system
    process = system.spawn("notifier", ready=None, WFCELERY_SECRET_KEY="", WFCELERY_WORKER_KEY="0" * 64)
    assert process.popen.wait(30) == 2
    assert process.said() == (
        "wfcelery: setting secret_key: is not set; the notifier needs it to sign links "
        "(`wfcelery keys --new` prints a good one)\n"
    )
    process = system.spawn("notifier")
    assert process.said().count("WFCELERY_BASE_URL is not set: notices go out without links") == 1
    assert process.terminate() == 0


def opened(system: System, run: str, recipient: str = "bob") -> tuple[str, int, str | None]:
    return statuses(system, run).get(("gate_opened", recipient), ("", 0, None))


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def make_due(system: System) -> None:
    """Let the time pass that lies between two tries."""
    engine = create_engine(system.database_url)
    with engine.begin() as conn:
        conn.execute(text("UPDATE notices SET next_at = created_at WHERE status = 'waiting'"))
    engine.dispose()


def ring(system: System, *ids: str) -> None:
    with system.redis() as client:
        message = task_message(NOTIFY_TASK, NOTIFY_QUEUE, task_id=ids[0], args=ids)
        client.lpush(Names().queue_key(NOTIFY_QUEUE), message)
