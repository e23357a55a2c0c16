"""Reaching the broker: every URL that Celery takes, bounded waits, and no password in any message."""

from __future__ import annotations

import errno
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.broker.post import NAMES, letter, mailbox
from tests.services import valkey as valkey_service
from wfcelery.broker.client import check_server, connect, key_prefix, reaching
from wfcelery.broker.pulse import Pulse
from wfcelery.broker.sender import Sender
from wfcelery.errors import InvalidSettings, NotReachable

NEEDS = "wfcelery needs Redis or Valkey, like redis://localhost:6379/0"
PASSWORD = "hunter2"  # noqa: S105 - of nothing


def place(url: str, *names: str) -> tuple[object, ...]:
    kwargs = connect(url).connection_pool.connection_kwargs
    return tuple(kwargs.get(name) for name in names)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://", ("localhost", 6379, 0, None, None)),
        ("redis://localhost", ("localhost", 6379, 0, None, None)),
        ("redis://10.0.0.1:7000/3", ("10.0.0.1", 7000, 3, None, None)),
        ("redis://:s%40fe@host/", ("host", 6379, 0, None, "s@fe")),
        ("redis://ann:pw@host:1/2", ("host", 1, 2, "ann", "pw")),
        ("redis://[::1]:6380//1", ("::1", 6380, 1, None, None)),
        ("rediss://ann:pw@host:1/2", ("host", 1, 2, "ann", "pw")),
    ],
)
def test_a_url_says_where_the_server_is(url: str, expected: tuple[object, ...]) -> None:
    assert place(url, "host", "port", "db", "username", "password") == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis+socket:///run/valkey.sock", ("/run/valkey.sock", 0, None)),
        ("redis+socket:///run/valkey.sock?virtual_host=2", ("/run/valkey.sock", 2, None)),
        ("redis+socket://:pw@/run/valkey.sock?virtual_host=/2", ("/run/valkey.sock", 2, "pw")),
        ("unix:///run/valkey.sock?db=4&password=pw", ("/run/valkey.sock", 4, "pw")),
    ],
)
def test_a_url_may_name_a_socket(url: str, expected: tuple[object, ...]) -> None:
    assert place(url, "path", "db", "password") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ("required", True, None)),
        ("?ssl_cert_reqs=CERT_REQUIRED&ssl_ca_certs=/ca.pem", ("required", True, "/ca.pem")),
        ("?ssl_cert_reqs=CERT_OPTIONAL&ssl_check_hostname=False", ("optional", False, None)),
        ("?ssl_cert_reqs=CERT_NONE", ("none", True, None)),
        ("?ssl_cert_reqs=none", ("none", True, None)),
    ],
)
def test_a_secure_url_takes_what_celery_takes(query: str, expected: tuple[object, ...]) -> None:
    url = f"rediss://host/0{query}"
    assert place(url, "ssl_cert_reqs", "ssl_check_hostname", "ssl_ca_certs") == expected
    assert isinstance(connect(url).connection_pool.make_connection(), redis.SSLConnection)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("amqp://guest:hunter2@localhost//", f"amqp:// cannot be used; {NEEDS}"),
        ("memory://", f"memory:// cannot be used; {NEEDS}"),
        ("sentinel://localhost:26379", f"sentinel:// cannot be used; {NEEDS}"),
        ("", f"it is not a URL; {NEEDS}"),
        ("hunter2", f"it is not a URL; {NEEDS}"),
        ("localhost:6379", f"it is not a URL; {NEEDS}"),
        ("://host", f"it is not a URL; {NEEDS}"),
        ("redis://:hunter2@host/zero", f"the database must be a number; {NEEDS}"),
        ("redis://:hunter2@host:port/0", f"its host or port cannot be read; {NEEDS}"),
        ("redis://:hunter2@host:99999/0", f"its host or port cannot be read; {NEEDS}"),
        ("redis://[::1/0", f"its host or port cannot be read; {NEEDS}"),
        ("redis://a..b/0", f"its host or port cannot be read; {NEEDS}"),
        ("redis://:hunter2@a/0;redis://b/0", f"it names several brokers, name one; {NEEDS}"),
        ("redis+socket://", f"it names no socket; {NEEDS}"),
        (
            "rediss://host?ssl_cert_reqs=maybe",
            "ssl_cert_reqs must be one of CERT_REQUIRED, CERT_OPTIONAL, CERT_NONE",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_without_repeating_it(url: str, reason: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        connect(url)
    assert str(refused.value) == f"setting broker_url: {reason}"


def test_no_wait_is_longer_than_we_allow_and_a_shorter_one_is_kept() -> None:
    def waits(**options: object) -> tuple[object, object]:
        kwargs = connect("redis://localhost?socket_timeout=900", options).connection_pool.connection_kwargs
        return kwargs["socket_connect_timeout"], kwargs["socket_timeout"]

    assert waits() == (2.0, 4.0)
    assert waits(socket_connect_timeout=60, socket_timeout=None) == (2.0, 4.0)
    assert waits(socket_connect_timeout=1, socket_timeout=0.5) == (1.0, 0.5)


def test_the_prefix_is_the_one_that_kombu_uses() -> None:
    assert key_prefix({}) == ""
    assert key_prefix({"global_keyprefix": None}) == ""
    assert key_prefix({"global_keyprefix": "app:"}) == "app:"


def everything(client: redis.Redis) -> dict[str, Callable[[], object]]:
    box, sender, pulse = mailbox(client), Sender(client, NAMES), Pulse(client, NAMES)
    return {
        "push": lambda: sender.push([b"a"]),
        "push nothing": lambda: sender.push([]),
        "ring": sender.ring,
        "length": sender.length,
        "stops_since": lambda: sender.stops_since(0),
        "are_stopped": lambda: sender.are_stopped(["a"]),
        "mailbox push": lambda: box.push(letter("a")),
        "take": lambda: box.take(1),
        "done": box.done,
        "nonce": box.nonce,
        "add_stops": lambda: box.add_stops(["a"]),
        "beat": lambda: pulse.beat("a", 1.0),
        "pulses": pulse.pulses,
        "check_server": lambda: check_server(client),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_refused_connection_is_told_at_once_by_everything_and_without_the_password() -> None:
    port = free_port()
    with connect(f"redis://ann:{PASSWORD}@127.0.0.1:{port}/0") as client:
        begun = time.monotonic()
        for act in everything(client).values():
            with pytest.raises(NotReachable) as trouble:
                act()
            assert str(trouble.value) == (
                f"the broker is out of reach: Error {errno.ECONNREFUSED} connecting to 127.0.0.1:{port}. "
                "Connection refused"
            )
        assert time.monotonic() - begun < 1


def test_a_missing_socket_is_told(tmp_path: Path) -> None:
    with connect(f"redis+socket://:{PASSWORD}@{tmp_path}/none.sock") as client:
        with pytest.raises(NotReachable) as trouble:
            Sender(client, NAMES).ring()
        place = f"nobody listens at {tmp_path}/none.sock"
        assert str(trouble.value) == f"the broker is out of reach: {place}; is `wfcelery up` running there?"


def test_a_host_without_a_name_is_told() -> None:
    with connect("redis://nowhere.invalid/0") as client, pytest.raises(NotReachable):
        Sender(client, NAMES).ring()


def test_words_that_hold_the_password_lose_it() -> None:
    with connect(f"redis://:{PASSWORD}@host/0") as client:
        with pytest.raises(NotReachable) as trouble, reaching(client):
            raise redis.exceptions.ResponseError(f"unknown command AUTH {PASSWORD}.")
        assert str(trouble.value) == "the broker is out of reach: unknown command AUTH ***"
        with pytest.raises(NotReachable) as trouble, reaching(client):
            raise redis.exceptions.TimeoutError
        assert str(trouble.value) == "the broker is out of reach: TimeoutError"


def test_a_server_that_stands_still_is_told_after_one_timeout_and_not_tried_again() -> None:
    server = valkey_service.start()
    try:
        with connect(server.url, {"socket_timeout": 1.5}) as client:
            sender = Sender(client, NAMES)
            sender.push([b"a"])
            server.process.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            with pytest.raises(NotReachable) as trouble:
                sender.push([b"b"])
            assert 1.4 < time.monotonic() - begun < 2.9
            assert str(trouble.value) == "the broker is out of reach: Timeout reading from socket"
            server.process.send_signal(signal.SIGCONT)
            sender.push([b"c"])
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.stop()


def test_a_wrong_password_is_told_without_it(valkey: redis.Redis, valkey_url: str) -> None:
    valkey.config_set("requirepass", "right")
    try:
        with connect(valkey_url.replace("unix://", f"unix://:{PASSWORD}@")) as client:
            with pytest.raises(NotReachable) as trouble:
                Sender(client, NAMES).ring()
            assert str(trouble.value) == (
                "the broker is out of reach: invalid username-password pair or user is disabled"
            )
    finally:
        valkey.config_set("requirepass", "")


def test_a_connection_that_the_server_has_closed_is_made_anew(valkey: redis.Redis, valkey_url: str) -> None:
    with connect(valkey_url) as other:
        sender = Sender(other, NAMES)
        sender.push([b"a"])
        valkey.client_kill_filter(_type="normal", skipme=True)
        sender.push([b"b"])
        assert sender.length() == 2


def test_a_good_server_has_nothing_to_complain_about(valkey: redis.Redis) -> None:
    assert check_server(valkey) == []


def test_a_server_that_may_throw_messages_away_is_named(valkey: redis.Redis) -> None:
    valkey.config_set("maxmemory-policy", "allkeys-lru")
    try:
        (said,) = check_server(valkey)
        assert said == (
            "the broker may throw messages away when its memory is full (maxmemory-policy is allkeys-lru); "
            "set it to noeviction"
        )
    finally:
        valkey.config_set("maxmemory-policy", "noeviction")


def test_a_server_that_may_not_be_asked_is_named(valkey: redis.Redis, valkey_url: str) -> None:
    valkey.acl_setuser("shy", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-info"])
    try:
        with connect(valkey_url.replace("unix://", "unix://shy:x@")) as shy:
            (said,) = check_server(shy)
            assert said == (
                "the broker does not tell its version and memory policy (User shy has no permissions to run "
                "the 'info' command); allow its user the command INFO"
            )
    finally:
        valkey.acl_deluser("shy")


def test_a_server_that_is_too_old_is_named(valkey: redis.Redis) -> None:
    # No such server is at hand: what it would say is put into the mouth of this one's client.
    valkey.set_response_callback(
        "INFO", lambda _, **__: {"redis_version": "6.0.16", "maxmemory_policy": "noeviction"}
    )
    assert check_server(valkey) == [
        "the broker is Redis 6.0.16; wfcelery needs 6.2 or newer, or any Valkey: upgrade the server"
    ]
