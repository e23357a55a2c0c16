"""The picture of one step: a shape and an icon for its kind, its name, what it does, how it stands."""

from __future__ import annotations

from typing import Final, TypeAlias

from wfcelery.core.flow import Flow, Step
from wfcelery.drawing import lettering, words
from wfcelery.drawing.icons import KIND_SIZE, KINDS, SIGN_SIZE, SIGNS
from wfcelery.drawing.layout import Box
from wfcelery.drawing.markup import element, number, text

NAME_SIZE: Final = 13.0
WHAT_SIZE: Final = 11.0

_NAME_BOLD: Final = 1.06  # a bold font is that much wider
_SIDE: Final = 14.0
_ICON_ROOM: Final = KIND_SIZE + 7.0
_SIGN_ROOM: Final = SIGN_SIZE + 8.0
_NAME_LINE, _ONLY_LINE, _WHAT_LINE = 24.0, 32.5, 43.0
_LEAST, _MOST = 132.0, {0: 248.0, 1: 248.0, 2: 172.0, 3: 188.0}
_EVEN: Final = 4.0
_RISE: Final = 4.5  # from the line that letters stand on to their middle

_Attributes: TypeAlias = dict[str, str | float | None]


def natural_width(flow: Flow, beside: int, *, with_signs: bool) -> float:
    """Give the width of the boxes: as wide as the widest text wants, narrower where several stand in a row.

    All boxes of a picture are of one width, and two of them still fit beside one another on a phone.
    """
    most = _MOST[min(beside, max(_MOST))]
    around = _ICON_ROOM + (_SIGN_ROOM if with_signs else 0.0)
    wanted = _LEAST
    for step in flow.steps.values():
        name = lettering.width(lettering.visible(step.name, 80), NAME_SIZE) * _NAME_BOLD
        what = lettering.width(lettering.visible(words.what(flow, step), 80), WHAT_SIZE)
        wanted = max(wanted, 2 * _SIDE + max(around + name, what))
    return min(most, -(-wanted // _EVEN) * _EVEN)


def step_box(flow: Flow, step: Step, box: Box, *, status: str, tally: str, href: str | None) -> str:
    """Draw a step, as a link where `href` says where to."""
    kind = words.kind(step.action)
    name = lettering.visible(step.name)
    what = lettering.visible(words.what(flow, step))
    said = _said(step, name, what, status, tally)
    left, right = box.x + _SIDE, box.x + box.width - _SIDE
    line = box.y + (_NAME_LINE if what or tally else _ONLY_LINE)
    at = _moved(left, line - KIND_SIZE / 2 - _RISE)
    parts = [element("title", None, text(said)), *_shape(kind, box)]
    parts.append(element("path", {"class": "icon", "transform": at, "d": KINDS[kind]}))
    room = right - left - _ICON_ROOM - (_SIGN_ROOM if status in SIGNS else 0.0)
    shown = lettering.shortened(name, room / _NAME_BOLD, NAME_SIZE)
    parts.append(_text("name", shown, left + _ICON_ROOM, line))
    if tally:
        counted = lettering.shortened(lettering.visible(tally), right - left, WHAT_SIZE)
        parts.append(_text("tally", counted, left, box.y + _WHAT_LINE))
        left += lettering.width(counted, WHAT_SIZE) * _NAME_BOLD + 5
    if what and right > left:
        shown = lettering.shortened(what, right - left, WHAT_SIZE)
        parts.append(_text("what", shown, left, box.y + _WHAT_LINE))
    if status in SIGNS:
        parts.append(_sign(status, right - SIGN_SIZE, line - SIGN_SIZE / 2 - _RISE))
    classes = f"step status-{status} kind-{kind}" + (" end" if step.done else "")
    group = element("g", {"class": classes, "data-step": step.name}, *parts)
    return (group if href is None else element("a", {"href": href, "aria-label": said}, group)) + "\n"


def _said(step: Step, name: str, what: str, status: str, tally: str) -> str:
    """Say everything in words, for whom the picture is too small or not to be seen."""
    standing = "" if status == "none" else " ".join((status, lettering.visible(tally))).strip()
    head = ": ".join(part for part in (name, what) if part)
    return " — ".join(part for part in (head, standing, lettering.visible(step.description)) if part)


def _shape(kind: str, box: Box) -> list[str]:
    """Draw the outline: who decides has six corners, who waits is round, who does it often lies on a pile."""
    x, y, width, height = box.x, box.y, box.width, box.height
    rect: _Attributes = {"class": "box", "x": x, "y": y, "width": width, "height": height, "rx": 10}
    around: _Attributes = {
        "class": "focus",
        "x": x - 4,
        "y": y - 4,
        "width": width + 8,
        "height": height + 8,
        "rx": 13,
        "stroke": "none",
    }
    focus = element("rect", around)
    match kind:
        case "gate":
            cut, half = 11.0, height / 2
            outline = (
                f"M{number(x + cut)} {number(y)}H{number(x + width - cut)}l{cut:g} {half:g}l{-cut:g} {half:g}"
                f"H{number(x + cut)}l{-cut:g} {-half:g}Z"
            )
            return [element("path", {"class": "box", "d": outline, "stroke-linejoin": "round"}), focus]
        case "wait" | "timer":
            return [element("rect", {**rect, "rx": height / 2}), focus]
        case "foreach":
            pile = element("rect", {**rect, "x": x + 4, "width": width - 8, "y": y + 4, "class": "box under"})
            return [pile, element("rect", rect), focus]
        case "flow":
            inset = 5.0
            sides = "".join(f"M{number(at)} {number(y)}v{height:g}" for at in (x + inset, x + width - inset))
            return [element("rect", {**rect, "rx": 4}), element("path", {"class": "rule", "d": sides}), focus]
        case _:
            return [element("rect", rect), focus]


def _sign(status: str, x: float, y: float) -> str:
    sign = SIGNS[status]
    half = SIGN_SIZE / 2
    classes = "standing" + (" solid" if sign.solid else "") + (" turning" if sign.turning else "")
    ring = element("circle", {"class": "ring", "cx": half, "cy": half, "r": half - 2})
    return element(
        "g",
        {"class": classes, "transform": _moved(x, y)},
        ring,
        element("path", {"class": "sign", "d": sign.lines}),
    )


def _text(kind: str, said: str, x: float, y: float) -> str:
    attributes: _Attributes = {
        "class": kind,
        "x": x,
        "y": y,
        "font-size": NAME_SIZE if kind == "name" else WHAT_SIZE,
        "font-weight": None if kind == "what" else "600",
        "fill": "currentColor",
        "stroke": "none",
    }
    return element("text", attributes, text(said))


def _moved(x: float, y: float) -> str:
    return f"translate({number(x)} {number(y)})"
