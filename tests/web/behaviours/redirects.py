"""Redirects: chains, loops, to other hosts, and Locations that cannot be followed."""

from __future__ import annotations

from tests.web.answers import Answer, Handler, Request, Site, behaviour, redirect, text
from tests.web.prose import html

ODD = {
    "nohost": "https://:443/", "badport": "http://site.test:notaport/", "v6": "http://[::1", "data": "data:text/html,x",
    "script": "javascript:void(0)", "file": "file:///etc/hostname", "ftp": "ftp://site.test/x", "empty": "",
}  # fmt: skip


@behaviour
def redirects(site: Site, chain: int = 8) -> Handler:
    """Every kind of redirect, linked from one home page."""
    fixed = {
        "/self": "/self", "/pair/a": "/pair/b", "/pair/b": "/pair/a", "/relative/x/y": "../z", "/to-fragment": "/end#here",
        "/far": site.elsewhere("plain", "/p5.html"), "/far-private": site.elsewhere("plain", "/private/1.html"),
        "/own-private": "/private/x", "/scheme": site.origin.replace("http://", "https://") + "/tls",
    }  # fmt: skip
    pages = ["/end", "/relative/z"]

    def answer(request: Request) -> Answer | None:
        path = request.path
        if path == "/robots.txt":
            return text("User-agent: *\nDisallow: /private/\n")
        if path == "/":
            return Answer(
                html(
                    "Redirects",
                    [*fixed, f"/chain/{chain}", "/chain/30", "/grow", "/missing", *(f"/odd/{o}" for o in ODD), "/codes/308"],
                )
            )
        if path in fixed:
            return redirect(fixed[path], 301)
        section, _, rest = path[1:].partition("/")
        if section == "chain":
            return redirect(f"/chain/{int(rest) - 1}") if int(rest) else Answer(html("End of the chain"))
        if section == "grow":
            return redirect(f"/grow?{request.target.partition('?')[2]}x")
        if section == "odd":
            return redirect(ODD[rest])
        if section == "missing":
            return Answer(b"", 302)
        if section == "codes":
            return redirect(
                f"/codes/{ {308: 307, 307: 303, 303: 302, 302: 301}[int(rest)] }" if rest != "301" else "/end", int(rest)
            )
        return Answer(html(f"Reached {path}")) if path in pages else None

    return answer


@behaviour
def moved(site: Site, to: str = "plain", status: int = 301) -> Handler:
    """A site that has moved: every URL redirects to the same path of another host."""
    return lambda request: redirect(site.elsewhere(to, request.target), status)
