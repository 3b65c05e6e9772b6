"""core/pages/html: what a head says, and that no markup costs more than its length."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.pages import html


def test_a_head_tells_title_description_language_and_rules() -> None:
    document = html.parse(
        "<html lang='de-AT'><title> A\n <b>title </title><title>second</title><meta name=Description content=' what  it is '>"
        "<meta name=ROBOTS content='NoIndex, nofollow'><meta name=otherbot content=none><meta name=ours content=noarchive>"
    )
    head = html.head(document, "ours")
    assert head.title == "A <b>title"
    assert head.description == "what it is"
    assert head.lang == "de-AT"
    assert head.robots == ["noindex", "nofollow", "noarchive"]


def test_the_title_of_a_drawing_is_not_the_page_s() -> None:
    assert html.head(html.parse("<body><svg><title>arrow</title></svg><p>x"), "").title is None


def test_none_means_two_rules() -> None:
    assert html.rules(" None , max-snippet: 5,,") == ["noindex", "nofollow", "max-snippet: 5"]


HOSTILE = {
    "divs": "<div>" * 200_000,
    "misnested": "<a>" * 40_000 + "<i>" * 40_000 + "</a>" * 40_000,
    "options": "<select>" + "<option>" * 100_000,
    "attributes": "<div " + " ".join(f"a{i}=1" for i in range(100_000)) + ">",
    "attributes in slashes": "<div " + "/".join(f"a{i}" for i in range(100_000)) + ">",
    "fonts": "".join(f"<font a{i}=1><p>x" for i in range(30_000)),
    "lists": "<ul><li>x" * 50_000,
    "self-closed divs": "<div/>" * 100_000,
    "end tags out of scope": "<div><table><td></div></table>" * 35_000,
    "circles": "<circle>" * 100_000,
    "foreign": "<svg>" + "<g/>" * 200_000,
    "unclosed end": "<div>" * 3000 + "</" * 100_000,
    "less-thans": "<" * 1_000_000,
    "quotes": "<a href='" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_mem_03_hostile_markup_costs_no_more_than_a_moment(name: str) -> None:
    started = time.process_time()
    html.parse(HOSTILE[name][: limits.MIB])
    assert time.process_time() - started < 2.5  # under 0.4 s on a quiet machine; unbounded, up to 18 s


def test_markup_that_nests_too_deep_is_flattened_and_keeps_its_links() -> None:
    document = html.parse("<div>" * 50_000 + "<a href=/deep>x</a>" + "</div>" * 50_000 + "<a href=/after>y</a>")
    assert [element.attributes["href"] for element in document.elements] == ["/deep", "/after"]
    assert document.trouble is not None and "flattened" in document.trouble


def test_wide_markup_is_left_alone() -> None:
    text = "<p><i>x</i></p>" * 20_000 + "<svg>" + "<path d='M0'/>" * 3000 + "</svg>"
    assert html.parse(text).html is text
    assert html.parse(text).trouble is None


def test_a_long_path_of_a_drawing_is_no_tag_of_many_attributes() -> None:
    assert html.parse(f"<svg><path d='{'L 10 20 ' * 5000}'/></svg><a href=/x>").trouble is None


def test_a_long_text_without_tags_is_no_tag_of_many_attributes() -> None:
    text = "<p>" + "word " * 20_000 + "</p><a href=/x>"
    assert html.parse(text).trouble is None


@given(st.text(alphabet="<>/=\"' \x00abdivspn!-&;#x\ud7ff\uffff", max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_text_raises(text: str) -> None:
    document = html.parse(text * 3)
    html.head(document, "x")
