"""Webhooks: another system tells runs something by `POST /hooks/SIGNAL`, and a signature is all it has."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from tests.web.server import STARTER, House, Site
from wfcelery.core.messages import Principal
from wfcelery.rights import Permission
from wfcelery.web.desk import BAD_HOOKS_A_MINUTE
from wfcelery.web.doors import Door
from wfcelery.web.guard import LARGEST_BODY as LARGEST_ELSEWHERE
from wfcelery.web.pages.hooks import HEADER, LARGEST_BODY, receive, sign

SECRET = "the secret of a hook and long enough"  # noqa: S105 - for tests
OLD_SECRET = "the secret that it had before"  # noqa: S105 - same
WEAK = "short"
NO_GOOD = "the signature is not good: it is missing, wrong, or older than five minutes; nothing was done"


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process of the site has in its environment: this one."""
    monkeypatch.setenv("WFHOOK_paid", f"{SECRET}, {OLD_SECRET}")
    for name in ("narrow", "stranger"):
        monkeypatch.setenv(f"WFHOOK_{name}", SECRET)
    monkeypatch.setenv("WFHOOK_weak", WEAK)


def waiting_flow(name: str = "waits", signal: str = "paid") -> dict[str, Any]:
    """A flow that waits for a signal with the key of its order, and gives what it was told."""
    wait = {"wait": {"signal": signal, "key": "{{input.order}}"}, "next": "end"}
    end = {"tool": "echo", "args": {"told": "{{result}}"}, "done": True}
    return {"name": name, "start": "wait", "steps": {"wait": wait, "end": end}}


def started(house: House, order: str, flow: dict[str, Any] | None = None, **more: Any) -> str:  # noqa: ANN401
    run = house.system.start(flow or waiting_flow(), {"order": order}, by=Principal(STARTER), **more)
    house.system.until(lambda: house.status(run) == "paused", "the run to wait")
    return run


