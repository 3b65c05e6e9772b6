"""Where does this page lead? Every link with its kind, words, place, and whether the default policy follows it.

What is found is data, what is followed is policy: anchors, areas, frames, canonical, next and prev, and refreshes are
followed, unless they are hidden, marked nofollow, or the page says nofollow. Attributes are read as browsers read them:
blanks around a URL go, the first base element with a href rules the whole page, srcset keeps the commas of its URLs.
Only http(s) links are reported, without fragment, each URL once per kind. Called by core/pages/htmlpage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crawltool import limits
from crawltool.core import urls
from crawltool.core.pages.html import Document, Element, squeeze
from crawltool.records import Link

_PLACES = frozenset({"nav", "header", "footer", "main"})
_CONTAINERS = "nav,header,footer,main,[hidden],[style*=none i]"
_PLACED = "[href],[src],form"
_NOT_FOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})
_HIDING = re.compile(r"display\s*:\s*none", re.I)
_REL_KINDS = (
    ("canonical", "canonical"),
    ("next", "next"),
    ("prev", "prev"),
    ("previous", "prev"),
    ("stylesheet", "stylesheet"),
    ("icon", "icon"),
    ("apple-touch-icon", "icon"),
    ("alternate", "alternate"),
)
_FOLLOWED = frozenset({"a", "area", "iframe", "frame", "canonical", "next", "prev", "refresh"})
_NO_FETCH = re.compile(r"[\x00-\x20]*(?:javascript|mailto|data|tel|about|blob):", re.I)
# One srcset candidate: the URL is the longest run without blanks; descriptors end at a comma outside parentheses.
_CANDIDATE = re.compile(r"[\s,]*+([^\s]++)((?:[^(),]++|\([^)]*+\)?+)*+),?+")
_DESCRIPTORS = re.compile(r"\s*(?:[0-9.eE+-]+[wxh]\s*)*")
# Source: WHATWG HTML, "shared declarative refresh steps".
_REFRESH = re.compile(r"[\t\n\f\r ]*([0-9]+|(?=\.))[0-9.]*(?:(?=[;,\t\n\f\r ])[\t\n\f\r ]*[;,]?[\t\n\f\r ]*(.*))?\Z", re.S)
_REFRESH_URL = re.compile(r"[uU][rR][lL][\t\n\f\r ]*=[\t\n\f\r ]*(.*)\Z", re.S)


class Found(NamedTuple):
    """The links of a page, its base URL and its canonical URL (None also when it names two different ones)."""

    links: list[Link]
    base: str
    canonical: str | None
    cut: int  # links beyond limits.LINKS_MAX


def read(document: Document, url: str, nofollow: bool) -> Found:
    """Collect the links of a parsed page that was fetched from `url`; `nofollow` is the page's own word on all of them."""
    base = base_url(document, url)
    if base is None:
        return Found([], url, None, 0)
    collector = _Collector(urls.Base(base), _places(document), nofollow)
    for element in document.elements:
        reader = _READERS.get(element.tag or "")
        if reader is not None:
            reader(collector, element)
    canonicals = [link.url for link in collector.found.values() if link.kind == "canonical" and link.place != "body"]
    canonical = canonicals[0] if len(canonicals) == 1 else None
    return Found(list(collector.found.values()), base.href, canonical, collector.cut)


def base_url(document: Document, url: str) -> urls.Url | None:
    """Give the URL that relative links start from: the first base element with a href, unless it is data: or javascript:.

    None when `url` itself is no http(s) URL.
    """
    for element in document.elements:
        if element.tag == "base":
            href = element.attributes.get("href")
            if href is not None:
                return urls.parse(href, url) or urls.split(url)
    return urls.split(url)


def srcset(value: str) -> Iterator[str]:
    """Give the URLs of a srcset; a candidate with a descriptor that no browser knows is dropped."""
    at = 0
    while (match := _CANDIDATE.match(value, at)) is not None:
        url = match[1]
        if url.endswith(","):
            at = match.end(1)
            url = url.rstrip(",")
        else:
            at = match.end()
            if not _DESCRIPTORS.fullmatch(match[2]):
                continue
        if url:
            yield url


def refresh(content: str) -> tuple[int, str] | None:
    """Read the content of a meta refresh: the wait in seconds and the URL ('' is the page itself); None if it is none."""
    match = _REFRESH.match(content)
    if match is None:
        return None
    rest = match[2] or ""
    named = _REFRESH_URL.match(rest)
    if named is not None:
        rest = named[1]
    if rest[:1] in ("'", '"'):
        rest = rest[1:].partition(rest[0])[0]
    return int(match[1][:9] or 0), rest


