"""robots.txt: marked, missing, failing, moved, huge, slow, changing."""

from __future__ import annotations

from tests.web.answers import Answer, Handler, Request, Script, Site, behaviour, redirect, text
from tests.web.prose import html

SECTIONS = ["open", "closed"]


def sections(site: Site, request: Request, pages: int = 10) -> Answer | None:
    """Answer with a page of two sections, /open/N and /closed/N, that link into each other."""
    if request.path == "/":
        return Answer(html(f"Home of {site.name}", ["/open/0", "/closed/0"]))
    section, _, rest = request.path[1:].partition("/")
    if section not in SECTIONS or not rest.isdigit() or int(rest) >= pages:
        return None
    n = (int(rest) + 1) % pages
    return Answer(html(f"{section} page {rest} of {site.name}", [f"/open/{n}", f"/closed/{n}"]))


def with_robots(site: Site, robots: Answer | Script | None) -> Handler:
    """Serve the two sections under a fixed robots.txt."""
    return lambda request: robots if request.path == "/robots.txt" else sections(site, request)


@behaviour
def robots_bom(site: Site) -> Handler:
    """A byte order mark in front, CR line ends, served as HTML: nothing but robots.txt may be asked for."""
    return with_robots(site, text(b"\xef\xbb\xbfUser-agent: *\rDisallow: /\r", "text/html; charset=iso-8859-1"))


@behaviour
def robots_all(site: Site) -> Handler:
    """Everything is disallowed."""
    return with_robots(site, text("User-agent: *\nDisallow: /\n"))


@behaviour
def robots_status(site: Site, status: int = 503) -> Handler:
    """robots.txt answers this status, for ever."""
    return with_robots(site, text("no rules here\n", status=status))


@behaviour
def robots_moved(site: Site, to: str = "robots-delay", path: str = "/robots.txt", hops: int = 1) -> Handler:
    """robots.txt redirects to another host's, over N hops; its rules are those of this host."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt" or request.path.startswith("/hop/"):
            hop = int(request.path.removeprefix("/hop/")) if request.path.startswith("/hop/") else 1
            return redirect(f"/hop/{hop + 1}" if hop < hops else site.elsewhere(to, path), 301)
        return sections(site, request)

    return answer


@behaviour
def robots_loop(site: Site) -> Handler:
    """robots.txt redirects to itself."""
    return with_robots(site, redirect("/robots.txt"))


@behaviour
def robots_html(site: Site) -> Handler:
    """A home page where robots.txt should be: no rules."""
    return with_robots(site, Answer(html("Welcome", ["/open/1"])))


@behaviour
def robots_huge(site: Site, kib: int = 400) -> Handler:
    """400 KiB of rules in front of the one that matters."""
    line = "Disallow: /pad-%06d/\n"
    return with_robots(
        site, text("User-agent: *\n" + "".join(line % n for n in range(kib * 1024 // 22)) + "Disallow: /closed/\n")
    )


@behaviour
def robots_slow(site: Site, wait_s: float = 3.0) -> Handler:
    """robots.txt takes its time, pages do not: none may be asked for before it is known."""
    return with_robots(site, text("User-agent: *\nDisallow: /closed/\n", wait_s=wait_s))


@behaviour
def robots_delay(site: Site, delay: float = 1.0) -> Handler:
    """Crawl-delay, and the closed section is closed."""
    return with_robots(site, text(f"User-agent: *\nCrawl-delay: {delay:g}\nDisallow: /closed/\n"))


@behaviour
def robots_sections(site: Site) -> Handler:
    """Groups for others, one for us: /closed/ is disallowed but for /closed/5."""
    ours = "User-agent: *\nDisallow: /closed/\nAllow: /closed/5$\n\nUser-agent: *\nDisallow: /*.pdf$\n"
    return with_robots(site, text("User-agent: otherbot\nDisallow: /\n\n" + ours))


@behaviour
def robots_changing(
    site: Site, after_s: float = 0.0, after_n: int = 0, pages: int = 100, then: str = "closed", max_age_s: int = 0
) -> Handler:
    """Rules that change after so many seconds or page requests: nothing is disallowed, then /THEN/ is."""
    asked = 0

    def changed() -> bool:
        return bool((after_s and site.age_s >= after_s) or (after_n and asked >= after_n))

    def answer(request: Request) -> Answer | None:
        nonlocal asked
        if request.path == "/robots.txt":
            fresh = [("Cache-Control", f"max-age={max_age_s}")] if max_age_s else []
            return text(f"User-agent: *\nDisallow: {f'/{then}/' if changed() else ''}\n", headers=fresh)
        asked += 1
        return sections(site, request, pages)

    return answer
