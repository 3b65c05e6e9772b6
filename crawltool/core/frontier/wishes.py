"""What exactly does a control line ask for?

Its fields, checked: a number between two bounds, a host as URLs have it, a URL. What cannot be meant raises Refused, whose
text is counted and told. Called by core/frontier/steering.
"""

from __future__ import annotations

from math import isfinite

import msgspec

from crawltool import limits, records
from crawltool.core.urls import Url, parse, split


class Refused(Exception):
    """A control line that cannot be meant; its text is the reason that is counted and told."""


def value_of(control: records.Control) -> object:
    """Read the value of a line. Raises Refused."""
    try:
        value: object = msgspec.json.decode(control.value) if control.value is not None else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused("a value that cannot be read") from None
    return value


def number_of(control: records.Control, least: float, most: float, *, default: float | None = None) -> float | None:
    """Give the number of a line; None (or the default) where there is none. Raises Refused."""
    value = value_of(control)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or not least <= value <= most:
        raise Refused(f"{control.action} needs a number from {least:g} to {most:g}")
    return float(value)


def host_of(control: records.Control) -> str:
    """Give the host of a line as URLs have it. Raises Refused."""
    name = control.host or ""
    url = parse(f"http://{name}/") if 0 < len(name) <= limits.HOST_CHARS_MAX else None
    if url is None or url.target != "/" or url.port != 80 or "@" in name:
        raise Refused(f"{control.action} needs a host name")
    return url.host


def url_of(control: records.Control) -> Url:
    """Give the URL of a line. Raises Refused."""
    url = split(control.url or "")
    if url is None:
        raise Refused(f"{control.action} needs a URL")
    return url
