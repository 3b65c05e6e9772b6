"""What is the tree of this page, and what does its head say?

The door of selectolax (Lexbor). A page is parsed once, and asked once for all elements that links or metadata need, in
document order. Hostile markup is bounded before the parser sees it: Lexbor's time grows with the square of nesting and
of the attributes of one tag (100,000 of them cost 17 s), so nesting beyond limits.HTML_DEPTH_MAX is flattened, as
browsers do, and a tag with too many attributes ends the page there. Called by core/pages/htmlpage and core/pages/links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawltool import limits

Element = LexborNode

_OPTIONS = LexborDocumentOptions.WO_EVENTS  # with events, 100,000 <option> in one <select> cost 18 s
_WANTED = "[href],[src],[srcset],form,meta,title,nav,header,footer,main,[hidden],[style*=none i]"
_TAG_NAME = re.compile(r"<(/?[a-zA-Z][^\s/><]*)")
_TAG = re.compile(r"<(/?[a-zA-Z][^\s/><]*)[^<>]*>?")
# Elements that cannot nest without another one around each (void, or closed by their own next start).
_FLAT = frozenset(
    """a area base br button col colgroup dd dt embed hr img input li link meta nobr optgroup option p param path rp rt script
    source style tbody td textarea tfoot th thead title tr track wbr iframe noembed noframes noscript""".split()  # noqa: SIM905 - a list of words is read as one
)
# Formatting left open is built again in every later paragraph, and lists are indented: both need a closer bound.
_GROUPS = {
    **dict.fromkeys(("b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u"), "formatting"),
    **dict.fromkeys(("ul", "ol", "dl", "menu", "dir"), "list"),
}
_VALUE = re.compile(r"=\s*(?:\"[^\"]*\"|'[^']*')")
_OPENING = re.compile(r"<[a-zA-Z]")
_SPACES = re.compile(r"[ \t\r\n\f/]+")


class Document(NamedTuple):
    """A parsed page. `elements` are those with links or metadata and the containers that place them, in order."""

    tree: LexborHTMLParser
    elements: list[Element]
    html: str  # what was parsed, bounded
    trouble: str | None


class Head(NamedTuple):
    """What a page says about itself."""

    title: str | None
    description: str | None
    lang: str | None
    robots: list[str]


def parse(text: str) -> Document:
    """Parse a page's text; never raises, and takes time that grows with its length only."""
    html, trouble = _bounded(text)
    tree = LexborHTMLParser(html, options=_OPTIONS)
    return Document(tree, tree.css(_WANTED), html, trouble)


def tag_ids(names: Iterable[str]) -> frozenset[int]:
    """Give the numbers (Element.tag_id) of HTML tags: half the price of a name where each element of a page is asked."""
    tree = LexborHTMLParser("")
    return frozenset(tree.create_node(name).tag_id for name in names)


def head(document: Document, token: str) -> Head:
    """Read title, description, language and the robots rules that are for everybody or for `token` (lower case)."""
    title = description = None
    robots: list[str] = []
    for element in document.elements:
        tag = element.tag
        if tag == "meta":
            attributes = element.attributes
            name = (attributes.get("name") or "").strip().lower()
            if name == "description" and description is None:
                description = squeeze(attributes.get("content") or "", limits.DESCRIPTION_CHARS_MAX)
            elif name == "robots" or (name and name == token):
                robots += rules(attributes.get("content") or "")
        elif tag == "title" and title is None and not _is_drawing(element):
            title = squeeze(element.text(), limits.TITLE_CHARS_MAX)
    root = document.tree.root
    lang = root.attributes.get("lang") if root is not None else None
    return Head(title, description or None, lang or None, list(dict.fromkeys(robots)))


def rules(content: str) -> list[str]:
    """Split a robots rule list into lower-case words; `none` is noindex and nofollow."""
    found: list[str] = []
    for word in content[: limits.DESCRIPTION_CHARS_MAX].lower().split(","):
        rule = " ".join(word.split())
        if rule == "none":
            found += ["noindex", "nofollow"]
        elif rule:
            found.append(rule)
    return found


def squeeze(text: str, chars: int) -> str:
    """Give text on one line with single blanks, at most `chars` long."""
    return " ".join(text[: chars * 8].split())[:chars]


def _is_drawing(title: Element) -> bool:
    """Tell whether a title belongs to a drawing (svg) and not to the page."""
    parent = title.parent
    return parent is not None and parent.tag not in ("head", "html", "body")


