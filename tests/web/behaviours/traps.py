"""Sites without an end: calendars, facets, sessions, mazes, and what looks like a page but is none."""

from __future__ import annotations

import datetime
import hashlib

from tests.web.answers import Answer, Handler, Request, Site, behaviour, text
from tests.web.prose import html, prose


@behaviour
def calendar(site: Site, robots: int = 0) -> Handler:
    """Every day links to the next and the last day, month and year, for ever."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return text("User-agent: *\nDisallow: /year/\n") if robots else None
        if request.path == "/":
            return Answer(html("Calendar", ["/day/2026-09-01", "/year/2026"]))
        section, _, rest = request.path[1:].partition("/")
        if section == "year" and rest.isdigit():
            year = int(rest)
            return Answer(html(f"The year {year}", [f"/year/{year + 1}", f"/year/{year - 1}", f"/day/{max(1, year):04}-01-01"]))
        try:
            day = datetime.date.fromisoformat(rest)
            links = [f"/day/{day + datetime.timedelta(days=n)}" for n in (1, -1)]
        except (ValueError, OverflowError):
            return None
        return Answer(html(f"Events of {day}", links, text="No events on this day."))

    return answer


@behaviour
def facets(site: Site, kinds: int = 6) -> Handler:
    """A shop list with filters: every page links to itself with one filter more, in any order."""

    def answer(request: Request) -> Answer | None:
        if request.path not in ("/", "/list"):
            return None
        query = request.target.partition("?")[2]
        links = [f"/list?{query}{'&' if query else ''}f{kind}={value}" for kind in range(kinds) for value in "ab"]
        return Answer(html("Things", [*links, "/list"], text=prose("things " + "".join(sorted(request.query)))))

    return answer


@behaviour
def sessions(site: Site) -> Handler:
    """Every answer links to the same five pages with a new session id."""
    paths = ["/", "/a", "/b", "/c", "/d"]

    def answer(request: Request) -> Answer | None:
        if request.path not in paths:
            return None
        sid = hashlib.sha1(f"{site.asked}".encode()).hexdigest()
        return Answer(html(f"Page {request.path}", [f"{path}?PHPSESSID={sid}" for path in paths]))

    return answer


@behaviour
def soft404(site: Site, pages: int = 10) -> Handler:
    """Whatever is asked for gets 200; what does not exist gets an apology with three links to more of it."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return text("User-agent: *\nDisallow:\n")
        if request.path == "/" or (request.path[2:].isdigit() and int(request.path[2:]) < pages):
            n = int(request.path[2:] or 0) if request.path != "/" else 0
            return Answer(html(f"Real page {n}", [f"/p{(n + 1) % pages}", f"/nothing/{n}"]))
        sorry = "Sorry, the page you are looking for could not be found. Perhaps you like one of these."
        return Answer(html("Not found", [f"{request.path.rstrip('/')}/{name}" for name in "xy"], text=sorry))

    return answer


@behaviour
def maze(site: Site, ways: int = 5) -> Handler:
    """An endless maze: each page has its own words and five links deeper."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return None
        return Answer(
            html(
                f"Room {request.path}",
                [f"{request.path.rstrip('/')}/{way}" for way in range(ways)],
                text=prose(request.path, 300),
            )
        )

    return answer


@behaviour
def hidden(site: Site) -> Handler:
    """A home page with two honest links and links that no person can see; the hidden ones lead on for ever."""
    unseen = (
        '<a href="/trap/1" style="display:none">x</a><a href="/trap/2" hidden>x</a>'
        '<div style="visibility: hidden"><a href="/trap/3">x</a></div>'
        '<a href="/trap/4" rel="nofollow">x</a><a href="/trap/5" aria-hidden="true"></a><!-- <a href="/comment">x</a> -->'
        '<noscript><a href="/noscript">x</a></noscript><template><a href="/template">x</a></template>'
        '<script>"<a href=/script>"</script>'
    )

    def answer(request: Request) -> Answer | None:
        if request.path == "/":
            return Answer(html("Home", ["/a", "/b"], tail=unseen))
        if request.path.startswith("/trap/"):
            return Answer(html(f"Trap {request.path}", [request.path + "0"]))
        return Answer(html(f"Page {request.path}")) if request.path in ("/a", "/b", "/noscript") else None

    return answer
