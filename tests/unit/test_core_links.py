"""core/pages/links: every link with its kind, words, place and whether it is followed. Cases HTM-01 to HTM-06, AUD-03."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.pages import html, links
from crawltool.records import Link
from tests.paths import shared_data

PAGE = "http://site.test/a/b/page"


def found(markup: str, url: str = PAGE, nofollow: bool = False) -> list[Link]:
    return links.read(html.parse(markup), url, nofollow).links


def pairs(markup: str, url: str = PAGE) -> list[tuple[str, str]]:
    return [(link.kind, link.url.removeprefix("http://site.test")) for link in found(markup, url)]


def test_htm_01_ascii_blanks_around_a_url_go_and_others_stay() -> None:
    markup = (
        '<base href="  http://site.test/d/  "><a href="\n\t http://site.test/x \r\n">1</a><a href=" sub/p q.html ">2</a>'
        '<img src="&#12;/i.png&#9;"><a href="">3</a> <a>4</a><a href="\u00a0/nbsp">5</a>'
    )
    assert pairs(markup, "http://site.test/?post=1") == [
        ("a", "/x"),
        ("a", "/d/sub/p%20q.html"),
        ("img", "/i.png"),
        ("a", "/d/"),
        ("a", "/d/%C2%A0/nbsp"),
    ]


@pytest.mark.parametrize(
    ("value", "urls"),
    [
        (
            "/i/w_300,h_200/a.jpg 1x,/i/w_600,h_400/a.jpg 2x, data:image/gif;base64,R0lGOD 3x, b.jpg,",
            ["/i/w_300,h_200/a.jpg", "/i/w_600,h_400/a.jpg", "data:image/gif;base64,R0lGOD", "b.jpg"],
        ),
        ("a,b,,c,", ["a,b,,c"]),
        ("p.jpg (x,y), q.jpg 100w, ,, r.jpg", ["q.jpg", "r.jpg"]),
        ("", []),
        (" , ,", []),
        ("a.jpg 1x", ["a.jpg"]),
        ("a.jpg 100w 50h", ["a.jpg"]),
        ("a.jpg (unclosed", []),
    ],
)
def test_htm_02_a_srcset_keeps_the_commas_of_its_urls(value: str, urls: list[str]) -> None:
    assert list(links.srcset(value)) == urls


def test_htm_03_the_first_base_with_a_href_rules_the_whole_page() -> None:
    markup = (
        '<a href="one">1</a><!-- <base href="/wrong/"> --><base target="_top"><base href="../app/"><base href="/second/">'
        '<a href="two">2</a> <a href="?q">3</a> <a href="#f">4</a>'
    )
    assert [url for _, url in pairs(markup)] == ["/a/app/one", "/a/app/two", "/a/app/?q", "/a/app/"]


@pytest.mark.parametrize("base", ["data:,x", "javascript:x", "http://[::1", ""])
def test_htm_03_a_base_that_cannot_be_one_is_ignored(base: str) -> None:
    assert pairs(f'<base href="{base}"><a href="k">5</a>') == [("a", "/a/b/k")]


def test_htm_06_a_nul_byte_loses_nothing() -> None:
    document = html.parse('<p>a\x00b</p><a href="/x\x00y">1</a><a href="/z">2</a>')
    assert [link.url for link in links.read(document, PAGE, False).links] == [
        "http://site.test/x%EF%BF%BDy",
        "http://site.test/z",
    ]
    assert document.tree.css_first("p").text() == "ab"


def test_cli_03_a_reference_to_a_surrogate_becomes_a_replacement_character() -> None:
    assert pairs("<a href='/&#xD800;'>x</a>") == [("a", "/%EF%BF%BD")]


def test_url_06_a_link_is_reported_as_the_page_wrote_it() -> None:
    markup = '<a href="/Svc.asmx?wsdl"><a href="/i.php?/t/57-a/&do=find&a=1"><a href="/s?b=2&a=1&a=0&empty=">'
    assert [url for _, url in pairs(markup)] == ["/Svc.asmx?wsdl", "/i.php?/t/57-a/&do=find&a=1", "/s?b=2&a=1&a=0&empty="]


def test_every_kind_of_link_is_found_in_document_order() -> None:
    markup = """<head><link rel="shortcut ICON" href=i.ico><link rel=stylesheet href=s.css><link rel=canonical href=/c>
        <link rel=alternate hreflang=de href=/de><link rel=next href=/n><link rel=prev href=/v><link rel=preload href=/pl>
        <meta http-equiv=Refresh content="3; url='/r'"><script src=j.js></script></head>
        <body><a href=/a>x</a><map><area href=/ar alt="the area"></map><iframe src=/if></iframe><img src=/im alt=" a  b ">
        <picture><source srcset="/so 2x"></picture><form action=/fo></form><form method=POST action=/po></form>"""
    assert pairs(markup) == [
        ("icon", "/a/b/i.ico"),
        ("stylesheet", "/a/b/s.css"),
        ("canonical", "/c"),
        ("alternate", "/de"),
        ("next", "/n"),
        ("prev", "/v"),
        ("link", "/pl"),
        ("refresh", "/r"),
        ("script", "/a/b/j.js"),
        ("a", "/a"),
        ("area", "/ar"),
        ("iframe", "/if"),
        ("img", "/im"),
        ("source", "/so"),
        ("form", "/fo"),
    ]
    followed = {link.kind for link in found(markup) if link.follow}
    assert followed == {"canonical", "next", "prev", "refresh", "a", "area", "iframe"}
    assert {link.kind: link.text for link in found(markup)}["area"] == "the area"
    assert {link.kind: link.text for link in found(markup)}["img"] == "a b"


def test_frames_of_a_frameset_are_followed() -> None:
    assert pairs("<frameset><frame src=menu.html><frame src=main.html></frameset>") == [
        ("frame", "/a/b/menu.html"),
        ("frame", "/a/b/main.html"),
    ]


def test_only_http_is_reported_and_fragments_go() -> None:
    markup = (
        "<a href=mailto:x@y><a href=' JavaScript:x'><a href=ftp://h/x><a href=data:,x><a href=tel:1><a href='http://[::1'>"
        "<a href=https://other.test/x#y><a href=HTTP://u:p@site.test:80/z>"
    )
    assert [link.url for link in found(markup)] == ["https://other.test/x", "http://site.test/z"]


def test_a_url_is_listed_once_per_kind_and_followed_if_any_of_its_links_is() -> None:
    markup = "<a href=/x rel=nofollow>first</a><a href='/x#later'>second</a><img src=/x><a href=/y>y</a><a href=/y rel=nofollow>"
    assert [(link.kind, link.url[-2:], link.text, link.follow) for link in found(markup)] == [
        ("a", "/x", "first", True),
        ("img", "/x", "", False),
        ("a", "/y", "y", True),
    ]


@pytest.mark.parametrize("rel", ["nofollow", "NOFOLLOW external", "ugc", "sponsored"])
def test_a_link_its_author_does_not_vouch_for_is_not_followed(rel: str) -> None:
    (link,) = found(f"<a href=/x rel='{rel}'>x</a>")
    assert (link.rel, link.follow) == (rel.lower(), False)


def test_a_page_that_says_nofollow_has_no_link_that_is_followed() -> None:
    markup = "<link rel=next href=/n><a href=/x><iframe src=/y>"
    assert [link.follow for link in found(markup, nofollow=True)] == [False, False, False]


def test_a_link_stands_where_its_nearest_container_says() -> None:
    markup = (
        "<header><a href=/1></a><nav><a href=/2></a></nav></header><main><a href=/3></a><footer><a href=/4></a></footer></main>"
        "<div hidden><nav><a href=/5></a></nav></div><p style='color:red; DISPLAY : none'><a href=/6></a></p>"
        "<a hidden href=/7></a><a href=/8></a><p style='display:block'><a href=/9></a></p>"
    )
    assert {link.url[-1]: (link.place, link.follow) for link in found(markup)} == {
        "1": ("header", True),
        "2": ("nav", True),
        "3": ("main", True),
        "4": ("footer", True),
        "5": ("hidden", False),
        "6": ("hidden", False),
        "7": ("hidden", False),
        "8": ("", True),
        "9": ("", True),
    }


def test_link_text_is_one_line_and_bounded_and_a_picture_speaks_for_itself() -> None:
    (words, picture) = found(f"<a href=/1> a <b>b</b>\n c{' long' * 99}</a><a href=/2><img alt='logo' src=/l></a>")[:2]
    assert words.text.startswith("a b c long long")
    assert len(words.text) == limits.LINK_TEXT_CHARS_MAX
    assert picture.text == "logo"


def canonical(markup: str, url: str = "http://site.test/dir/p?x=1") -> str | None:
    return links.read(html.parse(markup), url, False).canonical


def test_aud_03_two_canonicals_that_agree_are_one_and_others_are_none() -> None:
    agreeing = '<link rel=canonical href="p"><link rel="CANONICAL nofollow" href="http://site.test/dir/p">'
    assert canonical(agreeing) == "http://site.test/dir/p"
    assert canonical("<link rel=canonical href=/a><link rel=canonical href=/b>") is None


def test_aud_03_a_canonical_in_the_body_is_not_the_author_s() -> None:
    markup = "<body><p>a comment <link rel=canonical href=/evil></body>"
    assert canonical(markup) is None
    assert [link.follow for link in found(markup)] == [False]


def test_mem_03_an_address_of_5_mb_is_left_out() -> None:
    assert pairs(f"<a href='/{'x' * 5_000_000}'>x</a><a href=/ok>y</a>") == [("a", "/ok")]


def test_links_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINKS_MAX", 3)
    read = links.read(html.parse("".join(f"<a href=/{i}>" for i in range(5)) + "<a href=/0>"), PAGE, False)
    assert (len(read.links), read.cut) == (3, 2)


def test_refreshes_are_read_as_the_standard_reads_them() -> None:
    wrong = []
    for line in shared_data("pages/markup/meta_refresh.jsonl").read_text().splitlines():
        case = json.loads(line)
        got = links.refresh(case["content"])
        url = got[1].strip().replace("\t", "").replace("\n", "") if got else None  # the URL parser's part
        if (got is not None, got and got[0], url or None) != (case["refreshes"], case["delay"], case["url"] or None):
            wrong.append((case["content"], case["url"], got))
    assert not wrong


@given(st.text(alphabet="<>/=\"' ahrefbsimgc:#?,.&;\x00é", max_size=200), st.sampled_from([PAGE, "not a url", "http://x/?"]))
@settings(max_examples=100, deadline=None)
def test_no_page_raises(text: str, url: str) -> None:
    found(f"<base href='{text}'><a href=\"{text}\">{text}<img srcset='{text}'><meta http-equiv=refresh content='{text}'>", url)
