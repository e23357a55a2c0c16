"""What an application sets, and what is refused before its first request."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from wfcelery.contrib.flask import WfceleryFlask
from wfcelery.contrib.flask.config import read_config
from wfcelery.errors import InvalidSettings

NAMED = "must be a function or class at the top of a module, or its name as module:name"


def authorize(user: object, permission: str, resource: object) -> bool:
    return True


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of settings and no variable has a say."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WFCELERY_BROKER_URL", raising=False)


def test_what_is_set_is_what_the_system_is_told(tmp_path: Path) -> None:
    config = read_config(
        {
            "database_url": tmp_path / "flows.db",
            "broker_url": "redis://localhost/3",
            "secret_key": ("first", "second"),
            "tools": ["shop.tools", "shop.more"],
            "link_days": 3,
            "link_login": True,
            "base_url": "https://example.org/shop/flows",
            "url_prefix": "/flows/",
            "policy": None,
        }
    )
    settings = config.settings()
    assert (settings.database_url, settings.secret_key) == (
        f"sqlite:///{tmp_path}/flows.db",
        ("first", "second"),
    )
    assert (settings.tools, settings.link_days, settings.link_login) == (
        ("shop.tools", "shop.more"),
        3.0,
        True,
    )
    assert (config.url_prefix, config.streams) == ("/flows", 2)
    assert config.environment()["WFCELERY_TOOLS"] == "shop.tools,shop.more"


def test_what_is_set_counts_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WFCELERY_BROKER_URL", "redis://environment/0")
    monkeypatch.setenv("WFCELERY_USER", "zoe")
    settings = read_config({"broker_url": "redis://application/0"}).settings()
    assert (settings.broker_url, settings.user) == ("redis://application/0", "zoe")


def test_a_function_of_the_application_is_named_so_that_the_executor_finds_it() -> None:
    found = read_config({"authorize": authorize}).given["authorize"]
    assert found == f"{__name__}:authorize"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"borker_url": "redis://localhost"},
            'setting borker_url: is not known (in app.config["WFCELERY"]); did you mean `broker_url`?',
        ),
        (
            {"urlprefix": "/flows"},
            'setting urlprefix: is not known (in app.config["WFCELERY"]); did you mean `url_prefix`?',
        ),
        ({"link_days": "many"}, "setting link_days: must be a number of days above 0, not many"),
        ({"tools": 5}, 'setting tools: must be text or a list of texts in app.config["WFCELERY"]'),
        ({"url_prefix": "flows"}, "setting url_prefix: must be a path like /flows"),
        (
            {"url_prefix": "/<flows>"},
            "setting url_prefix: must be a plain path like /flows, of letters that need no quotes",
        ),
        ({"streams": -1}, "setting streams: must be a number of live pages, 0 or more, not -1"),
        (
            {"url_prefix": "/flows", "base_url": "http://x"},
            "setting base_url: must end with /flows, where this application mounts the console, and is http://x",
        ),
        (
            {"authorize": lambda *_: True},
            f"setting authorize: {NAMED}: the executor imports it, too",
        ),
        (
            {"authorize": "shop:may", "policy": "people.toml"},
            "setting authorize: and policy cannot both be set; leave one of them out",
        ),
        (["broker_url"], 'setting app.config["WFCELERY"]: must be a map of settings'),
    ],
)
def test_what_is_wrong_is_refused_when_the_application_is_made(given: object, said: str) -> None:
    app = Flask("shop")
    app.config["WFCELERY"] = given
    with pytest.raises(InvalidSettings) as caught:
        WfceleryFlask(app)
    assert str(caught.value) == said


def test_it_joins_an_application_once_and_is_asked_inside_one() -> None:
    flows = WfceleryFlask()
    with pytest.raises(InvalidSettings, match="has joined no application; call init_app"):
        _ = flows.workflows
    app = Flask("shop")
    flows.init_app(app)
    with pytest.raises(InvalidSettings, match="setting broker_url: is not set"):
        _ = flows.workflows
    with pytest.raises(InvalidSettings, match="has joined this application already"):
        flows.init_app(app)


def test_two_applications_of_one_process_talk_to_their_own_systems() -> None:
    flows = WfceleryFlask()
    apps = [Flask("one"), Flask("two")]
    for number, app in enumerate(apps):
        app.config["WFCELERY"] = {"broker_url": f"redis://localhost/{number}", "secret_key": "s" * 32}
        flows.init_app(app)
    urls = []
    for app in apps:
        with app.app_context():
            urls.append(flows.workflows.links.place.broker_url)
    assert urls == ["redis://localhost/0", "redis://localhost/1"]
