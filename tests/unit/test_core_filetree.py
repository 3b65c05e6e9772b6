"""No URL becomes a name that leaves the tree or that a file system refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool.core import filetree, urls


def path(text: str) -> str:
    url = urls.parse(text)
    assert url is not None, text
    return "/".join(filetree.path_of(url))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.test", "h.test/index.html"),
        ("http://h.test/a/", "h.test/a/index.html"),
        ("http://h.test/a/b.html", "h.test/a/b.html"),
        ("http://h.test:8080/a", "h.test%3A8080/a"),
        ("http://[::1]/a", "[%3A%3A1]/a"),
        ("http://h.test/?q=1&r=/x", "h.test/index.html%3Fq=1&r=%2Fx"),
        ("http://h.test//a", "h.test/%/a"),
        ("http://h.test/a%2F..%2Fb", "h.test/a%2F..%2Fb"),
        ("http://h.test/.../x", "h.test/..%2E/x"),
        ("http://h.test/a.", "h.test/a%2E"),
        ("http://h.test/-rf", "h.test/%2Drf"),
        ("http://h.test/~me", "h.test/%7Eme"),
        ("http://h.test/a|b'c*d:e", "h.test/a%7Cb'c%2Ad%3Ae"),
        ("http://h.test/NUL.txt", "h.test/%4EUL.txt"),
        ("http://h.test/ü", "h.test/%C3%BC"),
    ],
)
def test_names_are_those_a_person_expects(url: str, expected: str) -> None:
    assert path(url) == expected


def test_long_and_deep_names_are_bounded_and_stay_apart() -> None:
    one, other = path("http://h.test/" + "a" * 300 + "/x"), path("http://h.test/" + "a" * 299 + "b/x")
    assert one != other and max(map(len, one.split("/"))) < 255
    deep = path("http://h.test/" + "a/" * 500)
    assert deep.count("/") <= filetree.DEPTH_MAX and len(deep) < 2000


def test_a_mark_stands_before_the_ending() -> None:
    assert filetree.marked("a.html", "x").startswith("a~") and filetree.marked("a.html", "x").endswith(".html")
    assert filetree.marked("a", "x") != filetree.marked("a", "y")
    assert filetree.folded(["H", "A"]) == filetree.folded(["h", "a"])


@given(
    st.one_of(
        st.text(max_size=300),
        st.lists(st.sampled_from(["..", ".", "%2e%2e", "%00", "\\", "a", "%2f", "con", " ", "\x00"])).map("/".join),
    )
)
def test_no_part_of_a_path_is_dangerous(text: str) -> None:
    url = urls.parse("http://h.test/" + text)
    if url is None:
        return
    parts = filetree.path_of(url)
    assert 2 <= len(parts) <= filetree.DEPTH_MAX + 1
    for part in parts:
        assert part not in ("", ".", "..") and len(part) < 255
        assert part.isascii() and part.isprintable() and not set(part) & set('/\\\0 "*:<>?|`')
        assert not part.startswith(("-", "~")) and not part.endswith(".")
