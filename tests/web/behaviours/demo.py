"""The corner of `make demo`: a small shop, a blog and a library that a person would recognise."""

from __future__ import annotations

from tests.web.answers import Answer, Handler, Request, Site, behaviour, redirect, text
from tests.web.behaviours.sitemaps import index, urlset
from tests.web.prose import html, prose

MENU = [("/", "Home"), ("/list/1", "All things"), ("/about", "About us")]


@behaviour
def shop(site: Site, things: int = 40) -> Handler:
    """A shop: lists, things, a cart that robots.txt closes, old addresses that redirect, each thing also as a print version."""
    per_list = 10

    def thing(n: int) -> Answer:
        links = [
            *MENU,
            (f"/thing/{(n + 1) % things}", "The next thing"),
            (f"/cart?add={n}", "Put it in the cart"),
            (f"/print/{n}", "Print"),
        ]
        return Answer(html(f"Thing {n}", links, text=prose(f"thing {n}", 150)))

    def answer(request: Request) -> Answer | None:
        section, _, rest = request.path[1:].partition("/")
        if section == "robots.txt":
            return text("User-agent: *\nDisallow: /cart\nDisallow: /admin/\n")
        if section == "":
            return Answer(
                html("The shop", [*MENU, ("/old/3", "A bargain"), (site.elsewhere("blog"), "Our blog")], text=prose("shop"))
            )
        if section == "about":
            return Answer(html("About us", [*MENU, ("/gone", "Our history"), ("/team", "The team")]))
        if section == "team":
            return redirect("/about")
        if not rest.isdigit() or int(rest) >= things:
            return None
        n = int(rest)
        if section == "list":
            own = [(f"/thing/{i}", f"Thing {i}") for i in range((n - 1) * per_list, min(n * per_list, things))]
            return Answer(
                html(f"Things, page {n}", [*MENU, *own, *([(f"/list/{n + 1}", "More")] if n * per_list < things else [])])
            )
        if section == "old":
            return redirect(f"/thing/{n}", 301)
        return thing(n) if section in ("thing", "print") else None

    return answer


@behaviour
def blog(site: Site, posts: int = 25) -> Handler:
    """A blog: posts under their own address and under a tag (same bytes), and edited ones (near-duplicates)."""

    def answer(request: Request) -> Answer | None:
        section, _, rest = request.path[1:].partition("/")
        if section == "robots.txt":
            return None
        if section == "":
            return Answer(html("Notes from the shop", [f"/post/{n}" for n in range(posts)] + ["/tag/wood", "/feed.xml"]))
        if section == "feed.xml":
            items = "".join(f"<item><title>Post {n}</title><link>{site.origin}/post/{n}</link></item>" for n in range(5))
            return text(
                f'<?xml version="1.0"?><rss version="2.0"><channel><title>Notes</title>{items}</channel></rss>',
                "application/rss+xml",
            )
        if section == "tag" and "/" not in rest:
            return Answer(html(f"Tagged {rest}", [f"/tag/{rest}/post/{n}" for n in range(0, posts, 5)]))
        number = request.path.rpartition("/")[2]
        if section not in ("post", "tag", "edited") or not number.isdigit() or int(number) >= posts:
            return None
        words = prose(f"post {number}", 300)
        if section == "edited":
            return Answer(html(f"Post {number}", ["/"], text=f"Edited: {words} Thank you, reader."))
        return Answer(html(f"Post {number}", [f"/edited/{number}", "/"], text=words))

    return answer


@behaviour
def library(site: Site, books: int = 45) -> Handler:
    """A library: its books are linked from nowhere, only the sitemap named in robots.txt lists them."""
    halves = [[f"{site.origin}/book/{n}" for n in range(part, books, 2)] for part in (0, 1)]
    fixed = {
        "/robots.txt": text(f"User-agent: *\nDisallow: /stacks/\nSitemap: {site.origin}/sitemap.xml\n"),
        "/sitemap.xml": text(index([f"{site.origin}/even.xml", f"{site.origin}/odd.xml"]), "application/xml"),
        "/even.xml": text(urlset(halves[0]), "application/xml"),
        "/odd.xml": text(urlset(halves[1]), "application/xml"),
        "/": Answer(html("The library", [("/stacks/1", "The stacks"), ("/hours", "Hours")])),
        "/hours": Answer(html("Hours", [("/", "Home")])),
    }

    def answer(request: Request) -> Answer | None:
        name = request.path.removeprefix("/book/")
        if name != request.path and name.isdigit() and int(name) < books:
            return Answer(html(f"Book {name}", text=prose(f"book {name}", 120)))
        return fixed.get(request.path)

    return answer
