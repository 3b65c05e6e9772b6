"""Which of a page's words are its own, and not its menus', its frame's or its advertisements'?

Works on the tree that the links were read from, and takes it apart: nobody may touch its elements afterwards. What browsers
show to nobody goes first, then what its tag, role, class or id calls boilerplate, then blocks that are mostly links; a single
main or article that holds most of the rest stands for the page. What remains is its text, one line a block. A name is
believed only while little of the page hides behind it: layouts call half a page "sidebar". All names are words that many
sites use; there is no rule for one site (measured by tests/bench/main_text.py). The time is bounded whatever the page: text is
weighed only as long as a budget lasts. Called by core/pages/htmlpage.
"""

from __future__ import annotations

from functools import lru_cache

from crawltool import limits
from crawltool.core.pages.html import Document, Element, tag_ids

_UNSEEN = tag_ids(("button", "dialog", "figcaption", "iframe", "noscript", "select", "svg", "template", "textarea"))
_FRAMES = tag_ids(("aside", "footer", "form", "header", "nav"))
_BOXES = _FRAMES | tag_ids(("div", "section", "table", "ul"))  # whose names are read
_KEPT = tag_ids(("html", "body", "main", "article", "h1", "p"))
_HEADER = tag_ids(("header",))
_ARTICLES = tag_ids(("article", "main"))
_CORES = "main,article,[role=main]"
_ROLES = frozenset(
    {"alertdialog", "banner", "complementary", "contentinfo", "dialog", "menu", "menubar", "navigation", "search", "toolbar"}
)
_INLINE = tag_ids(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span strike strong sub
    sup time tt u var wbr""".split()  # noqa: SIM905 - a list of words is read as one
)
# A class or an id in words: what is boilerplate by name, perhaps with a place before and shapes behind (site-nav-wrapper).
_NAMES = frozenset(
    """ad ads adv advert advertisement author banner breadcrumb breadcrumbs byline caption comment comments consent
    cookie cookies copyright disclaimer embed footer hidden kicker login masthead menu meta modal nav navbar
    navigation newsletter noprint overlay pager pagination paywall popup print promo readmore recommend
    recommendations recommended related respond search share sharing sidebar skip sociable social sponsor sponsored
    subscribe subscription tags teaser toolbar tools upsell widget""".split()  # noqa: SIM905
)
_PLACES = frozenset(
    """article block bottom box col content entry global id left main mobile no page post region right sec section
    site story sub the top view wp""".split()  # noqa: SIM905
)
_SHAPES = frozenset(
    """area article articles bar block bottom box button buttons container form icon icons info inner item items left
    link links list menu news post posts right section text title top wrap wrapper""".split()  # noqa: SIM905
)
_MARK = "\x1f"  # between blocks: a sign that text has no use for
_CLIMB_MAX = 8  # steps up from a link to its block, or from a header to its article
_BUDGET_FACTOR = 8  # signs weighed, in lengths of the page's text


def read(document: Document) -> str:
    """Give the text of a page's main content, one line a block; '' when there is none. Uses the tree up."""
    body = document.tree.body
    if body is None:
        return ""
    scale = _drop_boilerplate(body)
    core = _core(body, scale.rest)
    _drop_link_lists(core, scale)
    # From the first to the last: so each node moves once, however deep they nest.
    for element in list(core.traverse()):
        if element.tag_id in _INLINE:
            element.unwrap()
    core.merge_text_nodes()
    return _lines(core.text(separator=_MARK, skip_empty=True))


class _Scale:
    """Weighs elements by their text, as long as the budget lasts; afterwards everything is too heavy to drop."""

    def __init__(self, total: int) -> None:
        self.total, self._left = total, total * _BUDGET_FACTOR + limits.KIB
        self.rest = total  # without what was dropped by name

    def weigh(self, element: Element) -> int:
        if self._left < 0:
            return self.total
        size = len(element.text())
        self._left -= size
        return size


def _drop_boilerplate(body: Element) -> _Scale:
    """Remove what nobody sees, and what calls itself boilerplate, unless half of the text is in it, or the core and a tenth."""
    # From the last to the first, here and below: an element goes before its parent, so none is touched that went with it.
    for element in reversed(body.css("script,style")):
        element.decompose()
    gone: list[tuple[Element, bool]] = []
    for element in body.traverse():
        tag = element.tag_id
        if tag in _BOXES:
            attributes = element.attributes
            if (attributes and _says_so(attributes)) or (tag in _FRAMES and not (tag in _HEADER and _is_in_core(element))):
                gone.append((element, False))
        elif tag in _UNSEEN:
            gone.append((element, True))
    scale = _Scale(len(body.text()))
    for element, is_unseen in reversed(gone):
        if not is_unseen:
            size = scale.weigh(element)
            if size * 2 > scale.total or (size * 10 > scale.total and element.css_first(_CORES) is not None):
                continue
            scale.rest -= size
        element.decompose()
    return scale


def _says_so(attributes: dict[str, str | None]) -> bool:
    """Tell whether attributes say that their element is boilerplate, or hidden."""
    return (
        _is_named_so(attributes.get("class"), attributes.get("id"), attributes.get("role"))
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
    )


def _is_in_core(header: Element) -> bool:
    """Tell whether a header is an article's and not the site's."""
    parent = header.parent
    for _ in range(_CLIMB_MAX):
        if parent is None:
            return False
        if parent.tag_id in _ARTICLES:
            return True
        parent = parent.parent
    return False


@lru_cache(maxsize=16_384)
def _is_named_so(names: str | None, name: str | None, role: str | None) -> bool:
    """Tell whether one of the names of a class, or an id, is that of boilerplate."""
    both = f"{names or ''} {name or ''}"[: limits.KIB].lower().replace("_", "-")
    if _NAMES.isdisjoint(both.replace("-", " ").split()):
        return role in _ROLES
    return role in _ROLES or any(_is_name(word.split("-")) for word in both.split())


def _is_name(words: list[str]) -> bool:
    words = [word for word in words if word]
    if words and words[0] in _PLACES:
        del words[0]
    return bool(words) and words[0] in _NAMES and all(word in _SHAPES or word.isdecimal() for word in words[1:])


def _core(body: Element, total: int) -> Element:
    """Give the only main, or else the only article, if it holds half of the text."""
    cores = body.css(_CORES)
    if cores:
        articles = [element for element in cores if element.tag == "article"]
        mains = [element for element in cores if element.tag != "article"]
        for found in (mains, articles):
            if len(found) == 1 and len(found[0].text()) * 2 >= total:
                return found[0]
    return body


def _drop_link_lists(core: Element, scale: _Scale) -> None:
    """Remove the blocks whose text is mostly links."""
    blocks: dict[int, Element] = {}
    linked: dict[int, int] = {}
    for link in core.css("a"):
        block = link.parent
        if block is not None and block.tag_id in _INLINE:
            block = _block(block)
        if block is not None:
            key = block.mem_id
            if key in linked:
                linked[key] += len(link.text())
            else:
                linked[key], blocks[key] = len(link.text()), block
    dense = {key for key, size in linked.items() if size * 2 > scale.weigh(blocks[key])}
    if dense:
        for element in reversed(list(core.traverse())):
            if element.mem_id in dense and element.tag_id not in _KEPT:
                element.decompose()


def _block(inline: Element) -> Element | None:
    """Give the block that an inline element stands in."""
    found: Element | None = inline
    for _ in range(_CLIMB_MAX):
        if found is None or found.tag_id not in _INLINE:
            break
        found = found.parent
    return found


def _lines(text: str) -> str:
    """Put each block on one line, with single blanks."""
    for blank in "\n\t\r\f\xa0":
        text = text.replace(blank, " ")
    lines = filter(None, map(str.strip, text.split(_MARK)))
    return "\n".join([" ".join(line.split()) if "  " in line else line for line in lines])
