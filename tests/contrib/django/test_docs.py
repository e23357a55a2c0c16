"""The page about Django leaves nothing out."""

from __future__ import annotations

import inspect
import re

import pytest

from tests.system.system import ROOT
from wfcelery.contrib.django import checks, conf, start
from wfcelery.contrib.django.models import Run
from wfcelery.rights import Permission

PAGE = (ROOT / "docs" / "django.md").read_text()


@pytest.mark.parametrize("name", inspect.signature(start).parameters)
def test_every_argument_of_start_is_documented(name: str) -> None:
    assert re.search(rf"`{name}\b|\b{name}=", PAGE)


@pytest.mark.parametrize("name", conf.OWN)
def test_every_setting_of_django_alone_is_documented(name: str) -> None:
    assert f"| `{name}` |" in PAGE


def test_every_check_is_documented() -> None:
    numbers = set(re.findall(r'"([EW]\d{3})"', inspect.getsource(checks)))
    assert numbers == set(re.findall(r"`wfcelery\.([EW]\d{3})`", PAGE))


def test_every_permission_of_ours_is_one_of_django() -> None:
    assert {name for name, _ in Run._meta.permissions} == {each.value for each in Permission}
