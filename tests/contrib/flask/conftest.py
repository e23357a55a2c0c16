"""One real system for the tests of a process, and an application beside it for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine

from tests.contrib.flask import shop
from tests.system.system import SECRET, System
from wfcelery.contrib.flask import WfceleryFlask


def config_of(system: System, **more: object) -> dict[str, object]:
    """What an application sets to talk to a system."""
    return {
        "database_url": system.database_url,
        "broker_url": system.broker_url,
        "secret_key": [SECRET],
        "user": "ann",
        **more,
    }


@pytest.fixture(scope="session")
def flask_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("flask")
    made = System(folder, f"sqlite:///{folder}/wfcelery.db")
    try:
        made.pair(concurrency=1)
        yield made
    except BaseException:
        print(made.report())  # noqa: T201 - pytest shows it with the failure
        raise
    finally:
        made.close()
    made.check()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """The application's own database."""
    made = create_engine(f"sqlite:///{tmp_path}/shop.sqlite")
    yield made
    made.dispose()


@pytest.fixture
def hosted(flask_system: System, engine: Engine) -> tuple[Flask, WfceleryFlask]:
    return shop.create_app(engine, config_of(flask_system, url_prefix="/flows"))


@pytest.fixture
def flows(hosted: tuple[Flask, WfceleryFlask]) -> Iterator[WfceleryFlask]:
    yield hosted[1]
    hosted[1].workflows.close()