def _bounded(text: str) -> tuple[str, str | None]:
    """Give markup that the parser reads in bounded time, and what had to be left out.

    A page with few tags cannot nest deeply and one without long stretches free of `>` has no tag of many attributes:
    nearly all pages are told by two looks.
    """
    trouble = None
    tags = text.count("<")
    cut = _overlong_tag(text)
    if cut is not None:
        text, trouble = text[:cut], f"a tag with over {limits.HTML_ATTRIBUTES_MAX} attributes: the rest was not read"
    if tags > limits.HTML_NODES_MAX:
        text, trouble = _first_tags(text), f"more than {limits.HTML_NODES_MAX} tags: the rest was not read"
    starts = tags - text.count("</") if tags > limits.HTML_TAGS_TRUSTED else 0
    nesting = _StrictNesting if starts > limits.HTML_TAGS_BELIEVED else _Nesting
    if starts > limits.HTML_TAGS_TRUSTED and _looks_deep(text, nesting()):
        flat = "".join(_flat_pieces(text, nesting()))
        if len(flat) < len(text):
            return flat, trouble or f"nested deeper than {limits.HTML_DEPTH_MAX}: flattened"
    return text, trouble


def _overlong_tag(text: str) -> int | None:
    """Find where a tag begins that holds too many attributes; each takes two signs at least."""
    window = limits.HTML_ATTRIBUTES_MAX * 2
    at = 0
    while at + window < len(text):
        last = text.rfind(">", at, at + window)
        if last >= 0:
            at = last + 1
            continue
        end = text.find(">", at + window)
        end = len(text) if end < 0 else end
        opening = _OPENING.search(text, at, end)
        if opening and len(_SPACES.findall(_VALUE.sub("", text[opening.start() : end]))) > limits.HTML_ATTRIBUTES_MAX:
            return opening.start()
        at = end
    return None


def _first_tags(text: str) -> str:
    at = -1
    for _ in range(limits.HTML_NODES_MAX):
        at = text.find("<", at + 1)
    return text[:at]


class _Nesting:
    """Counts what is open, per name: an end tag closes only what was opened under its name."""

    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.depth = 0
        self.groups = {"formatting": limits.HTML_FORMATTING_MAX, "list": limits.HTML_LISTS_MAX}  # room left

    def fits(self, name: str) -> bool:
        group = _GROUPS.get(name)
        return self.depth < limits.HTML_DEPTH_MAX and (group is None or self.groups[group] > 0)

    def starts(self, name: str) -> None:
        self.open[name] = self.open.get(name, 0) + 1
        self.depth += 1
        if name in _GROUPS:
            self.groups[_GROUPS[name]] -= 1

    def ends(self, name: str) -> bool:
        count = self.open.get(name, 0)
        if count:
            self.open[name] = count - 1
            self.depth -= 1
            if name in _GROUPS:
                self.groups[_GROUPS[name]] += 1
        return count > 0


class _StrictNesting(_Nesting):
    """Believes an end tag only that closes what was opened last.

    Others may be ignored by the parser (a </div> in a table that was opened in the div is). A page with enough tags to make
    that costly is counted so; where its author was careless, it is flattened without need, which loses no link.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []

    def starts(self, name: str) -> None:
        super().starts(name)
        self.stack.append(name)

    def ends(self, name: str) -> bool:
        if not self.stack or self.stack[-1] != name:
            return False
        self.stack.pop()
        return super().ends(name)


def _looks_deep(text: str, nesting: _Nesting) -> bool:
    """Count nesting by names alone; drawings whose shapes close themselves look deep here and are told apart later."""
    fits, starts, ends = nesting.fits, nesting.starts, nesting.ends
    for name in _TAG_NAME.findall(text):
        name = name.lower()
        if name[0] == "/":
            ends(name[1:])
        elif name not in _FLAT:
            if not fits(name):
                return True
            starts(name)
    return False


def _flat_pieces(text: str, nesting: _Nesting) -> Iterator[str]:
    """Give the text without the start tags that nest too deep and the end tags that would have closed them."""
    dropped = _Nesting()
    at, shapes = 0, limits.HTML_SHAPES_MAX
    for match in _TAG.finditer(text):
        name = match[1].lower()
        leave_out = False
        if name[0] == "/":
            leave_out = dropped.ends(name[1:])
            if not leave_out:
                nesting.ends(name[1:])
        elif match[0].endswith("/>") and shapes and (nesting.open.get("svg") or nesting.open.get("math")):
            shapes -= 1  # closes itself, but only there: <div/> opens a div
        elif name not in _FLAT:
            leave_out = not nesting.fits(name)
            (dropped if leave_out else nesting).starts(name)
        if leave_out:
            yield text[at : match.start()]
            at = match.end()
    yield text[at:]
