from __future__ import annotations

import re
from pathlib import Path

import pytest

from wfcelery.tools import Registry
from wfcelery.tools.failures import BadArguments, BadResult, ResultTooLarge, UnknownEvent

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block {number}" for number in range(len(BLOCKS))])
def test_the_examples_of_the_page_run(block: str) -> None:
    exec(compile(block, str(PAGE), "exec", dont_inherit=True), {"__name__": "example"})  # noqa: S102 - our own page


def test_every_failure_type_and_builtin_is_documented() -> None:
    types = [each.code for each in (BadArguments, BadResult, ResultTooLarge, UnknownEvent)]
    names = [*types, "timeout", "cancelled", *Registry.with_builtins().names]
    assert [name for name in names if f"\n| `{name}` |" not in TEXT] == []
