"""The colours: enough contrast in light and dark, a colour and a sign for every status, calm where wanted."""

from __future__ import annotations

import re

import pytest

from wfcelery.drawing.icons import SIGNS
from wfcelery.drawing.style import CSS
from wfcelery.drawing.svg import STATUSES

_SCHEMES = CSS.partition("@media (prefers-color-scheme: dark)")


def colours(text: str) -> dict[str, str]:
    block = text[: text.index("}")]
    return dict(re.findall(r"--wf-([\w-]+): (#[0-9a-f]{6});", block))


LIGHT, DARK = colours(_SCHEMES[0]), colours(_SCHEMES[2])


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_counted_as_it_is_defined() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_light_and_dark_set_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read_on_every_ground(scheme: dict[str, str]) -> None:
    grounds = ["canvas", *(f"{status}-fill" for status in STATUSES)]
    poor = {
        (ink, ground): contrast(scheme[ink], scheme[ground])
        for ink in ("ink", "muted")
        for ground in grounds
        if contrast(scheme[ink], scheme[ground]) < 4.5
    }
    assert poor == {}


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_signs_stand_out_from_what_they_lie_on(scheme: dict[str, str]) -> None:
    pairs = [("edge", "canvas"), ("taken", "canvas"), ("focus", "canvas")]
    for status in STATUSES:
        pairs += [(f"{status}-line", "canvas"), (f"{status}-line", f"{status}-fill")]
        if status in SIGNS and SIGNS[status].solid:
            pairs.append(("on-solid", f"{status}-line"))
    poor = {pair: found for pair in pairs if (found := contrast(scheme[pair[0]], scheme[pair[1]])) < 3}
    assert poor == {}


def test_every_status_has_its_own_colour_rule_and_all_but_none_have_a_sign_of_their_own() -> None:
    assert [
        status for status in STATUSES if status != "none" and f".status-{status} {{ --line" not in CSS
    ] == []
    assert set(SIGNS) == set(STATUSES) - {"none"}
    assert len({sign.lines for sign in SIGNS.values()}) == len(SIGNS)


def test_what_moves_stands_still_for_who_wants_that() -> None:
    calm = CSS[CSS.index("@media (prefers-reduced-motion: reduce)") :]
    assert ".turning .sign { animation: none; }" in calm
    assert CSS.count("animation: wf-turn") == 1


def test_the_sheet_loads_nothing_and_touches_nothing_else() -> None:
    assert "url(" not in CSS
    assert "@import" not in CSS
    bare = re.sub(r"/\*.*?\*/|@keyframes[^}]*\}\s*\}|@media[^{]*\{", "", CSS, flags=re.DOTALL)
    selectors = [each.strip() for rule in re.findall(r"([^{}]+)\{", bare) for each in rule.split(",")]
    assert [each for each in selectors if not each.startswith(".wf-graph")] == []


def test_nothing_in_the_sheet_needs_escaping_in_a_file() -> None:
    assert not set("<&") & set(CSS)
