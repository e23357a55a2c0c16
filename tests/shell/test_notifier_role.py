"""The notifier's process, without its process: what it takes, what it says, and what cannot stop it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import redis

from tests.executor.desk import Desk
from tests.notify.parts import POLICY
from tests.notify.receiver import Receiver, receiving
from tests.wire.parts import RING, SECRET
from wfcelery.broker.names import Names
from wfcelery.broker.pulse import Pulse
from wfcelery.core.effects import NoticeKind
from wfcelery.core.values import Json
from wfcelery.errors import InvalidSettings
from wfcelery.executor.messages import Message, NoticeTried
from wfcelery.settings import Settings
from wfcelery.shell.celery_app import make_app
from wfcelery.shell.notifier_role import NotifierRole, check
from wfcelery.store import notices
from wfcelery.store.notices import Notice
from wfcelery.wire.seal import Seal

GATE: Json = {
    "name": "ship",
    "start": "gate",
    "steps": {
        "gate": {"approval": {"approvers": ["bob"]}, "next": "on"},
        "on": {"tool": "echo", "done": True},
    },
}


@pytest.fixture
def client(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url) as made:
        made.flushall()
        yield made
        made.flushall()


@pytest.fixture
def desk(sqlite_url: str) -> Iterator[Desk]:
    made = Desk(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def role(
    client: redis.Redis, desk: Desk, receiver: Receiver, valkey_url: str, tmp_path: Path
) -> Iterator[NotifierRole]:
    policy = tmp_path / "people.toml"
    policy.write_text(POLICY.replace("json://127.0.0.1:9/", receiver.address("")))
    settings = Settings(
        broker_url=valkey_url,
        database_url=f"sqlite:///{desk.database.path}",
        secret_key=(SECRET,),
        policy=str(policy),
    )
    made = NotifierRole(make_app(settings), settings)
    yield made
    made.close()


def planted(desk: Desk, *recipients: str) -> list[str]:
    run, now = desk.start(GATE), desk.clock.now()
    made = [
        Notice(f"{each}-notice", run, "gate", 1, NoticeKind.GATE_OPENED.value, each, now, now + 1e6)
        for each in recipients
    ]
    with desk.database.transaction() as conn:
        notices.put_many(conn, made)
    return [each.id for each in made]


def said(client: redis.Redis) -> list[Message]:
    """What is in the mailbox, as the executor reads it."""
    payloads = cast("list[bytes]", client.lrange(Names().mailbox, 0, -1))
    return [Seal(RING).read(each) for each in payloads]


def test_each_notice_is_sent_and_reported(
    role: NotifierRole, desk: Desk, client: redis.Redis, receiver: Receiver
) -> None:
    role.tell(planted(desk, "bob", "mute"))
    assert [each.path for each in receiver.received] == ["/bob"]
    assert said(client) == [
        NoticeTried("bob-notice", ("bob",)),
        NoticeTried("mute-notice", (), "mute has no address: add one as `notify` in the policy", final=True),
    ]


def test_what_is_no_notice_is_passed_over(
    role: NotifierRole, desk: Desk, client: redis.Redis, receiver: Receiver
) -> None:
    role.tell([None, 7, ["x"], "x" * 1000, "unknown", "\x00\udcff", *planted(desk, "bob")])
    assert said(client) == [NoticeTried("bob-notice", ("bob",))]


def test_a_notice_that_cannot_be_handled_does_not_stop_the_next(
    role: NotifierRole, desk: Desk, client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    ids = planted(desk, "bob", "cleo")
    with desk.database.transaction() as conn:
        conn.exec_driver_sql("UPDATE notices SET data = '[hush' WHERE id = 'bob-notice'")
    role.tell(ids)
    assert said(client) == [
        NoticeTried("bob-notice", (), "the notifier failed: JSONDecodeError"),
        NoticeTried("cleo-notice", ("cleo",)),
    ]
    assert "notice bob-notice could not be handled: JSONDecodeError at " in caplog.text
    assert "hush" not in caplog.text


def test_its_sign_of_life_is_on_the_broker(role: NotifierRole, client: redis.Redis) -> None:
    role.beat()
    assert list(Pulse(client, Names()).pulses()) == ["notifier"]


def test_without_the_secret_key_there_is_no_notifier(valkey_url: str) -> None:
    settings = Settings(broker_url=valkey_url)
    with pytest.raises(InvalidSettings, match="the notifier needs it to sign links"):
        NotifierRole(make_app(settings), settings)


@pytest.mark.parametrize(
    "url",
    [
        "flows.example.org",
        "//flows.example.org",
        "ftp://flows.example.org",
        "javascript:alert(1)",
        "https://",
        "https://h/?a=b",
        "https://h/#x",
        "https://h/a b",
        "https://h\nX: y",
        "http://[",
    ],
)
def test_what_no_link_can_begin_with_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        check(Settings(secret_key=(SECRET,), base_url=url))
    said = "must be where people reach `wfcelery web`, like https://example.org/flows"
    assert str(refused.value) == f"setting base_url: {said}"


@pytest.mark.parametrize("url", ["https://h", "http://127.0.0.1:8765/", "https://h/a/b", "http://[::1]:80"])
def test_a_link_begins_with_where_the_web_is(url: str) -> None:
    check(Settings(secret_key=(SECRET,), base_url=url))
