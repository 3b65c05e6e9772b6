"""How does a person write a duration, a size, a count, and how do we write it back?

One grammar for flags, environment and crawl.toml: a number and a unit without a space (`1.5`, `90s`, `4h`, `10MiB`,
`20k`); a bare number is seconds, bytes or pieces. `none` lifts an optional limit. Called by cli/options and cli/policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import click

from crawltool.core.frontier.bounds import AUTO
from crawltool.core.robotstoken import is_token, token_of

if TYPE_CHECKING:
    Kind = click.ParamType[Any]
else:  # older click has no type parameter here
    Kind = click.ParamType

_NUMBER = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s?([A-Za-z]*)", re.ASCII)
_SECONDS = {"ms": 0.001, "": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
# K, M, G alone are powers of 1024, as in curl and wget; kB, MB, GB are powers of 1000.
_BYTES = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_PIECES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class Quantity(Kind):
    """A number with a unit between two bounds. `optional` lets `none` stand for no limit."""

    units: Mapping[str, float] = {}
    advice = ""

    def __init__(self, low: float = 0, high: float = inf, *, optional: bool = False) -> None:
        self.low, self.high, self.optional = low, high, optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Turn what was typed into the number, in the base unit; a number passes."""
        if self.optional and isinstance(value, str) and value.lower() == "none":
            return None
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else self._read(value)
        if number is None:
            self.fail(f"{value!r} is not a {self.name}: write {self.advice}", param, ctx)
        if not self.low <= number <= self.high:
            self.fail(f"{value!r} is not between {self.write(self.low)} and {self.write(self.high)}", param, ctx)
        return self.settle(number)

    def _read(self, value: object) -> float | None:
        match = _NUMBER.fullmatch(str(value).strip())
        factor = self.units.get(match[2].lower()) if match else None
        return float(match[1]) * factor if match and factor is not None else None

    def settle(self, number: float) -> float | int:
        """Give the number as the type that Settings hold."""
        return number

    def write(self, value: float | None) -> str:
        """Give the shortest way to type a value."""
        if value is None:
            return "none"
        if value == inf:
            return "any"
        for unit, factor in self.spoken():
            if value >= factor and value % factor == 0:
                return f"{_digits(value / factor)}{unit}"
        return _digits(value)

    def spoken(self) -> list[tuple[str, float]]:
        """Give the units used in writing, largest first."""
        return []


def _digits(value: float) -> str:
    """Write a number without an exponent, which the grammar does not have."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


class Duration(Quantity):
    """Seconds as float."""

    name = "duration"
    units = _SECONDS
    advice = "seconds, or a number with ms, s, m, h or d (1.5, 500ms, 90s, 4h)"

    def spoken(self) -> list[tuple[str, float]]:
        """Give hours and minutes, then seconds."""
        return [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)]


class Size(Quantity):
    """Bytes as int."""

    name = "size"
    units = _BYTES
    advice = "bytes, or a number with KiB, MiB, GiB, kB, MB or GB (10MiB, 1GB)"

    def settle(self, number: float) -> int:
        """Give whole bytes."""
        return int(number)

    def spoken(self) -> list[tuple[str, float]]:
        """Give binary units, then decimal ones."""
        return [("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("GB", 10**9), ("MB", 10**6)]


class Count(Quantity):
    """Pieces as int."""

    name = "count"
    units = _PIECES
    advice = "a whole number, or one with k or M (500, 20k, 1M)"

    def settle(self, number: float) -> int:
        """Give whole pieces."""
        return int(number)


class Budget(Count):
    """A count, or `auto`, which is given back as AUTO."""

    name = "budget"
    advice = "a whole number, one with k or M, or auto"

    def __init__(self) -> None:
        super().__init__(1, optional=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Turn what was typed into the number."""
        return AUTO if value in ("auto", AUTO) else super().convert(value, param, ctx)

    def write(self, value: float | None) -> str:
        """Write it as it is typed."""
        return "auto" if value == AUTO else super().write(value)


class Factor(Quantity):
    """A plain number as float."""

    name = "number"
    units = {"": 1}
    advice = "a number (10, 0.5)"


class Share(Kind):
    """The part i of n, written i/n with 0 <= i < n; given back as (i, n)."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Turn `1/4` into (1, 4)."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value))
        if not match or int(match[1]) >= int(match[2]):
            self.fail(f"{value!r} is not a share: write i/n with i from 0 to n-1, such as 0/4", param, ctx)
        return int(match[1]), int(match[2])


class Points(Kind):
    """A pattern and points of priority, written PATTERN=N; given back as (pattern, points)."""

    name = "points"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Turn `*/news/*=2` into ("*/news/*", 2.0)."""
        if isinstance(value, tuple):
            return value
        pattern, _, number = str(value).rpartition("=")
        if not pattern or not re.fullmatch(r"[+-]?\d{1,3}(\.\d{1,3})?", number):
            self.fail(f"{value!r} is not a preference: write PATTERN=N, such as '*/news/*=2' or 're:/tag/=-1'", param, ctx)
        return pattern, float(number)

    def write(self, value: Any) -> str:
        """Write it as it is typed."""
        return f"{value[0]}={value[1]:g}"


class Token(Kind):
    """A name that may stand in robots.txt."""

    name = "token"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if not is_token(str(value)):
            self.fail(
                f"{value!r} cannot stand in robots.txt: write letters, - and _ only, as in {token_of(str(value))}", param, ctx
            )
        return str(value)


def spoken_duration(seconds: float) -> str:
    """Say a duration to a person, two figures at most: 4.2 s, 17 min, 3 h 20 min, 5 days."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        hours, rest = divmod(round(seconds / 60), 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{seconds / 86_400:.1f} days" if seconds < 10 * 86_400 else f"{seconds / 86_400:,.0f} days"


def spoken_size(size: float) -> str:
    """Say a number of bytes to a person: 812 bytes, 4.1 MB."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} bytes"
