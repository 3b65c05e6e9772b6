"""The same page more than once: same bytes, nearly the same text, print versions."""

from __future__ import annotations

from tests.web.answers import Answer, Handler, Request, Site, behaviour, text
from tests.web.prose import html, prose


@behaviour
def duplicates(site: Site, articles: int = 8) -> Handler:
    """N articles, each at two URLs (same bytes), as a print version (same text) and with another date (near)."""
    forms = ["/article/{n}", "/index.php/article/{n}", "/print/{n}", "/today/{n}", "/empty/{n}"]

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return text("User-agent: *\n")
        if request.path == "/":
            return Answer(html("Articles", [form.format(n=n) for n in range(articles) for form in forms]))
        form, _, number = request.path.rpartition("/")
        if not number.isdigit() or int(number) >= articles or form + "/{n}" not in forms:
            return None
        body = prose(f"article {number}", 400)
        if form == "/print":
            return Answer(html(f"Article {number}", text=body, head="<style>nav{display:none}</style>"))
        if form == "/today":
            return Answer(html(f"Article {number}", ["/"], text=f"{body} Printed on day {int(number) + 1}."))
        return Answer(b"") if form == "/empty" else Answer(html(f"Article {number}", ["/"], text=body))

    return answer