class _Collector:
    """Gathers links; the first of a URL and kind wins, but it is followed if any of them would be."""

    def __init__(self, base: urls.Base, places: dict[int, str], nofollow: bool) -> None:
        self.base, self.places, self.nofollow = base, places, nofollow
        self.found: dict[tuple[str, str], Link] = {}
        self.hrefs: dict[str, str | None] = {}
        self.cut = 0

    def add(self, reference: str, kind: str, rel: str = "", text: Callable[[], str] | str = "", place: str = "") -> None:
        href = self.hrefs.get(reference, "")
        if href == "":
            href = self.hrefs[reference] = None if ":" in reference and _NO_FETCH.match(reference) else self.base.href(reference)
        if href is None:
            return
        follow = (
            kind in _FOLLOWED
            and not self.nofollow
            and place not in ("hidden", "body")
            and not (rel and not _NOT_FOLLOWED.isdisjoint(rel.split()))
        )
        known = self.found.get((href, kind))
        if known is not None:
            known.follow = known.follow or follow
        elif len(self.found) < limits.LINKS_MAX:
            words = text if isinstance(text, str) else text()
            self.found[href, kind] = Link(url=href, kind=kind, rel=rel, text=words, place=place, follow=follow)
        else:
            self.cut += 1

    def place(self, element: Element) -> str:
        return self.places.get(element.mem_id, "") if self.places else ""


def _places(document: Document) -> dict[int, str]:
    """Tell for each link inside a container where it stands: the nearest container wins, hidden always does."""
    places: dict[int, str] = {}
    marks = 0
    for element in document.tree.css(_CONTAINERS):
        tag = element.tag or ""
        attributes = element.attributes
        hidden = "hidden" in attributes or bool(_HIDING.search(attributes.get("style") or ""))
        if not hidden and tag not in _PLACES:
            continue
        inside = element.css(_PLACED)
        marks += len(inside)
        if marks > limits.LINKS_MAX:
            break  # containers nested in containers: the rest stays without a place
        for link in (element, *inside):
            if hidden or places.get(link.mem_id) != "hidden":
                places[link.mem_id] = "hidden" if hidden else tag
    return places


def _anchor(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    if "href" in attributes:
        collector.add(attributes["href"] or "", "a", _rel(attributes), lambda: _words(element), collector.place(element))


def _area(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    if "href" in attributes:
        text = squeeze(attributes.get("alt") or "", limits.LINK_TEXT_CHARS_MAX)
        collector.add(attributes["href"] or "", "area", _rel(attributes), text, collector.place(element))


def _link(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    href, rel = attributes.get("href"), _rel(attributes)
    if not href or not rel:
        return
    words = set(rel.split())
    kind = next((kind for word, kind in _REL_KINDS if word in words), "link")
    parent = element.parent if kind in _FOLLOWED else None
    # A canonical in the body is a visitor's comment more often than the author's word.
    place = "body" if parent is not None and parent.tag != "head" else ""
    collector.add(href, kind, rel, attributes.get("title") or "", place)


def _frame(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    src = attributes.get("src")
    if src:
        text = squeeze(attributes.get("title") or "", limits.LINK_TEXT_CHARS_MAX)
        collector.add(src, element.tag or "", "", text, collector.place(element))


def _image(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    kind, place = element.tag or "", collector.place(element)
    text = squeeze(attributes.get("alt") or "", limits.LINK_TEXT_CHARS_MAX)
    src = attributes.get("src")
    if src:
        collector.add(src, kind, "", text, place)
    for url in srcset(attributes.get("srcset") or ""):
        collector.add(url, kind, "", text, place)


def _script(collector: _Collector, element: Element) -> None:
    src = element.attributes.get("src")
    if src:
        collector.add(src, "script")


def _form(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    if (attributes.get("method") or "get").strip().lower() not in ("post", "dialog"):
        collector.add(attributes.get("action") or "", "form", _rel(attributes), "", collector.place(element))


def _meta(collector: _Collector, element: Element) -> None:
    attributes = element.attributes
    if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
        found = refresh(attributes.get("content") or "")
        if found is not None and found[1]:
            collector.add(found[1], "refresh")


_READERS: dict[str, Callable[[_Collector, Element], None]] = {
    "a": _anchor,
    "area": _area,
    "link": _link,
    "iframe": _frame,
    "frame": _frame,
    "img": _image,
    "source": _image,
    "script": _script,
    "form": _form,
    "meta": _meta,
}


def _rel(attributes: dict[str, str | None]) -> str:
    rel = attributes.get("rel")
    return squeeze(rel.lower(), limits.LINK_TEXT_CHARS_MAX) if rel else ""


def _words(anchor: Element) -> str:
    """Give an anchor's text, or what its picture stands for."""
    text = squeeze(anchor.text(), limits.LINK_TEXT_CHARS_MAX)
    if not text:
        picture = anchor.css_first("img[alt]")
        if picture is not None:
            text = squeeze(picture.attributes.get("alt") or "", limits.LINK_TEXT_CHARS_MAX)
    return text
