"""The console inside a Django site, by WSGI and by ASGI: Django's users are its visitors."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.contrib.django.shop import Shop, visitor

pytestmark = pytest.mark.xdist_group("django")

HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


@pytest.fixture(params=["wsgi", "asgi"])
def base(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue(request.param)
    return address


def waiting(shop: Shop) -> str:
    run = shop.start("order", {"order": 0, "customer": "ann", "amount": 900}, by="app:django")
    shop.until(lambda: shop.workflows.status(run) == "paused", "the gate")
    return run


def test_who_has_not_signed_in_to_django_is_led_to_where_one_does(base: str) -> None:
    with visitor(base) as client:
        page = client.get("/flows/runs")
        assert page.headers["location"] == "/flows/login?next=%2Fflows%2Fruns"
        page = client.get(page.headers["location"])
        assert page.headers["location"] == "/admin/login/?next=%2Fflows%2Fruns"
        page = client.get("/flows/login?next=https://evil.example/")
        assert page.headers["location"] == "/admin/login/?next=%2Fflows%2F"
        assert client.get("/flows/api/v1/runs").status_code == 401


def test_a_user_of_django_sees_runs_and_decides_with_our_own_form(shop: Shop, base: str) -> None:
    run = waiting(shop)
    with visitor(base, "mia") as client:
        page = client.get(f"/flows/runs/{run}")
        assert page.status_code == 200
        assert f"/flows/runs/{run}" in page.text
        assert "Sign out" not in page.text
        gate = f"/flows/runs/{run}/gates/review"
        found = client.get(gate)
        hidden = dict(HIDDEN.findall(found.text))
        answer = client.post(f"{gate}/decide", data={**hidden, "csrf": "forged", "decision": "approve"})
        assert answer.status_code == 403
        assert shop.workflows.status(run) == "paused"
        answer = client.post(f"{gate}/decide", data={**hidden, "decision": "approve"})
        assert answer.is_success or answer.is_redirect, answer.text
    assert shop.workflows.wait(run, 20.0)["status"] == "completed"


def test_rights_are_those_of_django(shop: Shop, base: str) -> None:
    run = waiting(shop)
    with visitor(base, "carl") as client:
        assert client.get(f"/flows/runs/{run}").status_code == 403
    with visitor(base, "rita") as client:
        assert client.get(f"/flows/runs/{run}").status_code == 200
        assert client.get(f"/flows/runs/{run}/cancel").status_code == 403
    shop.workflows.cancel(run, by="app:django")


def test_pages_are_live_and_static_files_are_there(shop: Shop, base: str) -> None:
    run = waiting(shop)
    with visitor(base, "mia") as client:
        page = client.get(f"/flows/runs/{run}")
        style = re.search(r'href="(/flows/static/console.css[^"]*)"', page.text)
        assert style is not None
        assert client.get(style[1]).headers["content-type"].startswith("text/css")
        with client.stream("GET", f"/flows/runs/{run}/stream") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            shop.workflows.cancel(run, by="app:django")
            assert next(line for line in lines if line.startswith("event:"))
    assert shop.workflows.status(run) == "cancelled"


def test_names_that_are_not_allowed_are_refused(base: str) -> None:
    answer = httpx.get(f"{base}/flows/runs", headers={"host": "evil.example"})
    assert answer.status_code == 400
