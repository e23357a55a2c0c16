"""The system page: in words, also while parts of the system are away."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.web.console import eventually, words
from tests.web.server import TOKENS, House, Site
from wfcelery.broker.client import connect
from wfcelery.broker.names import Names
from wfcelery.broker.sender import Sender


def test_the_page_says_who_is_at_work(site: Site) -> None:
    with site.browser("ann") as ann:
        said = words(ann, "/system")
    assert "One executor is alive" in said
    assert "1 worker consumes wfcelery.steps" in said
    assert "The broker answers in" in said
    assert "wfcelery.executor" in said
    assert "Who administers the system sees them here" in said


def test_only_who_administers_the_system_reads_dead_letters(house: House, site: Site) -> None:
    client = connect(house.system.broker_url)
    Sender(client, Names("")).push([b"this is no message, it is <b>junk</b>"])
    client.close()
    with (
        httpx.Client(base_url=site.url, headers={"Authorization": f"Bearer {TOKENS['robo']}"}) as robo,
        site.browser("ann") as ann,
    ):
        eventually(lambda: "junk" in robo.get("/system").text)
        assert "<b>junk" not in robo.get("/system").text
        assert "junk" not in ann.get("/system").text
        assert "1 message could not be handled" in words(ann, "/system")


def test_a_broker_that_is_away_is_a_finding_and_no_error(house: House) -> None:
    lonely = house.site(broker_url="redis://127.0.0.1:1/0")
    with lonely.browser("ann") as ann:
        said = words(ann, "/system")
    assert "something is broken" in said
    assert "Start it, or correct WFCELERY_BROKER_URL" in said


def test_a_database_that_is_away_is_a_finding_and_no_error(house: House, tmp_path: Path) -> None:
    lonely = house.site(database_url=f"sqlite:///{tmp_path}/none.db")
    with lonely.browser("ann") as ann:
        said = words(ann, "/system")
        assert "something is broken" in said
        assert "has no tables of wfcelery yet" in said
        assert ann.get("/runs").status_code == 503
