"""Well-behaved sites: pages with links, and many names on one address."""

from __future__ import annotations

from tests.web.answers import Answer, Handler, Request, Site, behaviour, redirect, text
from tests.web.prose import html, prose

ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /*?print=\nAllow: /private/open.html\n"


def plain_links(n: int, pages: int) -> list[str]:
    """Give the links of page n: a tree that reaches all, cross links, and the odd ones out."""
    links = [f"/p{child}.html" for child in (2 * n + 1, 2 * n + 2) if child < pages]
    links += [f"p{(n * 7 + 3) % pages}.html", f"./p{(n * n + 1) % pages}.html#part-{n}", f"/d/../p{(n + 1) % pages}.html"]
    links += [f"/missing/{n}"] if n % 50 == 10 else []
    links += [f"/r/{n}"] if n % 20 == 3 else []
    links += [f"/private/{n}.html", "/private/open.html"] if n % 25 == 4 else []
    links += [f"/q?id={n}&part=a%2Fb", f"/p{n}.html?print=1"] if n % 30 == 5 else []
    links += [f"/deep/{n}/"] if n % 40 == 6 else []
    links += ["mailto:me@site.test", "javascript:void(0)", "#top", "https://elsewhere.test/"] if n % 10 == 7 else []
    return links


@behaviour
def plain(site: Site, pages: int = 300, robots: str = "yes", words: int = 80) -> Handler:
    """A site of N pages: tree and cross links, 404s, redirects, queries, a disallowed section."""

    def page(n: int) -> Answer | None:
        if not 0 <= n < pages:
            return None
        return Answer(html(f"Page {n} of {site.name}", plain_links(n, pages), prose(f"{site.name} {n}", words)))

    def answer(request: Request) -> Answer | None:
        path = request.path
        if path == "/robots.txt":
            return text(ROBOTS) if robots == "yes" else None
        if path == "/":
            return page(0)
        if path.startswith("/p") and path.endswith(".html") and path[2:-5].isdigit():
            return page(int(path[2:-5]))
        section, _, rest = path[1:].partition("/")
        if section == "r" and rest.isdigit():
            return redirect(f"/p{(int(rest) * 11) % pages}.html", 301)
        if section == "private":
            return Answer(html(f"Private {rest}"))
        if section == "q":
            return Answer(html(f"Query {request.target}", ["/q?id=1&id=2", "/"]))
        if section == "deep" and path.count("/") < 6:
            return Answer(html(f"Deep {path} of {site.name}", ["deeper/", "../", "?x"]))
        return None

    return answer


@behaviour
def many(site: Site, pages: int = 5) -> Handler:
    """Many names on one address: each Host header is a site of its own with N pages that link in a ring."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return text("User-agent: *\nDisallow: /private/\n")
        n = 0 if request.path == "/" else int(request.path[2:-5]) if request.path[2:-5].isdigit() else -1
        if not 0 <= n < pages:
            return None
        return Answer(
            html(f"Page {n} of {request.host}", [f"/p{m % pages}.html" if m % pages else "/" for m in (n + 1, n * 3 + 2)])
        )

    return answer


@behaviour
def hostcase(site: Site) -> Handler:
    """Paths that differ in case and slashes: all are pages of their own and must not be merged."""
    paths = ["/a", "/A", "//a", "/a/", "/a//", "/%61/b", "/a%2Fb", "/a/b", "/a?", "/a?x", "/a?x=", "/a;p"]

    def answer(request: Request) -> Answer | None:
        if request.target == "/":
            return Answer(html("Paths", [site.origin + path if path.startswith("//") else path for path in paths]))
        return Answer(html(f"You asked for {request.target}")) if request.target in paths else None

    return answer


@behaviour
def validators(site: Site, pages: int = 10) -> Handler:
    """Pages with ETag and Last-Modified; a matching condition gets 304."""
    modified = "Tue, 01 Sep 2026 10:00:00 GMT"

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return None
        n = 0 if request.path == "/" else int(request.path[2:-5]) if request.path[2:-5].isdigit() else -1
        if not 0 <= n < pages:
            return None
        etag = f'"v1-{n}"'
        marks = [("ETag", etag), ("Last-Modified", modified)]
        if request.headers.get("if-none-match") == etag or request.headers.get("if-modified-since") == modified:
            return Answer(status=304, headers=marks, content_type=None)
        return Answer(html(f"Page {n} of {site.name}", [f"/p{(n + 1) % pages}.html"]), headers=marks)

    return answer
