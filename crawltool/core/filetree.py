"""Which file in a tree is a URL's?

HOST/PATH, as wget has it: a path that ends in a slash becomes index.html, a query stands escaped behind the name. A URL is
hostile: no name leaves the tree, is longer than file systems take, means something to a shell, a terminal or Windows, or is
hidden among others. The mapping is not one to one (a name has fewer signs than a URL); whoever writes the tree marks the
second of two that meet, letters of either case being the same. Called by stores/warctree.
"""

from __future__ import annotations

import hashlib
import re

from crawltool.core.urls import Url

SEGMENT_BYTES_MAX = 180  # file systems take 255; a mark and an ending are added
DEPTH_MAX = 24  # folders; what lies deeper gets one name
MARK_CHARS = 12
INDEX = "index.html"
_ODD = re.compile(r"""[^A-Za-z0-9._~!$&'()+,;=@%\[\]-]""")
_DOTS_ONLY = re.compile(r"\.+")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def path_of(url: Url) -> list[str]:
    """Give the folders and, last, the file of a URL. Every part is safe by itself: never '', '.', '..', never with a slash."""
    usual = (url.scheme == "http" and url.port == 80) or (url.scheme == "https" and url.port == 443)
    host = url.host if usual else f"{url.host}:{url.port}"
    path, question, query = url.target.partition("?")
    segments = path.split("/")[1:] or [""]
    segments[-1] = (segments[-1] or INDEX) + (f"?{query}" if question else "")
    if len(segments) > DEPTH_MAX:
        segments[DEPTH_MAX - 1 :] = ["/".join(segments[DEPTH_MAX - 1 :])]
    return [_safe(host), *(_safe(segment) for segment in segments)]


def marked(name: str, text: str) -> str:
    """Give another name for the same file: with a mark made of a text, before the ending."""
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_CHARS]
    stem, dot, ending = name.rpartition(".")
    return f"{stem}~{mark}.{ending}" if dot and stem and len(ending) <= 8 else f"{name}~{mark}"


def folded(parts: list[str]) -> str:
    """Give what two paths have in common that are one on some file systems."""
    return "/".join(parts).casefold()


def _safe(segment: str) -> str:
    """Make one part of a path a name."""
    name = _ODD.sub(lambda sign: "".join(f"%{byte:02X}" for byte in sign[0].encode("utf-8", "surrogatepass")), segment) or "%"
    if _DOTS_ONLY.fullmatch(name) or name.endswith("."):
        name = name[:-1] + "%2E"
    if name.startswith(("-", "~")):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if _DEVICE.fullmatch(name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    return name if len(name) <= SEGMENT_BYTES_MAX else marked(name[:SEGMENT_BYTES_MAX], segment)
