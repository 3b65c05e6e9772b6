"""core/urls: the wire form is what the page wrote, the key form takes only safe steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core import urls


def form(text: str) -> str:
    url = urls.parse(text)
    assert url is not None, text
    return urls.key_form(url)


def target(text: str) -> str:
    url = urls.parse(text)
    assert url is not None, text
    return url.target


def test_an_escaped_delimiter_survives_in_the_key() -> None:
    assert form("http://site.test/docs/part%20%2376,%20rev%3F2#sec") == "http://site.test/docs/part%20%2376,%20rev%3F2"
    assert form("http://site.test/c/rate-100%25") == "http://site.test/c/rate-100%25"
    assert form("http://site.test/s?q=R%26D&x=1") != form("http://site.test/s?q=R&D&x=1")
    assert form("http://site.test/a%2Fb") != form("http://site.test/a/b")
    assert form("http://site.test/%7Euser") == form("http://site.test/~user")
    assert form("http://site.test/a%2fb") == form("http://site.test/a%2Fb")


@pytest.mark.parametrize(
    "text", ["http://site.test/docs/part%20%2376#s", "http://site.test/%7Euser", "http://site.test/a%2fb?x=%26%3d"]
)
def test_the_wire_keeps_the_escapes_as_found(text: str) -> None:
    assert target(text) == text.removeprefix("http://site.test").partition("#")[0]


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("http://bücher.test:8080/x", "xn--bcher-kva.test", 8080, "/x"),
        ("http://user:p%40ss@bücher.test:8080/x", "xn--bcher-kva.test", 8080, "/x"),
        ("http://BÜCHER.test/x", "xn--bcher-kva.test", 80, "/x"),
        ("http://faß.test/", "xn--fa-hia.test", 80, "/"),
        ("http://☃.test/", "xn--n3h.test", 80, "/"),
        ("http://my_site.test/", "my_site.test", 80, "/"),
        ("https://[2001:DB8::0:1]/", "[2001:db8::1]", 443, "/"),
        ("http://0x7f.1:80/", "127.0.0.1", 80, "/"),
    ],
)
def test_idna_sees_the_host_only(text: str, host: str, port: int, path: str) -> None:
    url = urls.parse(text)
    assert url is not None
    assert (url.host, url.port, url.target) == (host, port, path)
    assert url.authority == f"{url.scheme}://{host}:{port}"
    assert "@" not in url.href and "ss" not in url.href


def test_userinfo_makes_no_second_key() -> None:
    assert form("http://user:p%40ss@bücher.test:8080/x") == form("http://bücher.test:8080/x")


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("http://site.test/api?title=A%26B&prop=x|y", "/api?title=A%26B&prop=x|y"),
        ("http://site.test/ %97%98", "/%20%97%98"),
        ("http://site.test/p?u=http%3A//other.test/?a=1 2", "/p?u=http%3A//other.test/?a=1%202"),
        ("http://site.test/100%", "/100%"),
    ],
)
def test_one_bad_sign_does_not_escape_the_rest_again(text: str, sent: str) -> None:
    assert target(text) == sent
    assert "%2526" not in form(text)


@pytest.mark.parametrize(
    "sent", ["/Svc.asmx?wsdl", "/index.php?/topic/57-a/&do=find&a=1", "/s?b=2&a=1&a=0&empty=", "/?", "/a//b/", "/x;p=1?a[]=1"]
)
def test_the_fetched_url_is_the_one_the_page_wrote(sent: str) -> None:
    assert urls.parse(sent, "http://site.test/dir/page").target == sent  # type: ignore[union-attr]


def test_query_order_bare_keys_and_empty_values_are_separate_urls() -> None:
    assert form("http://site.test/S?wsdl") != form("http://site.test/S?wsdl=")
    assert form("http://site.test/s?b=2&a=1") != form("http://site.test/s?a=1&b=2")
    assert form("http://site.test/") != form("http://site.test/?")


@pytest.mark.parametrize("sign", list("|{}^`[]\\"))
def test_a_sign_no_uri_may_hold_has_one_key_in_both_spellings(sign: str) -> None:
    assert form(f"http://site.test/?q={sign}") == form(f"http://site.test/?q=%{ord(sign):02x}")


def test_a_lone_percent_has_one_key_with_its_escape() -> None:
    assert form("http://site.test/100%") == form("http://site.test/100%25")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mailto:a@b.test", "scheme"),
        ("javascript:void(0)", "scheme"),
        ("ftp://site.test/x", "scheme"),
        ("file:///etc/hostname", "scheme"),
        ("https://:443/", "not_a_url"),
        ("http://site.test:notaport/", "not_a_url"),
        ("http://[::1", "not_a_url"),
        ("", "not_a_url"),
        ("/only/a/path", "not_a_url"),
        ("http://a.test:99999/", "not_a_url"),
        ("http://a.test/" + "x" * limits.URL_BYTES_MAX, "too_long"),
    ],
)
def test_unusable_text_is_refused_with_a_reason(text: str, reason: str) -> None:
    assert urls.parse(text) is None
    assert urls.split(text) is None
    assert urls.why_not(text) == reason


def test_a_lone_surrogate_is_read_as_the_replacement_character() -> None:
    assert target("http://site.test/\udcb2") == "/%EF%BF%BD"


def test_blanks_and_line_ends_around_and_inside_are_dropped() -> None:
    assert target(" \thttp://site.test/a\nb\r ") == "/ab"


def test_join_gives_any_scheme_and_keeps_the_fragment() -> None:
    assert urls.join("http://a.test/x/y", "../z#f") == "http://a.test/z#f"
    assert urls.join("http://a.test/", "mailto:x@y.test") == "mailto:x@y.test"
    assert urls.join("http://a.test/", "http://[") is None


def test_surt_sorts_by_domain() -> None:
    assert urls.surt(urls.parse("https://www.example.com/a?b")) == "com,example,www)/a?b"  # type: ignore[arg-type]
    assert urls.surt(urls.parse("http://127.0.0.1:8080/")) == "127.0.0.1:8080)/"  # type: ignore[arg-type]


def test_a_key_is_sixteen_bytes_of_the_form() -> None:
    url = urls.parse("http://site.test/%7e")
    assert url is not None
    assert urls.key(url) == urls.key_of_form("http://site.test/~")
    assert len(urls.key(url)) == 16


PIECES = st.sampled_from([*"/.%~|'?=&\\^ #@:[]{aB41ü", "..", "%2", "%2e", "%2E", "%25", "%7e", "%41", "%c3%bc", "%%41"])
HOSTS = st.sampled_from(
    [
        "a.test",
        "A.Test:80",
        "xn--bcher-kva.test",
        "1.2.3.4",
        "0x7f.1",
        "a.test.",
        "[::1]:81",
        "x_y.test",
        "xn--a.test",
        "1.2.3",
        "a.0",
    ]
)


@given(HOSTS, st.lists(PIECES, max_size=12), st.sampled_from(["http", "https"]))
def test_href_and_key_form_are_stable_under_a_second_pass(host: str, pieces: list[str], scheme: str) -> None:
    url = urls.parse(f"{scheme}://{host}/{''.join(pieces)}")
    if url is None:
        return
    again = urls.parse(url.href)
    assert again == url
    normal = urls.parse(urls.key_form(url))
    assert normal is not None
    assert urls.key_form(normal) == urls.key_form(url) == normal.href
    assert normal[1:5] == url[1:5]


@given(HOSTS, st.lists(PIECES, max_size=12), st.sampled_from(["", ":80", ":443", ":0080", ":8080", ":65536", ":"]))
def test_the_fast_path_says_what_the_parser_says(host: str, pieces: list[str], port: str) -> None:
    text = f"https://{host.partition(':')[0]}{port}/{''.join(pieces)}"
    fast = urls._plain(text)
    if fast is not None:
        href = urls._href(text, None)
        assert href == text
        assert fast == urls._take_apart(href)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    urls.parse(text)
    urls.parse(text, "http://a.test/b")
    assert urls.why_not(text) in {"too_long", "scheme", "not_a_url"}
