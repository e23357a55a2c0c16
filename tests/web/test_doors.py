"""Every way in: what it asks for, what it says to those who may not, and what every page says to browsers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Mount, Route

from tests.system.system import SECRET
from tests.web.server import TOKENS, House, Page, Site
from wfcelery.errors import InvalidSettings, NotReachable
from wfcelery.rights.token import hash_of
from wfcelery.settings import Settings
from wfcelery.web.app import make_app
from wfcelery.web.doors import Door, all_doors
from wfcelery.web.headers import ALWAYS, POLICY
from wfcelery.web.serving import serve

PUBLIC_MOUNTS = {"static": "style sheets, a script and an icon tell nothing"}
OWN_GUARDS = {"/mcp": "asks for a bearer token itself, takes no cookie; each tool asks for its permission"}
NOBODY = "wfc_test-token-of-nobody"
GUARDED = [door for door in all_doors() if door.permission is not None]


@pytest.fixture(scope="module")
def strict(house: House, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site whose policy knows somebody who may nothing."""
    path = tmp_path_factory.mktemp("strict") / "policy.toml"
    path.write_text(f'[users.nil]\nallow = []\ntokens = ["{hash_of(NOBODY)}"]\n')
    return house.site(policy=str(path))


@pytest.fixture(scope="module")
def run(house: House) -> str:
    return house.ask()


def _path(door: Door, run: str) -> str:
    values = {"run_id": run, "id": run, "step": "ask", "name": "pay", "version": "1", "token": "x"}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values[found[1]], door.path)


def _named(door: Door) -> str:
    return f"{door.method} {door.path}"


def test_every_route_is_a_door_or_a_mount_with_a_reason(site: Site) -> None:
    doors = {(door.path, door.method) for door in all_doors()}
    for route in make_app(site.settings).routes:
        if isinstance(route, Mount):
            assert route.name in PUBLIC_MOUNTS
            continue
        assert isinstance(route, Route)
        assert route.methods or route.path in OWN_GUARDS, f"{route.path} takes every method"
        for method in (route.methods or set()) - {"HEAD"}:
            assert (route.path, method) in doors, f"{method} {route.path} is no door"


def test_every_door_asks_for_a_permission_or_says_why_not() -> None:
    for door in all_doors():
        assert (door.permission is None) == bool(door.open_because), _named(door)
    names = [door.name for door in all_doors()]
    assert len(names) == len(set(names))


def test_what_changes_something_is_never_a_get() -> None:
    acts = re.compile(r"^(do_|start_run|sign_|act_as|.*decide)")
    for door in all_doors():
        if acts.match(door.name):
            assert door.method != "GET", _named(door)


@pytest.mark.parametrize("door", GUARDED, ids=_named)
def test_who_has_not_signed_in_is_sent_away(strict: Site, run: str, door: Door) -> None:
    with strict.browser() as client:
        answer = client.request(door.method, _path(door, run), json={} if door.is_api else None)
    if door.is_api or door.for_programs or door.method != "GET":
        assert answer.status_code == 401, answer.text
    else:
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login?next=")


@pytest.mark.parametrize("door", GUARDED, ids=_named)
def test_who_may_nothing_is_refused(strict: Site, run: str, door: Door) -> None:
    with httpx.Client(base_url=strict.url, headers={"Authorization": f"Bearer {NOBODY}"}) as client:
        answer = client.request(door.method, _path(door, run), json={} if door.is_api else None)
    assert answer.status_code == 403, answer.text
    assert "permission" in answer.text


@pytest.mark.parametrize(
    "door", [door for door in GUARDED if not door.is_api and door.method == "POST"], ids=_named
)
def test_a_form_that_was_not_made_for_the_session_is_refused(site: Site, run: str, door: Door) -> None:
    with site.browser("stan") as client:
        answer = client.post(_path(door, run), data={"csrf": "made-up"})
    assert answer.status_code == 403
    assert "this form is too old" in answer.text


def _walk(client: httpx.Client) -> Iterator[tuple[str, httpx.Response, Page]]:
    """Follow every link of the console, one page of each kind of run and step."""
    waiting, seen = ["/", "/runs", "/flows", "/system", "/approvals", "/login", "/no-such-page"], set[str]()
    while waiting:
        path = waiting.pop(0)
        kind = re.sub(r"[0-9a-hj-km-np-tv-z]{26}", "RUN", path.partition("?")[0])
        if kind in seen:
            continue
        seen.add(kind)
        answer = client.get(path, follow_redirects=True)
        page = Page(answer.text)
        yield path, answer, page
        for tag, told in page.attributes:
            if tag == "a" and told.get("href", "").startswith("/"):
                waiting.append(told["href"])


@pytest.fixture(scope="module")
def walked(site: Site, run: str) -> list[tuple[str, httpx.Response, Page]]:
    with site.browser("stan") as client:
        return list(_walk(client))


def test_the_console_is_walked(walked: list[tuple[str, httpx.Response, Page]]) -> None:
    kinds = {re.sub(r"[0-9a-hj-km-np-tv-z]{26}", "RUN", path.partition("?")[0]) for path, _, _ in walked}
    assert {"/runs", "/flows", "/system", "/approvals", "/runs/RUN", "/runs/RUN/events"} <= kinds
    assert {"/runs/RUN/cancel", "/runs/RUN/pause", "/runs/RUN/steps/ask", "/runs/RUN/gates/ask"} <= kinds


