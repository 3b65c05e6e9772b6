"""core/text: main text and language."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core import html, text

ENGLISH = "The quick brown fox jumps over the lazy dog while the farmer looks at the weather and thinks about the harvest. "
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund, während der Bauer nach dem Wetter sieht und nachdenkt. "


def test_main_text_leaves_the_menu_out_and_all_text_keeps_it() -> None:
    page = f"<body><nav><ul><li><a href=/>Startseite</a></ul></nav><main><p>{ENGLISH}</p></main><footer>Impressum</footer>"
    assert ENGLISH.strip() in text.main(page)
    assert "Startseite" not in text.main(page)
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
    assert "words" in text.main(page.html)
    assert time.process_time() - started < 2  # with the options, 8 s


@given(st.text(alphabet="<>/=\"' \x00abdivspn!-&;#é漢\uffff", max_size=200))
@settings(max_examples=80, deadline=None)
def test_no_page_raises(page: str) -> None:
    text.language(text.main(page * 5), page)
    text.whole(page)
