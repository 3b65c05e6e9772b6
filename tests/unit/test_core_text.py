"""core/pages/text and core/pages/maintext: main text, all text and language."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core.pages import html, maintext, text

ENGLISH = "The quick brown fox jumps over the lazy dog while the farmer looks at the weather and thinks about the harvest. "
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund, während der Bauer nach dem Wetter sieht und nachdenkt. "


def main(page: str) -> str:
    return maintext.read(html.parse(page))


def test_main_text_leaves_the_menu_out_and_all_text_keeps_it() -> None:
    page = f"<body><nav><ul><li><a href=/>Startseite</a></ul></nav><main><p>{ENGLISH}</p></main><footer>Impressum</footer>"
    assert ENGLISH.strip() in main(page)
    assert "Startseite" not in main(page)
    assert "Startseite" in text.whole(page)


def test_a_language_is_told_by_the_text_and_surer_where_the_page_agrees() -> None:
    language, sure = text.language(GERMAN * 3, "en-US")
    assert language == "de"
    assert sure is not None and 0 < sure < 1
    agreed = text.language(GERMAN * 3, " DE-at ")
    assert agreed[0] == "de" and agreed[1] is not None and agreed[1] > sure


def test_a_short_text_has_the_language_that_the_page_claims() -> None:
    assert text.language("OK", "fr") == ("fr", 0.5)
    assert text.language("OK", None) == (None, None)
    assert text.language("OK", "<script>") == (None, None)


def test_a_giant_list_of_options_costs_no_more_than_a_moment() -> None:
    page = html.parse("<p>words</p><select>" + "<option value=1>x" * 50_000)
    started = time.process_time()
    assert "words" in text.whole(page.html)
    assert time.process_time() - started < 2  # with the options, 8 s


def test_a_block_is_one_line_whatever_stands_in_it() -> None:
    page = f"<body><div>a <b>b</b>\n<i>c</i><span>d</span> tail<p>{ENGLISH}</p>end<ul><li>one<li>t<u>w</u>o</ul><pre>x\n y</pre>"
    assert main(page).split("\n") == ["a b cd tail", ENGLISH.strip(), "end", "one", "two", "x y"]


@pytest.mark.parametrize(
    "junk",
    [
        "<script>{}</script>",
        "<select><option>{}</select>",
        "<aside>{}</aside>",
        "<div class='row site-footer_links'>{}</div>",
        "<section id=comments>{}</section>",
        "<div hidden>{}</div>",
        "<div aria-hidden=true>{}</div>",
        "<div role=navigation>{}</div>",
        "<ul><li><a href=/x>{}</a> <li><a href=/y>{}</a></ul>",
        "<noscript><div class=ad>{}</div></noscript>",
        "<svg><style><g class=ad><script>{}</script></g></style></svg>",
    ],
)
def test_what_is_not_the_page_s_own_goes(junk: str) -> None:
    page = "<body>" + junk.replace("{}", "JUNK") + f"<p>{ENGLISH * 3}</p>" + junk.replace("{}", "JUNK")
    assert main(page) == (ENGLISH * 3).strip()
    assert main(f"<body><article><p>{ENGLISH * 3}</p>{junk.replace('{}', 'JUNK')}</article>") == (ENGLISH * 3).strip()


@pytest.mark.parametrize(
    "layout",
    [
        "<div class=sidebar>{}</div>",
        "<form>{}</form>",
        "<div class='with-sidebar nav-closed'>{}</div>",
        "<div id=comments-off>{}</div>",
        "<header><main>{}</main></header>",
        "<article><header>{}</header></article>",
    ],
)
def test_a_layout_s_name_is_not_believed_where_the_text_is(layout: str) -> None:
    assert ENGLISH.strip() in main(f"<body><p>Short.</p>{layout.format('<p>' + ENGLISH + '</p>')}")


def test_the_only_article_stands_for_the_page() -> None:
    page = f"<body><div>Frame words.</div><article><h1>Title</h1><p>{ENGLISH * 2}</p></article><div>More frame.</div>"
    assert main(page).split("\n") == ["Title", (ENGLISH * 2).strip()]


@pytest.mark.parametrize(
    "markup",
    [
        "<div class=nav>x" * 500 + "words " * 200_000,
        "<div class=nav>x<a href=/>y</a>" * 500 + "<p>words</p>" * 60_000,
        "<span>" * 500 + "<a href=/>x</a><header>y</header>" * 40_000,
        "<p>" + "<i>x</i>" * 100_000,
    ],
    ids=["named in named", "links in named", "links in spans", "inline"],
)
def test_time_is_bounded_whatever_the_page(markup: str) -> None:
    page = html.parse(markup)
    started = time.process_time()
    maintext.read(page)
    assert time.process_time() - started < 2


@given(st.text(alphabet="<>/=\"' \x00abdivspn!-&;#é漢\uffff", max_size=200))
@settings(max_examples=80, deadline=None)
def test_no_page_raises(page: str) -> None:
    text.language(main(page * 5), page)
    text.whole(page)
