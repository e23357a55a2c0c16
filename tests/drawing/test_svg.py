"""The picture as SVG: whole, harmless, told in words as well as in colours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing.shapes import ORDER, chain, complete, fan, flow_of, graphs
from wfcelery.core import graph
from wfcelery.core.flow import Call, Flow, Gate
from wfcelery.drawing.style import CSS
from wfcelery.drawing.svg import STATUSES, svg
from wfcelery.errors import InvalidInput

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).parents[2]


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - our own document, and that it parses is the point


def groups(root: ET.Element, kind: str) -> list[ET.Element]:
    return [each for each in root.iter(f"{SVG}g") if kind in each.get("class", "").split()]


def texts(root: ET.Element, kind: str) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text") if each.get("class") == kind]


def steps(root: ET.Element) -> dict[str, ET.Element]:
    return {each.get("data-step", ""): each for each in groups(root, "step")}


def titles(root: ET.Element) -> dict[str, str]:
    return {name: each.findtext(f"{SVG}title", "") for name, each in steps(root).items()}


@pytest.mark.parametrize("path", sorted(ROOT.glob("flows/*.yaml")), ids=lambda path: path.stem)
def test_every_example_flow_is_drawn_whole(path: Path) -> None:
    flow = flow_of(path.read_text())
    root = parsed(svg(flow, standalone=True))
    assert set(steps(root)) == set(flow.steps)
    drawn = {
        (each.get("data-source"), each.get("data-edge"), each.get("data-target"))
        for each in groups(root, "edge")
    }
    assert drawn == {
        (edge.source, edge.id, edge.target) for step in flow.steps.values() for edge in step.edges
    }


@given(graphs())
def test_every_arrow_ends_on_its_target(flow: Flow) -> None:
    root = parsed(svg(flow))
    for each in groups(root, "edge"):
        head = next(path for path in each.iter(f"{SVG}path") if path.get("class") == "head")
        x, y = map(float, head.get("d", "").removeprefix("M").partition("l")[0].split())
        box = next(rect for rect in steps(root)[each.get("data-target", "")].iter(f"{SVG}rect"))
        left, top, width = (float(box.get(name, "")) for name in ("x", "y", "width"))
        assert (x, y) == pytest.approx((left + width / 2, top), abs=0.2)


def test_kinds_words_and_labels() -> None:
    root = parsed(svg(flow_of(ORDER)))
    classes = {name: each.get("class") for name, each in steps(root).items()}
    assert classes == {
        "check": "step status-none kind-tool",
        "review": "step status-none kind-gate",
        "refuse": "step status-none kind-tool end",
        "sorry": "step status-none kind-tool",
        "split": "step status-none kind-pass",
        "pack": "step status-none kind-foreach",
        "bill": "step status-none kind-timer",
        "ship": "step status-none kind-flow",
        "arrive": "step status-none kind-wait end",
        "sorrier": "step status-none kind-tool end",
    }
    assert titles(root) == {
        "check": "check: shop.check",
        "review": "review: approval by ann, group:finance",
        "refuse": "refuse: mail.send",
        "sorry": "sorry: mail.send",
        "split": "split",
        "pack": "pack: pick, each of input.items",
        "bill": "bill: waits 5 s",
        "ship": "ship: flow shipping@2",
        "arrive": "arrive: waits for signal arrived",
        "sorrier": "sorrier: mail.send",
    }
    assert sorted(texts(root, "label")) == ["denied", "else", "on error", "result.total > 100", "timeout"]


def test_ways_for_errors_denials_and_timeouts_are_dashed_and_no_others() -> None:
    for each in groups(parsed(svg(flow_of(ORDER))), "edge"):
        lines = [path for path in each.iter(f"{SVG}path") if path.get("class") == "line"]
        is_aside = each.get("data-edge") in {"error", "deny", "timeout"}
        assert [path.get("stroke-dasharray") is not None for path in lines] == [is_aside] * len(lines)
        assert ("aside" in each.get("class", "").split()) == is_aside


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_a_class_a_sign_and_a_word(status: str) -> None:
    root = parsed(svg(flow_of(ORDER), {"check": status}, tallies={"pack": "3/10"}))
    check = steps(root)["check"]
    assert f"status-{status}" in check.get("class", "").split()
    assert len(groups(check, "standing")) == (status != "none")
    assert titles(root)["check"] == "check: shop.check" + (f" — {status}" if status != "none" else "")
    assert texts(steps(root)["pack"], "tally") == ["3/10"]


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"statuses\.check: must be one of none, pending"):
        svg(flow_of(ORDER), {"check": 'x" onload="alert(1)'})


def test_steps_are_links_only_where_addresses_are_given() -> None:
    flow = flow_of(ORDER)
    root = parsed(svg(flow, href=lambda name: f"/runs/1?a=b&step={name}"))
    links = {each.get("href"): each for each in root.iter(f"{SVG}a")}
    assert set(links) == {f"/runs/1?a=b&step={name}" for name in flow.steps}
    assert links["/runs/1?a=b&step=check"].get("aria-label") == "check: shop.check"
    assert all(len(groups(link, "step")) == 1 for link in links.values())
    assert root.get("role") == "group"
    plain = parsed(svg(flow))
    assert (plain.get("role"), list(plain.iter(f"{SVG}a"))) == ("img", [])


def test_the_picture_says_what_it_shows() -> None:
    flow = replace(flow_of(ORDER), description="From order to door.")
    root = parsed(svg(flow, {"check": "done", "review": "waiting", "split": "none"}))
    assert (root[0].tag, root[0].text, root.get("aria-label")) == (f"{SVG}title", "order", "order")
    assert (root[1].tag, root[1].text) == (f"{SVG}desc", "10 steps, 1 waiting, 1 done. From order to door.")


def test_edges_that_were_taken_are_marked_and_lie_on_top() -> None:
    root = parsed(svg(flow_of(ORDER), taken=[("check", "if:0"), ("review", "next")]))
    marked = ["taken" in each.get("class", "").split() for each in groups(root, "edge")]
    assert marked == sorted(marked)
    assert {(each.get("data-source"), each.get("data-edge")) for each in groups(root, "taken")} == {
        ("check", "if:0"),
        ("review", "next"),
    }


def test_only_a_file_of_its_own_carries_the_sheet() -> None:
    flow = flow_of(ORDER)
    assert [each.text for each in parsed(svg(flow, standalone=True)).iter(f"{SVG}style")] == [CSS]
    assert list(parsed(svg(flow)).iter(f"{SVG}style")) == []


@pytest.mark.parametrize("standalone", [False, True])
def test_nothing_is_styled_scripted_named_or_fetched(standalone: bool) -> None:
    root = parsed(svg(flow_of(ORDER), {"check": "running"}, href=lambda name: name, standalone=standalone))
    names = {name for each in root.iter() for name in each.attrib}
    assert not names & {"style", "id", "src", "onload", "onclick", "{http://www.w3.org/1999/xlink}href"}
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        *("svg", "title", "desc", "style", "g", "a", "rect", "path", "circle", "text"),
    }


def renamed(name: str, tool: str, description: str) -> Flow:
    flow = chain(1)
    step = replace(flow.steps["s0"], name=name, description=description)
    assert isinstance(step.action, Call)
    held = {name: replace(step, action=replace(step.action, tool=tool))}
    return replace(flow, name=name, start=name, steps=held, ways_in=graph.ways_in(held))


@given(st.text(), st.text(), st.text())
def test_whatever_others_wrote_stays_text(name: str, tool: str, description: str) -> None:
    root = parsed(svg(renamed(name, tool, description), href=lambda step: step, standalone=True))
    assert len(list(root.iter(f"{SVG}g"))) == 3
    for each in root.iter():
        assert all(
            character.isprintable() for character in (each.text or "").strip() if each.tag != f"{SVG}style"
        )


def test_markup_in_names_is_shown_and_not_obeyed() -> None:
    name = '</title><script>alert("x")</script>'
    root = parsed(svg(renamed(name, "]]>&amp;<b>", "\u202egnp.exe")))
    assert list(steps(root)) == [name]
    assert titles(root)[name] == f"{name}: ]]>&amp;<b> — �gnp.exe"


def test_a_name_that_is_too_long_is_shortened_in_the_box_and_whole_in_the_title() -> None:
    name = "a_step_with_a_name_that_is_much_longer_than_any_box_could_hold"
    root = parsed(svg(renamed(name, "t", "")))
    assert texts(root, "name")[0].endswith("…")
    assert titles(root)[name] == f"{name}: t"


def test_gates_of_several_voices_and_joins_of_the_first_say_so() -> None:
    flow = flow_of(ORDER)
    gate = replace(flow.steps["review"], action=Gate(approvers=("ann",), quorum=2), optional=True)
    root = parsed(svg(replace(flow, steps={**flow.steps, "review": gate})))
    assert titles(root)["review"] == "review: 2 approvals by ann · optional"
    first = flow_of((ROOT / "flows" / "first_wins.yaml").read_text())
    assert titles(parsed(svg(first)))["finish"] == "finish: echo · first of 3"


def test_a_picture_is_shrunk_to_the_page_only_while_it_can_be_read() -> None:
    assert parsed(svg(fan(2))).get("class") == "wf-graph fits"
    assert parsed(svg(fan(12))).get("class") == "wf-graph"


def test_the_same_flow_gives_the_same_bytes() -> None:
    assert svg(flow_of(ORDER)) == svg(flow_of(ORDER))


@pytest.mark.parametrize(
    ("flow", "most"), [(chain(1_000), 1_000_000), (fan(200), 400_000), (complete(60), 700_000)]
)
def test_large_pictures_stay_of_a_size_that_can_be_sent(flow: Flow, most: int) -> None:
    assert len(svg(flow)) < most
