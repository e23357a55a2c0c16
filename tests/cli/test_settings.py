"""Flags over environment over file; what is unknown is refused."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from wfcelery.errors import InvalidSettings
from wfcelery.settings import DEFAULT_DATABASE, Settings, load


def refusal(flags: dict[str, str | None], environ: dict[str, str], folder: Path) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load(flags, environ, folder)
    return str(caught.value)


def test_without_anything_the_database_is_a_file_here_and_the_user_is_you(tmp_path: Path) -> None:
    assert load({}, {}, tmp_path) == Settings(database_url=DEFAULT_DATABASE, user=getpass.getuser())
    assert DEFAULT_DATABASE == "sqlite:///.wfcelery/wfcelery.db"


def test_everything_can_be_set_in_the_environment(tmp_path: Path) -> None:
    environ = {
        "WFCELERY_DATABASE_URL": "postgresql://db/x",
        "WFCELERY_BROKER_URL": "redis://broker",
        "WFCELERY_SECRET_KEY": "new, old",
        "WFCELERY_WORKER_KEY": "w1,w2",
        "WFCELERY_TOOLS": "a.b, c",
        "WFCELERY_BASE_URL": "https://example.org",
        "WFCELERY_USER": "ann",
        "WFCELERY_LEASE_S": "2.5",
        "WFCELERY_POLICY": "people.toml",
        "WFCELERY_NOTIFY": "channel:ops  ann\nslack://a/b,c?to=d",
        "WFCELERY_LINK_DAYS": "0.5",
        "WFCELERY_LINK_LOGIN": "Yes",
        "WFCELERY_LOG_FORMAT": "json",
        "WFCELERY_HOOKS": "shop.flows:note, shop.mail:tell",
        "PATH": "/bin",
    }
    assert load({}, environ, tmp_path) == Settings(
        database_url="postgresql://db/x",
        broker_url="redis://broker",
        secret_key=("new", "old"),
        worker_key=("w1", "w2"),
        tools=("a.b", "c"),
        base_url="https://example.org",
        user="ann",
        lease_s=2.5,
        policy="people.toml",
        notify=("channel:ops", "ann", "slack://a/b,c?to=d"),
        link_days=0.5,
        link_login=True,
        log_format="json",
        hooks=("shop.flows:note", "shop.mail:tell"),
    )
    assert load({}, {"WFCELERY_AUTHORIZE": "shop.rights:may", "WFCELERY_USER": "ann"}, tmp_path) == Settings(
        user="ann", authorize="shop.rights:may"
    )


def test_without_anything_there_is_no_policy_and_a_link_is_good_for_two_weeks() -> None:
    found = Settings()
    assert (found.policy, found.authorize, found.notify) == (None, None, ())
    assert (found.link_days, found.link_login) == (14.0, False)


def test_flags_win_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "wfcelery.toml").write_text(
        'user = "file"\nbase_url = "https://file"\ntools = ["t1", "t2"]\n'
    )
    environ = {"WFCELERY_USER": "env", "WFCELERY_BASE_URL": "https://env"}
    found = load({"user": "flag", "tools": None}, environ, tmp_path)
    assert (found.user, found.base_url, found.tools) == ("flag", "https://env", ("t1", "t2"))


def test_what_up_has_noted_counts_least_and_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / ".wfcelery").mkdir()
    (tmp_path / ".wfcelery" / "system.toml").write_text('user = "noted"\nbroker_url = "redis://noted"\n')
    (tmp_path / "wfcelery.toml").write_text('user = "file"\n')
    assert load({}, {}, tmp_path) == Settings(user="file", broker_url="redis://noted")
    assert load({}, {}, tmp_path, system=False) == Settings(user="file")


def test_a_fault_in_what_up_has_noted_names_its_file(tmp_path: Path) -> None:
    (tmp_path / ".wfcelery").mkdir()
    (tmp_path / ".wfcelery" / "system.toml").write_text("user = 3\n")
    assert refusal({}, {}, tmp_path) == "setting user: must be text in .wfcelery/system.toml"


def test_the_lease_is_a_number_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "wfcelery.toml").write_text("lease_s = 5\n")
    assert load({"user": "a"}, {}, tmp_path) == Settings(user="a", lease_s=5.0)


def test_an_unknown_variable_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    said = refusal({}, {"WFCELERY_DATABSE_URL": "x"}, tmp_path)
    assert said == (
        "setting WFCELERY_DATABSE_URL: is not known (in the environment); did you mean WFCELERY_DATABASE_URL?"
    )


def test_an_unknown_key_of_the_file_is_refused_with_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "wfcelery.toml").write_text('zzz = "1"\n')
    assert refusal({}, {}, tmp_path) == (
        "setting zzz: is not known (in wfcelery.toml); the known ones are database_url, broker_url, "
        "key_prefix, secret_key, worker_key, tools, base_url, user, lease_s, policy, authorize, notify, "
        "link_days, link_login, token, log_format, hooks"
    )


def test_variables_for_tests_are_free(tmp_path: Path) -> None:
    assert load({}, {"WFCELERY_TEST_LEDGER": "x", "WFCELERY_USER": "ann"}, tmp_path) == Settings(user="ann")


def test_an_empty_variable_is_as_good_as_none(tmp_path: Path) -> None:
    assert load({"user": "ann"}, {"WFCELERY_BROKER_URL": ""}, tmp_path) == Settings(user="ann")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("user = 3\n", "setting user: must be text in wfcelery.toml"),
        ("tools = [1]\n", "setting tools: must be text or a list of texts in wfcelery.toml"),
        ("lease_s = true\n", "setting lease_s: must be a number in wfcelery.toml"),
        ("lease_s = 0\n", "setting lease_s: must be a number of seconds above 0, not 0"),
        ('lease_s = "soon"\n', "setting lease_s: must be a number of seconds above 0, not soon"),
        ("link_days = 0\n", "setting link_days: must be a number of days above 0, not 0"),
        ("link_days = inf\n", "setting link_days: must be a number of days above 0, not inf"),
        ("link_login = 1\n", "setting link_login: must be true or false in wfcelery.toml"),
        ('log_format = "xml"\n', "setting log_format: must be text or json, not xml"),
        ('link_login = "perhaps"\n', "setting link_login: must be yes or no, not perhaps"),
        ("policy = true\n", "setting policy: must be text in wfcelery.toml"),
        ("notify = 3\n", "setting notify: must be text or a list of texts in wfcelery.toml"),
        (
            'notify = ["ann", "two words"]\n',
            "setting notify: must hold no white space inside its parts; number 2 has, in wfcelery.toml",
        ),
        (
            'policy = "people.toml"\nauthorize = "shop:may"\n',
            "setting authorize: and policy cannot both be set; leave one of them out",
        ),
        (
            'base_url = "flows.example.org"\n',
            "setting base_url: must be where people reach `wfcelery web`, like https://example.org/flows",
        ),
        (
            'base_url = "http://[::1"\n',
            "setting base_url: must be where people reach `wfcelery web`, like https://example.org/flows",
        ),
        ('user = ""\n', "setting user: is empty; give it a value or leave it out"),
        (
            "user = ]",
            "setting wfcelery.toml: is not TOML: Invalid value (at line 1, column 8)",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "wfcelery.toml").write_text(text)
    assert refusal({}, {}, tmp_path) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [("yes", True), ("TRUE", True), ("1", True), ("no", False), ("False", False), ("0", False)],
)
def test_a_choice_is_said_in_any_of_the_usual_words(tmp_path: Path, text: str, said: bool) -> None:
    assert load({"user": "a"}, {"WFCELERY_LINK_LOGIN": text}, tmp_path).link_login is said
    (tmp_path / "wfcelery.toml").write_text(f"link_login = {'true' if said else 'false'}\n")
    assert load({"user": "a"}, {}, tmp_path).link_login is said


def test_recipients_are_a_list_in_the_file_and_keep_their_commas(tmp_path: Path) -> None:
    (tmp_path / "wfcelery.toml").write_text('notify = ["channel:ops", "mailto://a:b@c?to=d,e"]\n')
    assert load({}, {}, tmp_path).notify == ("channel:ops", "mailto://a:b@c?to=d,e")


def test_a_policy_from_one_place_and_a_hook_from_another_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wfcelery.toml").write_text('policy = "people.toml"\n')
    assert "cannot both be set" in refusal({}, {"WFCELERY_AUTHORIZE": "shop:may"}, tmp_path)


def test_a_path_is_the_sqlite_database_in_that_file(tmp_path: Path) -> None:
    assert load({"database_url": "my.db", "user": "a"}, {}, tmp_path).database_url == "sqlite:///my.db"
    assert load({"database_url": "/x/my.db", "user": "a"}, {}, tmp_path).database_url == "sqlite:////x/my.db"


def test_keys_are_never_shown() -> None:
    assert "hush" not in repr(Settings(secret_key=("hush",), worker_key=("hush",), notify=("json://hush",)))
