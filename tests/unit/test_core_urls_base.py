"""core/urls.Base: the quick way gives what the parser gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core import urls

PIECES = [
    *"/.?#:%\\'<|^{~-_@;&=\t [](),+*!$`",
    "a",
    "b.html",
    "..",
    "%2e",
    "%2E",
    "http:",
    "https://",
    "é",
    "www.x.test",
    "HTTP://h.test",
    "//",
]
BASES = ["http://a.test/", "http://a.test:81/x/y/z.html?q=/a/b", "https://b.test/d/", "http://127.0.0.1/p", "http://a.test/a'?"]


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(BASES))
@settings(max_examples=400, deadline=None)
def test_a_reference_resolves_as_the_parser_resolves_it(pieces: list[str], base: str) -> None:
    reference, url = "".join(pieces), urls.parse(base)
    assert url is not None
    expected = urls.parse(reference, base)
    assert urls.Base(url).href(reference) == (expected.href if expected else None)
