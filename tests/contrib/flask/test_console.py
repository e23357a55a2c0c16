"""The console inside a Flask application: under its path, for who is signed in there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from flask import Flask, request
from sqlalchemy import Engine

from tests.contrib.flask import shop
from tests.contrib.flask.conftest import config_of
from tests.contrib.flask.serving import served
from tests.system.system import System
from wfcelery.contrib.flask import WfceleryFlask
from wfcelery.errors import InvalidInput, InvalidSettings


@pytest.fixture
def base(hosted: tuple[Flask, WfceleryFlask], flows: WfceleryFlask) -> Iterator[str]:
    with served(hosted[0]) as address:
        yield address


@contextmanager
def client_of(base: str, user: str = "") -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base, follow_redirects=True, timeout=20) as client:
        if user:
            client.post(f"/sign-in/{user}")
        yield client


def csrf_of(page: httpx.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found is not None, page.text
    return found[1]


def waiting_run(system: System, flows: WfceleryFlask) -> str:
    run = flows.start(shop.FLOW, {"order": "W1"}, by="stan")
    system.until(lambda: run.status == "paused", "the gate")
    return run.id


def test_who_is_signed_in_to_the_application_is_signed_in_to_the_console(base: str) -> None:
    with client_of(base) as stranger:
        assert stranger.get("/").text == "the shop"
        assert stranger.get("/flows/api/v1/runs").status_code == 401
        assert stranger.get("/flows/runs").url.path != "/flows/runs"
    with client_of(base, "ann") as ann:
        page = ann.get("/flows/")
        assert (page.status_code, page.url.path) == (200, "/flows/runs")
        assert '<span class="name">ann</span>' in page.text
        assert ann.get("/flows").status_code == 200


def test_every_address_on_a_page_leads_below_the_prefix(
    base: str, flask_system: System, flows: WfceleryFlask
) -> None:
    run = waiting_run(flask_system, flows)
    with client_of(base, "ann") as ann:
        for path in ("/flows/runs", f"/flows/runs/{run}", f"/flows/runs/{run}/gates/review", "/flows/system"):
            page = ann.get(path)
            assert page.status_code == 200, path
            found = re.findall(r'(?:href|src|action|data-live)="(/[^"]*)"', page.text)
            assert found
            assert [each for each in found if not each.startswith("/flows/")] == []
            files = [each for each in found if "/static/" in each]
            assert {each: ann.get(each).status_code for each in files} == dict.fromkeys(files, 200)


@pytest.mark.parametrize("looks", [False, True], ids=["", "the application has looked at the form before"])
def test_a_gate_is_decided_by_a_form_of_ours_and_by_no_other(
    base: str, flask_system: System, hosted: tuple[Flask, WfceleryFlask], flows: WfceleryFlask, looks: bool
) -> None:
    if looks:
        hosted[0].before_request(lambda: request.form.get("x"))
    run = waiting_run(flask_system, flows)
    address = f"/flows/runs/{run}/gates/review"
    with client_of(base, "ann") as ann, client_of(base, "bob") as bob:
        page = ann.get(address)
        action = re.search(r'<form[^>]*method="post"[^>]*action="([^"]+)"', page.text)
        target = action[1] if action else address
        form = {"decision": "approve", "attempt": "1", "comment": "fine"}
        assert ann.post(target, data=form).status_code == 403
        assert ann.post(target, data=form | {"csrf": csrf_of(bob.get(address))}).status_code == 403
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        done = ann.post(target, data=form | fields)
        assert done.status_code == 200, done.text
    flask_system.until(lambda: flask_system.workflows.status(run) == "completed", "the end")
    assert {each["actor"] for each in flask_system.events(run) if each["step"] == "review"} >= {"ann"}


def test_a_live_page_hears_of_changes_and_lets_go_of_its_thread(
    flask_system: System, hosted: tuple[Flask, WfceleryFlask], flows: WfceleryFlask
) -> None:
    run = waiting_run(flask_system, flows)
    with served(hosted[0]) as base, client_of(base, "ann") as ann:
        stream = re.search(r'data-live="([^"]+)"', ann.get(f"/flows/runs/{run}").text)
        assert stream is not None
        address = stream[1].replace("&amp;", "&")
        with ann.stream("GET", address) as first, ann.stream("GET", address) as second:
            assert first.headers["content-type"].startswith("text/event-stream")
            lines = first.iter_lines()
            assert next(lines) == "retry: 2000"
            third = ann.get(address)
            assert (third.status_code, third.headers["retry-after"]) == (503, "30")
            flows.workflows.decide(run, "review", approve=True, by="ann")
            assert "event: changed" in lines
            assert "event: ended" in second.iter_lines()
        again = waiting_run(flask_system, flows)

        def has_room() -> bool:
            with ann.stream("GET", address.replace(run, again)) as stream:
                return stream.status_code == 200

        flask_system.until(has_room, "the threads to be free again")


def test_the_application_may_itself_be_below_a_path(
    flask_system: System, hosted: tuple[Flask, WfceleryFlask], flows: WfceleryFlask
) -> None:
    with served(hosted[0], under="/shop") as base, client_of(base) as ann:
        ann.post("/shop/sign-in/ann")
        page = ann.get("/shop/flows/runs")
        assert page.status_code == 200
        found = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
        assert [each for each in found if not each.startswith("/shop/flows/")] == []


def test_the_api_takes_json_and_answers_below_the_prefix(
    base: str, flask_system: System, flows: WfceleryFlask
) -> None:
    run = waiting_run(flask_system, flows)
    wanted = {"flow": shop.FLOW, "input": {"order": "J1"}}
    with client_of(base, "ann") as ann:
        assert ann.post("/flows/api/v1/runs", json=wanted).status_code == 403
        ann.headers["X-CSRF-Token"] = csrf_of(ann.get(f"/flows/runs/{run}/cancel"))
        made = ann.post("/flows/api/v1/runs", json=wanted)
        assert made.status_code == 201, made.text
        assert made.headers["location"].startswith("/flows/api/v1/runs/")
        assert ann.get(made.headers["location"]).json()["created_by"] == "ann"
        assert ann.post("/flows/api/v1/runs", content=b"x" * (4 * 2**20 + 10)).status_code == 413


def test_what_is_not_there_and_addresses_that_are_no_text_are_refused(
    base: str, hosted: tuple[Flask, WfceleryFlask]
) -> None:
    with hosted[0].test_client() as client:
        odd = client.get("/flows/runs", environ_overrides={"PATH_INFO": "/flows/runs/\xff"})
        assert (odd.status_code, odd.text) == (400, "this address cannot be read\n")
    with client_of(base, "ann") as ann:
        assert ann.get("/flows/nothing").status_code == 404
        assert ann.request("DELETE", "/flows/runs").status_code == 405


def test_the_header_of_a_stranger_names_nobody(base: str) -> None:
    with client_of(base) as stranger:
        forged = {"X-Wfcelery-User": "ann", "Wfcelery.user": "ann", "Wfcelery-User": "ann"}
        assert stranger.get("/flows/api/v1/runs", headers=forged).status_code == 401


def test_without_a_sign_in_and_without_rights_nothing_is_mounted(
    flask_system: System, engine: Engine
) -> None:
    app, _ = shop.create_app(engine, config_of(flask_system, url_prefix="/flows"), signs_in=False)
    app.testing = True
    with pytest.raises(InvalidSettings, match="setting current_user: is needed to mount the console"):
        app.test_client().get("/flows/runs")


def test_a_start_in_a_request_is_by_who_is_signed_in(
    flask_system: System, hosted: tuple[Flask, WfceleryFlask], flows: WfceleryFlask
) -> None:
    app, _ = hosted

    @app.post("/order")
    def place_order() -> str:
        return flows.start(shop.FLOW, {"order": "S1"}).id

    app.testing = True
    with app.test_client() as client:
        with pytest.raises(
            InvalidInput, match="by: is missing, and nobody is signed in; name who starts this"
        ):
            client.post("/order")
        client.post("/sign-in/zoe")
        run = client.post("/order").text
    assert flask_system.workflows.get(run)["created_by"] == "zoe"
