"""Approval links in the hands of scanners, thieves and other sites: nothing is decided that must not be."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.system.system import SECRET
from tests.web.server import House, Page, Site, form_of, gate_flow, path_of, post, token_of
from wfcelery.core.values import Json
from wfcelery.wire.keys import keyring
from wfcelery.wire.signed import write_signed

NEW_SECRET = "another secret of many characters"  # noqa: S105 - for tests
SCANNERS = (
    "Mozilla/5.0 (compatible; Barracuda Sentinel)",
    "Mozilla/5.0 BitDefender Url Scanner",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Microsoft Office/16.0 (Microsoft Outlook Mail 16.0)",
    "Proofpoint URL Defense",
)


@pytest.mark.timeout(300)
def test_a_thousand_looks_of_scanners_change_nothing_and_then_one_post_decides(quiet_house: House) -> None:
    house = quiet_house
    site = house.site()
    run = house.ask()
    path = path_of(run)
    before = house.content()
    codes = asyncio.run(scan(site, path, 1_000))
    assert {method: set(found) for method, found in codes.items()} == {
        "GET": {200},
        "HEAD": {200},
        "OPTIONS": {405},
    }
    after = house.content()
    assert {name: rows for name, rows in after.items() if rows != before[name]} == {}
    assert house.status(run) == "paused"
    with site.browser() as client:
        assert post(client, path).status_code == 200
    house.system.finish([run])
    assert house.status(run) == "completed"


async def scan(site: Site, path: str, count: int) -> dict[str, list[int]]:
    methods = ("GET", "HEAD", "OPTIONS")
    found: dict[str, list[int]] = {method: [] for method in methods}
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=site.url, limits=limits, timeout=60.0) as client:

        async def look(number: int) -> None:
            method = methods[number % 3]
            headers = {"User-Agent": SCANNERS[number % len(SCANNERS)]}
            sent = await client.request(method, path, headers=headers, follow_redirects=True)
            found[method].append(sent.status_code)

        await asyncio.gather(*(look(number) for number in range(count)))
    return found


def test_of_fifty_posts_at_once_one_decides(house: House) -> None:
    site = house.site()
    run = house.ask()
    path = path_of(run)
    form = form_of(run)
    limits = httpx.Limits(max_connections=50)
    with (
        httpx.Client(base_url=site.url, limits=limits, timeout=60.0) as client,
        ThreadPoolExecutor(50) as pool,
    ):
        sent = list(pool.map(lambda _: client.post(path, data=form).status_code, range(50)))
    assert sorted(sent) == [200] + [409] * 49
    assert len(house.system.events(run, "vote_cast")) == 1
    house.system.finish([run])


def test_fifty_people_of_two_minds_decide_once(house: House) -> None:
    site = house.site()
    run = house.ask(approvers=["ann", "bob"])
    limits = httpx.Limits(max_connections=50)

    def say(number: int) -> int:
        who, said = ("ann", "approve") if number % 2 else ("bob", "deny")
        return client.post(path_of(run, who), data=form_of(run, who, said)).status_code

    with (
        httpx.Client(base_url=site.url, limits=limits, timeout=60.0) as client,
        ThreadPoolExecutor(50) as pool,
    ):
        sent = list(pool.map(say, range(50)))
    assert sorted(sent) == [200] + [409] * 49
    assert len(house.system.events(run, "vote_cast")) == 1


def test_other_spellings_of_a_signature_open_nothing(house: House) -> None:
    site = house.site()
    run = house.ask()
    token = token_of(run)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [token[:-1] + sign for sign in alphabet[:20] if sign != token[-1]]
    with site.browser() as client:
        assert {client.get(f"/a/{other}").status_code for other in others} == {404}


def test_a_used_link_stays_used_however_it_is_written(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        assert post(client, path_of(run)).status_code == 200
        for later in (60.0, 7_200.0):  # Other links to the same gate: the row says that it is decided.
            again = client.post(path_of(run, expires_in=later), data=form_of(run))
            assert again.status_code == 409
    assert len(house.system.events(run, "vote_cast")) == 1


@pytest.mark.parametrize("part", range(5))
def test_a_link_with_another_field_opens_nothing(house: House, site: Site, part: int) -> None:
    run, other = house.ask(approvers=["ann", "bob"]), house.ask()
    payload, _, signature = token_of(run).partition(".")
    marked: Any = json.loads(base64.urlsafe_b64decode(payload + "=="))
    marked[2][part] = (other, "pay", 2, "bob", 99_999_999_999.0)[part]
    changed = json.dumps(marked, separators=(",", ":"), sort_keys=True).encode()
    forged = base64.urlsafe_b64encode(changed).decode().rstrip("=")
    with site.browser() as client:
        assert client.get(f"/a/{forged}.{signature}").status_code == 404
        assert client.post(f"/a/{forged}.{signature}", data=form_of(run, "bob")).status_code == 404
    assert house.status(run) == "paused"


def test_tokens_for_other_purposes_open_nothing(house: House) -> None:
    site = house.site()
    run = house.ask()
    ring = keyring((SECRET,))
    parts: Json = [run, "ask", 1, "ann", 99_999_999_999.0]
    with site.browser("ann") as client:
        session = client.cookies["wfcelery_session"]
        for token in (session, write_signed(ring, "csrf", parts), write_signed(ring, "session", parts)):
            assert client.get(f"/a/{token}").status_code == 404


def test_links_of_an_old_key_work_until_the_key_is_dropped(house: House) -> None:
    run = house.ask()
    rotated = house.site(secret_key=(NEW_SECRET, SECRET))
    dropped = house.site(secret_key=(NEW_SECRET,))
    with rotated.browser() as client:
        assert client.get(path_of(run)).status_code == 200
        assert client.get(path_of(run, secrets=(NEW_SECRET,))).status_code == 200
    with dropped.browser() as client:
        assert client.get(path_of(run)).status_code == 404
        assert client.get(path_of(run, secrets=(NEW_SECRET,))).status_code == 200


@pytest.mark.parametrize(("expires_in", "code"), [(-1.0, 404), (0.0, 404), (30.0, 200)])
def test_a_link_ends_at_its_moment(house: House, site: Site, expires_in: float, code: int) -> None:
    run = house.ask()
    with site.browser() as client:
        assert client.get(path_of(run, expires_in=expires_in)).status_code == code
        sent = client.post(path_of(run, expires_in=expires_in), data=form_of(run))
    assert sent.status_code == code
    assert house.status(run) in (("paused",) if code == 404 else ("running", "completed"))


def test_unknown_foreign_expired_and_malformed_links_get_the_same_page(house: House) -> None:
    site = house.site()
    run = house.ask()
    unknown = "0" * 26
    paths = [
        path_of(run, expires_in=-1.0),
        path_of(unknown),
        path_of(run, step="pay"),
        path_of(run, step="nothing"),
        path_of(run, attempt=9),
        path_of(run, secrets=(NEW_SECRET,)),
        path_of(run)[:-3],
        "/a/",
        "/a/x",
        "/a/x/y",
        "/a/%00",
        f"/a/{'x' * 5_000}",
    ]
    with site.browser() as client:
        answers = [client.get(path) for path in paths]
        posted = [client.post(path, data=form_of(run)) for path in paths]
    assert {answer.status_code for answer in (*answers, *posted)} == {404}
    assert len({answer.content for answer in (*answers, *posted)}) == 1
    headers = [
        {name: value for name, value in answer.headers.items() if name != "date"} for answer in answers
    ]
    assert all(each == headers[0] for each in headers)
    assert "set-cookie" not in headers[0]


def test_who_guesses_too_often_must_wait_and_then_even_a_good_link_is_not_looked_at(house: House) -> None:
    site = house.site()
    run = house.ask()
    with site.browser() as client:
        codes = [client.get(f"/a/guess{number}").status_code for number in range(40)]
        good = client.get(path_of(run))
        posted = client.post(path_of(run), data=form_of(run))
    assert codes[:30] == [404] * 30
    assert codes[-5:] == [429] * 5
    assert (good.status_code, posted.status_code) == (429, 429)
    assert house.status(run) == "paused"


def test_good_links_are_never_counted_as_guesses(house: House) -> None:
    site = house.site()
    run = house.ask()
    with site.browser() as client:
        assert {client.get(path_of(run)).status_code for _ in range(60)} == {200}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://flows.example.evil.example"},
    ],
)
def test_another_site_cannot_post_a_decision(house: House, site: Site, headers: dict[str, str]) -> None:
    run = house.ask()
    with site.browser() as client:
        sent = client.post(path_of(run), data=form_of(run), headers=headers)
    assert sent.status_code == 403
    assert "access-control-allow-origin" not in sent.headers
    assert house.status(run) == "paused"


@pytest.mark.parametrize(
    "csrf", ["", "x", "of bob", "of another run", "of a session"], ids=lambda each: each or "missing"
)
def test_a_form_that_was_not_made_for_this_link_decides_nothing(house: House, site: Site, csrf: str) -> None:
    run, other = house.ask(approvers=["ann", "bob"]), house.ask()
    with site.browser() as client:
        tokens = {
            "of bob": form_of(run, "bob")["csrf"],
            "of another run": form_of(other)["csrf"],
            "of a session": Page(client.get("/login").text).hidden["csrf"],
        }
        form = {"csrf": tokens.get(csrf, csrf), "decision": "approve"}
        sent = client.post(path_of(run), data=form)
    assert sent.status_code == 403
    assert house.status(run) == "paused"


def test_only_a_form_decides(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        as_json = client.post(path_of(run), json=form_of(run))
        as_query = client.post(path_of(run), params=form_of(run))
        other = [
            client.request(method, path_of(run), data=form_of(run)) for method in ("PUT", "PATCH", "DELETE")
        ]
    assert (as_json.status_code, as_query.status_code) == (415, 403)
    assert {sent.status_code for sent in other} == {405}
    assert house.status(run) == "paused"


def test_a_page_is_kept_by_nobody_framed_by_nobody_and_names_nobody(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser() as client:
        for page in (client.get(path_of(run)), client.get("/a/x"), post(client, path_of(run))):
            assert page.headers["cache-control"] == "no-store"
            assert page.headers["referrer-policy"] == "no-referrer"
            assert page.headers["x-frame-options"] == "DENY"
            assert page.headers["x-content-type-options"] == "nosniff"
            policy = page.headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert "default-src 'none'" in policy
            assert "form-action 'self'" in policy


def test_a_page_is_small_and_loads_nothing_but_its_sheet(house: House, site: Site) -> None:
    run = house.ask(form={"type": "object", "properties": {"why": {"type": "string"}}})
    with site.browser() as client:
        page = client.get(path_of(run))
        found = Page(page.text).attributes
        sheet = client.get("/static/approval.css")
    loaded = [told for tag, told in found if tag in ("link", "script", "img", "iframe", "object", "embed")]
    assert [told["rel"] for told in loaded] == ["icon", "stylesheet"]
    assert not [tag for tag, _ in found if tag in ("script", "style")]
    assert not [name for _, told in found for name in told if name.startswith("on") or name == "style"]
    assert len(page.content) < 12_000
    assert (sheet.status_code, len(sheet.content) < 12_000) == (200, True)


def test_every_field_has_its_label_and_enter_approves_nothing(house: House, site: Site) -> None:
    schema = {"type": "object", "properties": {"why": {"type": "string"}, "size": {"enum": [1, 2]}}}
    run = house.ask(form=schema)
    with site.browser() as client:
        found = Page(client.get(path_of(run)).text).attributes
    labels = {told["for"] for tag, told in found if tag == "label" and "for" in told}
    fields = {
        told["id"]
        for tag, told in found
        if tag in ("input", "select", "textarea") and told.get("type") not in ("hidden", "checkbox")
    }
    assert fields == {"field-0", "field-1", "comment"}
    assert fields <= labels
    # What Enter in a field presses is the first button of a form.
    buttons = [told for tag, told in found if tag == "button"]
    assert [("disabled" in told, told.get("value")) for told in buttons] == [
        (True, None),
        (False, "approve"),
        (False, "deny"),
    ]
    assert "formnovalidate" in buttons[2]


def test_what_mail_gateways_append_is_ignored(house: House, site: Site) -> None:
    run = house.ask()
    tracked = f"{path_of(run)}?utm_source=mail&decision=deny&next=https%3A%2F%2Fevil.example"
    with site.browser() as client:
        assert client.get(tracked).status_code == 200
        done = post(client, tracked)
    assert done.status_code == 200
    assert "You have approved this." in Page(done.text).words
    house.system.finish([run])


@pytest.mark.parametrize("before", ["", "/flows/prod"], ids=["stripped", "kept"])
def test_links_work_behind_a_prefix(house: House, before: str) -> None:
    """With a proxy that takes the prefix away, and with one that leaves it."""
    site = house.site(base_url="https://flows.example/flows/prod/")
    run = house.ask()
    with site.browser(Host="flows.example", Origin="https://flows.example") as client:
        page = client.get(before + path_of(run))
        assert page.status_code == 200
        [sheet] = [told for tag, told in Page(page.text).attributes if told.get("rel") == "stylesheet"]
        assert sheet["href"] == "/flows/prod/static/approval.css"
        assert client.get(before + "/static/approval.css").status_code == 200
        done = post(client, before + path_of(run))
    assert done.status_code == 200
    house.system.finish([run])


def test_a_host_that_is_not_ours_is_not_served(house: House, site: Site) -> None:
    run = house.ask()
    with site.browser(Host="evil.example") as client:
        page = client.get(path_of(run))
        sent = client.post(path_of(run), data=form_of(run))
    assert (page.status_code, sent.status_code) == (421, 421)
    assert "evil.example" not in page.text
    assert house.status(run) == "paused"


def test_a_spoofed_proxy_header_changes_no_address_in_the_page(house: House, site: Site) -> None:
    run = house.ask()
    spoofed = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "host=evil.example",
    }
    with site.browser(**spoofed) as client:
        page = client.get(path_of(run))
    assert page.status_code == 200
    assert "evil" not in page.text


def test_a_link_is_in_no_table_no_log_no_event_and_no_answer(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site = house.site()
    run = house.ask()
    token = token_of(run)
    with site.browser("stan") as starter, site.browser() as client:
        shown = [starter.get(f"/runs/{run}/gates/ask").text, starter.get("/approvals").text]
        page = client.get(f"/a/{token}")
        done = client.post(f"/a/{token}", data={**Page(page.text).hidden, "decision": "approve"})
        shown += [page.text, done.text, starter.get(f"/runs/{run}/gates/ask").text]
        shown.append(starter.get(f"/api/v1/runs/{run}").text)
        shown.append(starter.get(f"/api/v1/runs/{run}/events").text)
    house.system.finish([run])
    shown.append(str(house.content()))
    shown += [process.said() for process in house.system.processes]
    # The client of the test writes down what it asks for, as every client may.
    ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore"))]
    shown += [each.getMessage() for each in ours]
    signature = token.rpartition(".")[2]
    assert [text for text in shown if signature in text] == []
    assert str(house.system.workflows.events(run)).count("link") == 1  # that it was decided via a link


def test_without_rights_a_link_still_is_for_its_approver(house: House) -> None:
    """Where nobody signs in, everybody is who they say; the link says whom it is for."""
    site = house.site(policy=None, base_url=None)
    run = house.start(gate_flow(approvers=["ann"]))
    with site.browser() as client:
        refused = client.post(path_of(run, "bob"), data=form_of(run, "bob"))
        done = post(client, path_of(run))
    assert (refused.status_code, done.status_code) == (403, 200)
    house.system.finish([run])


def test_a_browser_that_names_no_origin_decides(house: House, site: Site) -> None:
    """As browsers do for a page that wants no referrer."""
    run = house.ask()
    with site.browser() as client:
        headers = {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
        sent = client.post(path_of(run), data=form_of(run), headers=headers)
    assert sent.status_code == 200
    house.system.finish([run])
