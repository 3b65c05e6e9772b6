"""core/mediatypes: the words of --types."""

from __future__ import annotations

import pytest

from crawltool.core.mediatypes import TYPES, WantedTypes, essence
from crawltool.errors import BadPolicy


@pytest.mark.parametrize(
    "text",
    [
        "text/html",
        "TEXT/HTML; charset=x",
        "application/xhtml+xml",
        "application/xml",
        "image/svg+xml",
        "text/plain",
        "application/ld+json",
        "application/atom+xml",
        "application/pdf",
        "",
        None,
        "application/octet-stream",
        "junk",
    ],
)
def test_the_default_words_want_documents_and_what_says_nothing(text: str | None) -> None:
    assert WantedTypes(TYPES).wants(text)


@pytest.mark.parametrize(
    "text", ["image/png", "video/mp4", "application/zip", "text/css", "text/javascript; charset=utf-8", "font/woff2"]
)
def test_the_default_words_leave_out_media_and_code(text: str) -> None:
    assert not WantedTypes(TYPES).wants(text)


def test_a_media_type_may_be_written_out_and_all_means_all() -> None:
    assert WantedTypes(["html", "image/png"]).wants("image/png")
    assert not WantedTypes(["html"]).wants("application/pdf")
    assert WantedTypes(["all"]).wants("video/mp4")


def test_an_unknown_word_is_bad_policy() -> None:
    with pytest.raises(BadPolicy, match="htlm"):
        WantedTypes(["htlm"])


def test_essence_drops_parameters_and_case() -> None:
    assert essence("Text/HTML ; Charset=utf-8") == "text/html"
    assert essence("text/html, text/html") == "text/html"
    assert essence(None) == ""
