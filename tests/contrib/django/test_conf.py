"""The settings of a project, and what `manage.py check` says of them."""

from __future__ import annotations

import pytest
from django.core.checks import CheckMessage
from django.test import override_settings

from wfcelery.contrib.django import conf, discovery
from wfcelery.contrib.django.checks import check_settings
from wfcelery.errors import InvalidSettings

GOOD = {
    "database_url": "sqlite:////tmp/wfcelery-check.db",
    "broker_url": "redis://broker",
    "secret_key": ["a secret of thirty-two characters", "the secret that was in use before"],
}
ELSE = "Name another alias, or give database_url"


def complaints(**changed: object) -> list[tuple[str, str, str]]:
    written = {name: value for name, value in {**GOOD, **changed}.items() if value != "left out"}
    with override_settings(WFCELERY=written):
        found: list[CheckMessage] = check_settings()
    return [(each.id, each.msg, each.hint) for each in found]


def test_good_settings_raise_no_complaint() -> None:
    assert complaints() == []


def test_an_unknown_setting_is_answered_with_the_nearest() -> None:
    assert complaints(broker_ulr="redis://x") == [
        ("wfcelery.E001", "WFCELERY has the unknown setting 'broker_ulr'", "did you mean broker_url?")
    ]


def test_capitals_are_not_known_and_the_right_spelling_is_said() -> None:
    [(number, _, hint)] = complaints(BROKER_URL="redis://x")
    assert (number, hint) == ("wfcelery.E001", "did you mean broker_url?")


def test_what_is_no_map_is_refused() -> None:
    with override_settings(WFCELERY="redis://x"):
        [found] = check_settings()
    assert (found.id, found.msg) == ("wfcelery.E001", "setting WFCELERY: must be a dictionary, not str")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = dict.fromkeys(("broker_url", "secret_key"), "left out")
    found = complaints(**missing)
    assert [each[0] for each in found] == ["wfcelery.W002", "wfcelery.W003"]
    monkeypatch.setenv("WFCELERY_BROKER_URL", "redis://elsewhere")
    monkeypatch.setenv("WFCELERY_SECRET_KEY", "a secret of thirty-two characters")
    assert complaints(**missing) == []


@pytest.mark.parametrize(
    ("changed", "number", "message"),
    [
        (
            {"database_url": "left out"},
            "E002",
            f"setting database: default is not a plain file, and other processes cannot see it. {ELSE}",
        ),
        (
            {"database": "nothing", "database_url": "left out"},
            "E002",
            "setting database: nothing is not in DATABASES; there are default, file, none, server, socket",
        ),
        (
            {"database": "none", "database_url": "left out"},
            "E002",
            f"setting database: none is of the kind dummy; wfcelery speaks sqlite and postgresql. {ELSE}",
        ),
        (
            {"database": "file"},
            "E002",
            "setting database: and database_url cannot both be set; leave one of them out",
        ),
        (
            {"lease_s": {}},
            "E002",
            "setting WFCELERY['lease_s']: must be text, a number or a list, not dict",
        ),
        (
            {"database_url": "mysql://x/y"},
            "E003",
            "setting database_url: names mysql; wfcelery speaks sqlite and postgresql",
        ),
        (
            {"authorize": "nothing"},
            "E005",
            "setting authorize: must be module:name, as in shop.rights:authorize, not nothing",
        ),
    ],
)
def test_what_cannot_be_used_is_said(changed: dict[str, object], number: str, message: str) -> None:
    [found] = complaints(**changed)
    assert found[:2] == (f"wfcelery.{number}", message)
    assert found[2]


@pytest.mark.parametrize(
    ("alias", "url"),
    [
        ("file", "sqlite:////data/shop.sqlite3"),
        ("server", "postgresql://sam:p%40ss%2Fword@db.example:5433/the%20shop?sslmode=require"),
        ("socket", "postgresql:///shop?host=%2Frun%2Fpg"),
    ],
)
def test_a_database_of_django_is_written_as_our_url(alias: str, url: str) -> None:
    assert conf.database_url(alias) == url


def test_what_nobody_sets_comes_from_django() -> None:
    with override_settings(WFCELERY={**GOOD, "database": "file", "database_url": None}):
        made = conf.load_settings()
        variables = conf.environment()
    assert made.database_url == "sqlite:////data/shop.sqlite3"
    assert made.authorize == "wfcelery.contrib.django.rights:DjangoAuthority"
    assert made.tools == ("wfcelery.contrib.django.tools",)
    assert made.user == "app:django"
    assert variables == {
        "WFCELERY_AUTHORIZE": "wfcelery.contrib.django.rights:DjangoAuthority",
        "WFCELERY_BROKER_URL": "redis://broker",
        "WFCELERY_DATABASE_URL": "sqlite:////data/shop.sqlite3",
        "WFCELERY_SECRET_KEY": "a secret of thirty-two characters,the secret that was in use before",
        "WFCELERY_TOOLS": "wfcelery.contrib.django.tools",
        "WFCELERY_USER": "app:django",
    }


def test_a_file_that_is_shared_with_the_executor_needs_transactions_that_begin_by_writing() -> None:
    with override_settings(WFCELERY={**GOOD, "database_url": "sqlite:////data/shop.sqlite3"}):
        found = [each.id for each in check_settings()]
    assert "wfcelery.W001" in found


def test_rights_may_be_left_open_only_on_purpose() -> None:
    with override_settings(WFCELERY={**GOOD, "authorize": None}):
        assert conf.load_settings().authorize is None
    with override_settings(WFCELERY={**GOOD, "policy": "policy.toml"}):
        made = conf.load_settings()
    assert (made.policy, made.authorize) == ("policy.toml", None)


def test_an_unknown_setting_is_refused_when_it_is_used_too() -> None:
    with override_settings(WFCELERY={"secret": "x"}), pytest.raises(InvalidSettings, match="is not known"):
        conf.load_settings()


def test_tools_and_flows_are_found_in_the_apps() -> None:
    assert discovery.tool_modules() == ("orders.tools",)
    assert [folder.name for folder in discovery.flow_folders()] == ["flows"]