def test_every_page_has_the_same_strict_policy(walked: list[tuple[str, httpx.Response, Page]]) -> None:
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")
    for path, answer, _ in walked:
        for name, value in ALWAYS.items():
            assert answer.headers[name] == value, path
        assert answer.headers["cache-control"] == "no-store", path


def test_no_page_has_anything_that_the_policy_forbids(
    walked: list[tuple[str, httpx.Response, Page]],
) -> None:
    for path, _, page in walked:
        for tag, told in page.attributes:
            assert not any(name == "style" or name.startswith("on") for name in told), (path, tag, told)
            assert tag != "style", path
            assert tag != "script" or told.get("src", "").startswith("/static/"), path
            for name in ("src", "href", "action"):
                assert "//" not in told.get(name, ""), (path, tag, told)


def test_every_page_can_be_used_by_everybody(walked: list[tuple[str, httpx.Response, Page]]) -> None:
    for path, _, page in walked:
        tags = [tag for tag, _ in page.attributes]
        assert tags.count("h1") == 1, path
        assert tags.count("main") == 1, path
        ids = [told["id"] for _, told in page.attributes if "id" in told]
        assert len(ids) == len(set(ids)), path
        labelled = {told["for"] for tag, told in page.attributes if tag == "label" and "for" in told}
        assert labelled <= set(ids), path
        for tag, told in page.attributes:
            if tag in ("input", "select", "textarea") and told.get("type") not in ("hidden", "checkbox"):
                assert told.get("id") in labelled, (path, told)
            if tag == "img":
                assert "alt" in told, path


def test_an_answer_that_nobody_thought_of_is_a_page_with_the_same_headers(site: Site) -> None:
    def broken(_request: object) -> None:
        raise RuntimeError("a secret that stays in the log")

    app = make_app(site.settings)
    app.router.routes.insert(0, Route("/broken", broken))

    async def ask() -> httpx.Response:
        inside = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=inside, base_url="http://127.0.0.1") as client:
            return await client.get("/broken")

    answer = asyncio.run(ask())
    assert answer.status_code == 500
    assert answer.headers["content-security-policy"] == POLICY
    assert "RuntimeError" in answer.text
    assert "secret" not in answer.text


def test_without_a_policy_every_page_says_so_and_one_says_who_one_is(house: House) -> None:
    free = house.site(policy=None, base_url=None)
    with free.browser() as client:
        page = client.get("/runs")
        assert "nobody signs in here" in page.text
        form = Page(page.text).hidden
        assert client.post("/act-as", data={**form, "user": "zoe", "next": "/flows"}).status_code == 303
        assert 'value="zoe"' in client.get("/runs").text


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org"])  # noqa: S104 - must be refused
def test_without_a_policy_only_this_machine_is_served(host: str) -> None:
    settings = Settings(broker_url="redis://127.0.0.1:1/0", secret_key=(SECRET,))
    with pytest.raises(InvalidSettings, match="everybody could do everything"):
        serve(settings, host=host, port=1)


def test_a_port_that_is_taken_is_told(site: Site) -> None:
    port = httpx.URL(site.url).port
    assert port is not None
    with pytest.raises(NotReachable, match="choose another with --host and --port"):
        serve(site.settings, host="127.0.0.1", port=port)


def test_nothing_but_files_for_browsers_is_served(site: Site) -> None:
    with site.browser() as client:
        for path in ("doors.py", "../doors.py", "%2e%2e/doors.py", "style.py", "svg.py", "", "graph.css.py"):
            assert client.get(f"/static/{path}").status_code == 404, path
        sheet = client.get("/static/graph.css")
        assert sheet.headers["content-type"].startswith("text/css")
        again = client.get("/static/graph.css", headers={"If-None-Match": sheet.headers["etag"]})
        assert again.status_code == 304
        for name in ("console.css", "live.js", "icon.svg"):
            found = client.get(f"/static/{name}")
            assert found.status_code == 200
            assert found.headers["cache-control"] == "no-cache"


def test_static_files_are_those_that_we_wrote() -> None:
    folder = Path(__file__).parents[2] / "wfcelery" / "web" / "static"
    assert {path.suffix for path in folder.iterdir()} <= {".css", ".js", ".svg"}
    for path in folder.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path


def test_hostile_words_are_shown_and_never_obeyed(house: House, site: Site) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    once = {"retry": {"max_attempts": 1}, "done": True}
    flow: dict[str, Any] = {
        "name": "hostile",
        "description": evil,
        "start": "say",
        "steps": {"say": {"description": evil, "tool": "fail", "args": {"message": evil}, **once}},
    }
    run = house.system.start(flow, {evil: evil}, key=evil, tags=[evil], by="stan")
    house.system.workflows.wait(run, 20)
    with site.browser("stan") as client:
        paths = [f"/runs/{run}", f"/runs/{run}/steps/say", f"/runs/{run}/events", f"/runs/{run}/retry"]
        for path in [*paths, "/runs", "/flows", "/flows/hostile", f"/runs?key={evil}", f"/runs/{evil}"]:
            text = client.get(path).text
            assert "<script>alert" not in text, path
            assert "<img src=x" not in text, path


def test_a_token_in_the_header_is_enough_for_a_page(site: Site) -> None:
    with httpx.Client(base_url=site.url, headers={"Authorization": f"Bearer {TOKENS['ann']}"}) as client:
        assert client.get("/runs").status_code == 200