def send(
    site: Site,
    path: str,
    payload: object = None,
    *,
    secret: str = SECRET,
    at: float | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """Send as another system does."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    query = httpx.URL(f"{site.url}/hooks/{path}").query.decode()
    signed = {HEADER: sign(secret, body, int(time.time() if at is None else at), query)}
    given = {"content-type": "application/json"} | signed | (headers or {})
    return httpx.post(f"{site.url}/hooks/{path}", content=body, headers=given, timeout=30.0)


def output(house: House, run: str) -> Any:  # noqa: ANN401 - JSON
    house.system.finish([run])
    return house.system.workflows.get(run)["output"]


@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
def test_a_signed_body_reaches_whoever_waits_for_it_with_its_key(
    house: House, site: Site, secret: str
) -> None:
    run = started(house, f"by key {len(secret)}")
    answer = send(site, f"paid?key=by key {len(secret)}", {"amount": 12}, secret=secret)
    assert answer.status_code == 202, answer.text
    assert answer.json() == {"signal": "paid", "reached": [run], "kept": False}
    assert output(house, run) == {"told": {"amount": 12}}
    [told] = house.system.events(run, "step_done")[:1]
    assert told["actor"] == "hook:paid"


def test_the_body_may_name_the_key_or_the_run(house: House, site: Site) -> None:
    by_key, by_id = started(house, "in the body"), started(house, "another")
    assert send(site, "paid", {"key": "in the body"}).json()["reached"] == [by_key]
    assert send(site, "paid", {"run_id": by_id}).json()["reached"] == [by_id]
    assert output(house, by_key) == {"told": {"key": "in the body"}}
    assert output(house, by_id) == {"told": {"run_id": by_id}}


def test_the_address_may_name_a_flow_and_its_key_and_then_the_body_names_nothing(
    house: House, site: Site
) -> None:
    run = started(house, "x", waiting_flow("waits-by-flow"), key="order-7")
    answer = send(site, "paid?flow=waits-by-flow&key=order-7", {"key": "a field of theirs"})
    assert answer.json()["reached"] == [run]
    assert output(house, run) == {"told": {"key": "a field of theirs"}}


def test_what_nobody_waits_for_yet_is_kept(house: House, site: Site) -> None:
    assert send(site, "paid?key=early", 5).json() == {"signal": "paid", "reached": [], "kept": True}
    run = house.system.start(waiting_flow(), {"order": "early"}, by=Principal(STARTER))
    assert output(house, run) == {"told": 5}


def test_a_request_that_comes_again_does_nothing_again(house: House, site: Site) -> None:
    first, now = started(house, "twice"), time.time()
    assert send(site, "paid?key=twice", {"n": 1}, at=now).json()["reached"] == [first]
    house.system.finish([first])
    second = started(house, "twice")
    assert send(site, "paid?key=twice", {"n": 1}, at=now).status_code == 202
    assert house.status(second) == "paused"
    assert send(site, "paid?key=twice", {"n": 1}, at=now - 1).json()["reached"] == [second]


BAD = {
    "no signature": {HEADER: ""},
    "no time": {HEADER: "v1=" + "0" * 64},
    "nonsense": {HEADER: "t=1,v1=x"},
    "two": {HEADER: f"{sign(SECRET, b'1', 1)},{sign(SECRET, b'1', 1)}"},
    "another version": {HEADER: sign(SECRET, b"1", 1).replace("v1", "v0")},
}


def test_what_is_not_signed_well_does_nothing_and_is_told_the_same(quiet_house: House) -> None:
    house, site = quiet_house, quiet_house.site()
    started(house, "a")
    before, now = house.content(), int(time.time())
    good = sign(SECRET, b'{"key": "a"}', now)
    answers = {
        "missing": httpx.post(f"{site.url}/hooks/paid", json={"key": "a"}),
        **{name: send(site, "paid", {"key": "a"}, headers=headers) for name, headers in BAD.items()},
        "capitals": send(site, "paid", {"key": "a"}, headers={HEADER: good.upper().replace("T=", "t=")}),
        "wrong secret": send(site, "paid", {"key": "a"}, secret=SECRET.upper()),
        "changed": send(site, "paid", {"key": "b"}, headers={HEADER: good}),
        "for somebody else": send(site, "paid?key=b", {"key": "a"}, headers={HEADER: good}),
        "old": send(site, "paid", {"key": "a"}, at=now - 302),
        "of the future": send(site, "paid", {"key": "a"}, at=now + 330),
        "no such hook": send(site, "unknown", {"key": "a"}),
        "no name": send(site, "a%20b", {"key": "a"}),
        "weak": send(site, "weak", {"key": "a"}, secret=WEAK),
        "other time": send(
            site, "paid", {"key": "a"}, headers={HEADER: good.replace(f"t={now}", f"t={now - 1}")}
        ),
        "large and not signed": httpx.post(f"{site.url}/hooks/paid", content=b"x" * (LARGEST_BODY + 1)),
    }
    assert len(answers) < BAD_HOOKS_A_MINUTE
    for name, answer in answers.items():
        told = answer.json()
        assert (answer.status_code, told["code"], told["detail"]) == (401, "bad-signature", NO_GOOD), name
        assert "set-cookie" not in answer.headers
    assert house.content() == before
    assert send(site, "paid", {"key": "a"}, headers={HEADER: good}).status_code == 202


def test_who_fails_too_often_must_wait(house: House) -> None:
    site = house.site()

    def told(answer: httpx.Response) -> bool:
        assert answer.status_code in (401, 429)
        return answer.status_code == 429

    tries = [told(httpx.post(f"{site.url}/hooks/paid", content=b"1")) for _ in range(BAD_HOOKS_A_MINUTE)]
    assert not any(tries)
    # While this goes on some of the minute passes, and with it a few failures are forgiven.
    house.system.until(lambda: told(httpx.post(f"{site.url}/hooks/paid", content=b"1")), "a refusal", 30.0)


def test_a_hook_has_the_rights_that_its_policy_gives_it(house: House, site: Site) -> None:
    theirs = started(house, "r", waiting_flow("waits-narrow", "narrow"))
    others = started(house, "r", waiting_flow("waits-other", "narrow"))
    for path in (f"narrow?run_id={others}", "narrow?key=r", f"stranger?run_id={theirs}"):
        refused = send(site, path, 1)
        assert refused.status_code == 403, refused.text
        assert "permission signal" in refused.json()["detail"]
    assert send(site, f"narrow?run_id={theirs}", 1).status_code == 202
    assert output(house, theirs) == {"told": 1}
    assert house.status(others) == "paused"


@pytest.mark.parametrize(
    ("path", "payload", "status"),
    [
        ("paid", {"amount": 1}, 422),
        ("paid", [1], 422),
        ("paid?key=", 1, 422),
        ("paid?key=a&key=b", 1, 422),
        ("paid?flow=waits", 1, 422),
        ("paid?key=a&run_id=b", 1, 422),
        ("paid", {"key": 17}, 422),
        ("paid?key=a", b"{not json", 422),
        ("paid?key=a", b'{"a": 1, "a": 2}', 422),
        ("paid?run_id=" + "0" * 26, 1, 404),
        ("paid?flow=waits&key=nobody", 1, 404),
        ("paid?key=a", b"1" * (LARGEST_BODY + 1), 413),
    ],
)
def test_what_is_signed_and_makes_no_sense_is_told_why(
    site: Site, path: str, payload: object, status: int
) -> None:
    assert LARGEST_BODY < LARGEST_ELSEWHERE
    answer = send(site, path, payload)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]


def test_a_body_of_another_kind_is_refused_and_nobody_gets_a_hook(site: Site) -> None:
    assert send(site, "paid?key=a", 1, headers={"content-type": "text/plain"}).status_code == 415
    assert httpx.get(f"{site.url}/hooks/paid").status_code == 405


def test_a_door_for_programs_that_changes_something_goes_by_nobodys_session() -> None:
    with pytest.raises(ValueError, match="must go by what is sent, not by who is signed in"):
        Door("POST", "/x", receive, "x", Permission.SIGNAL, for_programs=True)
