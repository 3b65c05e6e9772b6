"""Charsets: right, missing, and lied about."""

from __future__ import annotations

from tests.web.answers import Answer, Handler, Request, Site, behaviour
from tests.web.prose import html

RUSSIAN, JAPANESE, CHINESE, FRENCH = (
    "Привет, мир. Съешь же ещё этих мягких французских булок",
    "こんにちは世界。日本語の文章です",
    "你好，世界。朱镕基",
    "Été à la façade, “ok”",
)
# name: (title, codec of the bytes, charset in the header or None, charset in a meta element or None, bytes in front)
PAGES: dict[str, tuple[str, str, str | None, str | None, bytes]] = {
    "utf-8": (RUSSIAN, "utf-8", "utf-8", None, b""),
    "windows-1251": (RUSSIAN, "cp1251", "windows-1251", None, b""),
    "windows-1251-meta": (RUSSIAN, "cp1251", None, "windows-1251", b""),
    "koi8-r-unsaid": (RUSSIAN, "koi8-r", None, None, b""),
    "shift_jis": (JAPANESE, "cp932", "shift_jis", None, b""),
    "euc-jp-meta": (JAPANESE, "euc-jp", None, "euc-jp", b""),
    "utf-16-bom": (JAPANESE, "utf-16-le", None, None, b"\xff\xfe"),
    "utf-16be-lie": (RUSSIAN, "utf-16-be", "utf-8", None, b"\xfe\xff"),
    "gb2312": (CHINESE, "gbk", "gb2312", None, b""),
    "latin-1": (FRENCH, "cp1252", "iso-8859-1", None, b""),
    "lie-in-header": (RUSSIAN, "utf-8", "windows-1251", None, b"\xef\xbb\xbf"),
    "lie-in-meta": (FRENCH, "utf-8", "utf-8", "utf-16", b""),
    "no-such": (FRENCH, "utf-8", "no-such-thing", "utf-8", b""),
}


@behaviour
def charsets(site: Site) -> Handler:
    """One page per charset; each links to /after/NAME, so that a page read wrongly is missed."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/":
            return Answer(html("Letters", [f"/{name}" for name in PAGES]))
        section, _, name = request.path[1:].partition("/")
        if section == "after" and name in PAGES:
            return Answer(html(f"After {name}"))
        if section not in PAGES:
            return None
        title, codec, header, meta, mark = PAGES[section]
        said = f'<meta http-equiv="Content-Type" content="text/html; charset={meta}">' if meta else ""
        body = f'<p>{title * 5}</p><a href="/after/{section}">{title}</a>'
        page = f"<html><head>{said}<title>{title}</title></head><body>{body}</body></html>"
        return Answer(mark + page.encode(codec), content_type="text/html" + (f"; charset={header}" if header else ""))

    return answer
