"""What a ban bans: names, the names below them, patterns; and what lifts it."""

from __future__ import annotations

import pytest

from crawltool.core.frontier.bans import Ban, BanList, Bans, read_line, read_lines
from crawltool.core.urls import Url, parse
from crawltool.errors import BadPolicy


def url(text: str) -> Url:
    found = parse(text)
    assert found is not None, text
    return found


def ban(text: str) -> Ban:
    found = read_line(text)
    assert found is not None, text
    return found


def banned(lines: str, text: str) -> bool:
    return Bans({"f": read_lines(lines, "f")}).judge(url(text)) is not None


@pytest.mark.parametrize(
    ("line", "hit", "miss"),
    [
        (
            "example.org",
            ["http://example.org/", "https://a.b.example.org:8443/x", "http://example.org./"],
            ["http://anexample.org/"],
        ),
        ("*.example.org", ["http://a.example.org/"], ["http://example.org/"]),
        (".example.org", ["http://a.example.org/"], ["http://example.org/"]),
        ("=example.org", ["http://example.org/"], ["http://a.example.org/"]),
        ("Bücher.Example", ["http://xn--bcher-kva.example/"], ["http://bucher.example/"]),
        ("127.0.0.1", ["http://127.0.0.1:8080/"], ["http://1.127.0.0.1.example/"]),
        ("[::1]", ["http://[::1]:8080/"], ["http://[::2]/"]),
        ("example.org/private/*", ["http://example.org/private/a", "https://example.org/private/b"], ["http://example.org/open"]),
        ("http://example.org/a?", ["http://example.org/ab"], ["https://example.org/ab"]),
        ("/login*", ["http://x.example/login?a", "http://y.example/login"], ["http://x.example/a/login"]),
        (r"re:/\d{4}/", ["http://x.example/2024/"], ["http://x.example/24/"]),
    ],
)
def test_a_line_bans_what_the_manual_says(line: str, hit: list[str], miss: list[str]) -> None:
    assert [text for text in hit if not banned(line, text)] == []
    assert [text for text in miss if banned(line, text)] == []


def test_comments_and_blank_lines_ban_nothing() -> None:
    assert not Bans({"f": read_lines("\ufeff# opt-outs\n\n  \n", "f")}).active
    assert not Bans().active


@pytest.mark.parametrize("line", ["a b", "*", "ex*mple.org", "example.org:80", "me@example.org", "re:(", "x" * 300, "=", "*."])
def test_a_line_that_means_nothing_is_named_by_file_and_number(line: str) -> None:
    with pytest.raises(BadPolicy, match=r"^optouts\.txt:2: "):
        read_lines(f"a.example\n{line}\n", "optouts.txt")


def test_the_reason_names_line_and_list() -> None:
    bans = Bans({"optouts.txt": read_lines("example.org", "optouts.txt")})
    assert bans.judge(url("http://a.example.org/")) == "example.org (optouts.txt)"


def test_a_block_twice_is_the_same_as_once() -> None:
    bans = Bans()
    assert bans.block(ban("Example.org"))
    before = bans.fingerprint()
    assert not bans.block(ban("example.org"))
    assert bans.fingerprint() == before
    assert bans.unblock(ban("example.org"))
    assert not bans.unblock(ban("example.org"))
    assert not bans.active


def test_lifting_a_block_leaves_the_bans_of_files() -> None:
    bans = Bans({"f": read_lines("example.org", "f")})
    bans.block(ban("example.org"))
    bans.unblock(ban("example.org"))
    assert bans.judge(url("http://example.org/")) == "example.org (f)"
    bans.block(ban("other.example"))
    bans.replace({})
    assert bans.judge(url("http://example.org/")) is None
    assert bans.judge(url("http://other.example/")) == "other.example (control)"


def test_a_broken_pattern_bans_nothing_and_says_so() -> None:
    bans = Bans()
    with pytest.raises(BadPolicy):
        bans.block(Ban("re:(", "pattern"))
    assert not bans.active


def test_a_list_keeps_its_lines() -> None:
    found = BanList([ban("=a.example"), ban("*.a.example"), ban("re:x"), ban("re:x")])
    assert found.lines() == ["=a.example", "*.a.example", "re:x"]
