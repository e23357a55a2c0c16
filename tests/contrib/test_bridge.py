"""Requests of other frameworks through an ASGI app, one by one."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from wfcelery.contrib.bridge import Asked, Body, Exchange, Head, sync_exchange
from wfcelery.core.messages import Principal
from wfcelery.settings import Settings
from wfcelery.web.app import make_app
from wfcelery.web.identity import HOST_USER

ASKED = Asked("POST", "http", "/x/y", "/x", "a=1", (("Host", "h"),), b"body")


async def echo(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
    message = await receive()
    said = f"{scope['method']} {scope['path']} {scope['root_path']} {scope['query_string'].decode()}"
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": f"{said} ".encode(), "more_body": True})
    await send({"type": "http.response.body", "body": message["body"]})


class Endless:
    """A stream that goes on until it is let go."""

    def __init__(self) -> None:
        self.over = threading.Event()

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:  # noqa: ANN401 - same
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            while True:
                await send({"type": "http.response.body", "body": b": x\n\n", "more_body": True})
        finally:
            self.over.set()


async def broken(_scope: Any, _receive: Any, _send: Any) -> None:  # noqa: ANN401 - same
    raise LookupError("nothing here")


async def silent(_scope: Any, _receive: Any, _send: Any) -> None:  # noqa: ANN401 - same
    """Ends without a word."""


def test_a_request_and_its_answer_pass_from_a_thread() -> None:
    head, parts = sync_exchange(echo, ASKED)
    assert head == Head(201, (("content-type", "text/plain"),))
    assert b"".join(parts) == b"POST /x/y /x a=1 body"


def test_a_request_and_its_answer_pass_in_a_loop() -> None:
    async def ask() -> tuple[Head, bytes]:
        exchange = Exchange(echo, ASKED)
        head = await exchange.begin()
        return head, b"".join([part async for part in Body(exchange)])

    head, body = asyncio.run(ask())
    assert (head.status, head.is_stream, body) == (201, False, b"POST /x/y /x a=1 body")


def test_who_goes_away_leaves_no_stream_behind() -> None:
    endless = Endless()
    head, parts = sync_exchange(endless, ASKED)
    assert head.is_stream
    assert next(parts) == b": x\n\n"
    parts.close()
    assert endless.over.wait(10)


def test_an_answer_of_which_nothing_was_read_is_let_go_when_it_is_forgotten() -> None:
    endless = Endless()
    head, parts = sync_exchange(endless, ASKED)
    assert head.is_stream
    del parts
    assert endless.over.wait(10)


def test_who_is_stopped_while_waiting_for_more_in_a_loop_wants_no_more() -> None:
    async def ask() -> None:
        exchange = Exchange(slow, ASKED)
        await exchange.begin()
        waiting = asyncio.create_task(anext(Body(exchange)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(let_go.wait(), 10)

    let_go = asyncio.Event()

    async def slow(_scope: Any, _receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            await asyncio.Event().wait()
        finally:
            let_go.set()

    asyncio.run(ask())


@pytest.mark.parametrize(("app", "error"), [(broken, LookupError), (silent, RuntimeError)])
def test_what_an_app_raises_is_raised(app: Any, error: type[Exception]) -> None:  # noqa: ANN401 - same
    with pytest.raises(error):
        sync_exchange(app, ASKED)


@pytest.mark.parametrize("trusted", [True, False])
def test_who_comes_is_said_by_the_application_only_where_it_is_trusted(tmp_path: Path, trusted: bool) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[users.ann]\nallow = ["read"]\n')
    settings = Settings(
        database_url=f"sqlite:///{tmp_path}/x.db",
        broker_url="redis://127.0.0.1:1",
        secret_key=("a secret of thirty-two characters",),
        policy=str(policy),
    )
    app = make_app(settings, hosts=None, trust_host_user=trusted)
    asked = replace(
        ASKED, method="GET", path="/x/api/v1/runs", query="", body=b"", more={HOST_USER: Principal("ann")}
    )
    head, _ = sync_exchange(app, asked)
    assert head.status == (503 if trusted else 401)  # There is no database; whoever is let in learns that.
    head, _ = sync_exchange(app, replace(asked, more={}))
    assert head.status == 401
    head, _ = sync_exchange(app, replace(asked, more={HOST_USER: "ann"}))
    assert head.status == 401
    head, parts = sync_exchange(app, replace(asked, path="/x/login"))
    assert httpx.Headers(list(head.headers))["content-type"].startswith("text/html")
    assert b"</html>" in b"".join(parts)
