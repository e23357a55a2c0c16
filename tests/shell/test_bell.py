"""A bell that cannot be answered."""

from __future__ import annotations

import pytest

from wfcelery.shell import bell


def test_whatever_goes_wrong_with_a_bell_is_told_and_ends_no_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bell._answer()  # in a process that is no executor
    assert [record.message for record in caplog.records] == ["a bell could not be answered"]
