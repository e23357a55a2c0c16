"""Agents that call our tools with the official client: over stdin and stdout, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.proof import problems
from tests.system.system import System
from wfcelery.core.messages import Principal
from wfcelery.rights.token import hash_of

T = TypeVar("T")
TOOLS = "tests.system.ledger,tests.system.guarded"
READ_S = 60.0
NAMES = ("robo", "reader", "stan", "stan_agent", "ann")
TOKENS = {name: f"wfc_test-token-of-{name}" for name in NAMES}
POLICY = """
[users.robo]
kind = "agent"
allow = ["read", "start", "define", "decide", "cancel"]
tokens = ["{robo}"]

[users.reader]
kind = "agent"
allow = ["read:open*"]
tokens = ["{reader}"]

[users.stan]
allow = ["read", "start", "define", "decide", "cancel"]
tokens = ["{stan}", {{hash = "{stan_agent}", kind = "agent"}}]

[users.hoarder]
allow = ["start", "define"]

[users.ann]
allow = ["read", "decide"]
tokens = ["{ann}"]
"""
APPROVER = Principal("ann")
LINK = re.compile(r"token=|/a/[\w-]{20}")
DOOR = "the-key-of-the-front-door"


class Said(Exception):
    """An error that a tool has given."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.error = error

    @property
    def code(self) -> str:
        return str(self.error["code"])


@dataclass(slots=True)
class Agent:
    """A client that is connected."""

    client: Client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Call a tool and give what it gives; the client holds it to the output schema."""
        result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert isinstance(content, types.TextContent)
        assert LINK.search(content.text) is None, content.text
        said: dict[str, Any] = json.loads(content.text)
        if result.is_error:
            raise Said(said)
        assert result.structured_content == said
        return said

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Call a tool that must not do it, and give what it says."""
        try:
            given = await self.call(tool, **arguments)
        except Said as said:
            return said.error
        raise AssertionError(given)

    async def read(self, uri: str) -> str:
        """Read a resource."""
        [content] = (await self.client.read_resource(uri)).contents
        assert isinstance(content, types.TextResourceContents)
        return content.text


Play = Callable[[Agent], Coroutine[Any, Any, T]]


@dataclass(slots=True)
class Agency:
    """A system with a policy, a console, and ways for agents to reach it."""

    system: System
    policy: Path
    url: str = ""

    def environment(self, token: str | None) -> dict[str, str]:
        """What `wfcelery mcp` is given."""
        given = self.system.environment() | {"WFCELERY_TOOLS": TOOLS}
        if token is None:
            return given | {"WFCELERY_USER": "stan"}
        return given | {"WFCELERY_POLICY": str(self.policy), "WFCELERY_TOKEN": token}

    def by_stdio(self, who: str | None, play: Play[T]) -> T:
        """Play with a process of `wfcelery mcp`; None: without a policy and a token."""
        token = None if who is None else TOKENS[who]
        server = StdioServerParameters(
            command=sys.executable,
            args=["-W", "ignore", "-m", "wfcelery", "mcp"],
            env=self.environment(token),
            cwd=self.system.folder,
        )

        async def run() -> T:
            async with Client(server, read_timeout_seconds=READ_S) as client:
                outcome = await _outcome(play, client)
            return outcome.result()

        return asyncio.run(run())

    def by_http(self, who: str, play: Play[T], mode: str = "auto") -> T:
        """Play with the console's process."""

        async def run() -> T:
            headers = {"Authorization": f"Bearer {TOKENS[who]}"}
            async with httpx2.AsyncClient(headers=headers, timeout=READ_S) as http:
                transport = streamable_http_client(f"{self.url}/mcp", http_client=http)
                async with Client(transport, read_timeout_seconds=READ_S, mode=mode) as client:
                    outcome = await _outcome(play, client)
            return outcome.result()

        return asyncio.run(run())

    def play(self, way: str, who: str, play: Play[T]) -> T:
        """Play over `stdio` or `http`."""
        return self.by_stdio(who, play) if way == "stdio" else self.by_http(who, play)

    def is_served(self) -> bool:
        """Whether the console answers."""
        try:
            return httpx2.get(f"{self.url}/static/live.js").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def recorded(self, kind: str, actor: str, run: str | None = None) -> list[tuple[object, ...]]:
        """The refusals of a kind of request that somebody was given: run, code, reason."""
        of_run = "" if run is None else f" AND run_id = '{run}'"
        query = "SELECT run_id, code, reason FROM commands WHERE NOT ok"
        return self.system.query(f"{query} AND kind = '{kind}' AND actor = '{actor}'{of_run} ORDER BY at")


@contextmanager
def agency(folder: Path, database_url: str | None = None) -> Iterator[Agency]:
    """Run an executor, a worker and a console, under a policy."""
    url = database_url or f"sqlite:///{folder}/wfcelery.db"
    system = System(folder, url)
    policy = folder / "people.toml"
    policy.write_text(POLICY.format(**{name: hash_of(token) for name, token in TOKENS.items()}))
    made = Agency(system, policy)
    given = {"WFCELERY_POLICY": str(policy), "WFCELERY_TOOLS": TOOLS}
    port = _free_port()
    made.url = f"http://127.0.0.1:{port}"
    try:
        web = system.spawn("web", "--port", str(port), ready=None, **given)
        system.ready(
            system.executor(ready=None, **given),
            system.worker(ready=None, WFCELERY_TOOLS=TOOLS, WFSECRET_DOOR=DOOR),
        )
        system.until(lambda: web.popen.poll() is not None or made.is_served(), "the console to answer")
        assert web.popen.poll() is None, web.said()
        yield made
    except BaseException:
        print(system.report())  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        system.close()
    assert problems(url) == []


async def _outcome(play: Play[T], client: Client) -> asyncio.Task[T]:
    """Play to the end, however it ends: what is raised among the client's own tasks is hard to read."""
    task = asyncio.create_task(play(Agent(client)))
    await asyncio.wait([task])
    return task


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
