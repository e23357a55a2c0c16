"""A served API over a real system, and a client that holds every answer to the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
from jsonschema import Draft202012Validator

from tests.web.server import Site
from tests.workflows.system import SECRET
from wfcelery.rights.token import hash_of
from wfcelery.settings import Settings
from wfcelery.web.api.openapi import document

API: Final = "/api/v1"
DOCUMENT: Final = document()
PEOPLE: Final = {
    "ann": ["admin"],
    "bob": ["read", "decide", "start:gate"],
    "eve": ["read:other*", "start:other*", "define:other*", "cancel:other*"],
    "mute": [],
}
TOKENS: Final = {name: f"wfc_token_of_{name}" for name in (*PEOPLE, "bot")}


def policy() -> str:
    """Who may do what in these tests; `bot` is an agent with every right."""
    parts = []
    for name, allow in {**PEOPLE, "bot": ["admin"]}.items():
        kind = "agent" if name == "bot" else "person"
        parts.append(
            f'[users.{name}]\nkind = "{kind}"\nallow = {allow!r}\n'
            f'tokens = [{{ hash = "{hash_of(TOKENS[name])}" }}]\n'
        )
    return "\n".join(parts)


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """Serve the app on a port of this machine, and give its address."""
    site = Site(settings)
    site.open()
    try:
        yield site.url
    finally:
        site.close()


def settings_for(broker_url: str, database_url: str, **more: Any) -> Settings:  # noqa: ANN401
    return Settings(
        broker_url=broker_url, database_url=database_url, secret_key=(SECRET,), user="ann", **more
    )


class Client:
    """Speaks to the API as somebody; every answer must be one that the document describes."""

    def __init__(self, address: str, headers: Mapping[str, str] | None = None) -> None:
        self.address = address
        self.http = httpx.Client(base_url=address, headers=dict(headers or {}), timeout=30)

    def close(self) -> None:
        self.http.close()

    def get(self, path: str, expect: int = 200, **more: Any) -> Any:  # noqa: ANN401
        return self.ask("GET", path, expect, **more)

    def post(self, path: str, body: Any = None, expect: int = 200, **more: Any) -> Any:  # noqa: ANN401
        return self.ask("POST", path, expect, **({} if body is None else {"json": body}), **more)

    def ask(self, method: str, path: str, expect: int, **more: Any) -> Any:  # noqa: ANN401
        response = self.http.request(method, API + path, **more)
        assert response.status_code == expect, (method, path, response.status_code, response.text)
        check(method, path, response)
        return response.json()


def check(method: str, path: str, response: httpx.Response) -> None:
    """Hold an answer to the document."""
    operation = operation_of(method, path)
    kind = response.headers["content-type"].partition(";")[0]
    assert "token=" not in response.text, "no answer may hold an approval link"
    assert re.search(r"/a/[\w-]{20}", response.text) is None
    if operation is None or response.status_code in (404, 405):
        assert kind == "application/problem+json"
    else:
        described = operation["responses"].get(str(response.status_code))
        assert described is not None, (method, path, response.status_code, response.text)
        schema = described["content"][kind]["schema"]
        faults = list(_validator(schema).iter_errors(response.json()))
        assert faults == [], (method, path, faults, response.text)
    if response.status_code >= 400:
        problem = response.json()
        assert problem["status"] == response.status_code
        assert problem["type"] == f"/problems/{problem['code']}"
        assert problem["detail"]
        assert "Traceback" not in response.text
    assert response.headers["cache-control"] == "no-store"


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    plain = path.partition("?")[0]
    for template, methods in sorted(DOCUMENT["paths"].items(), key=lambda each: -len(each[0])):
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, plain) and method.lower() in methods:
            found: dict[str, Any] = methods[method.lower()]
            return found
    return None


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})
