"""Pages with words in them: deterministic, different for each seed, cheap enough to be made while answering."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import lru_cache
from html import escape

_rng = random.Random(42)
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstv" for vowel in "aeiou"]
WORDS = sorted({"".join(_rng.choices(_SYLLABLES, k=_rng.randint(2, 4))) for _ in range(4000)})


@lru_cache(maxsize=20_000)
def prose(seed: str, words: int = 80) -> str:
    """Give sentences that depend on the seed only."""
    rng = random.Random(seed)
    drawn = rng.choices(WORDS, k=words)
    return ". ".join(" ".join(drawn[i : i + 12]).capitalize() for i in range(0, words, 12)) + "."


def html(
    title: str, links: Iterable[str | tuple[str, str]] = (), text: str | None = None, head: str = "", tail: str = ""
) -> bytes:
    """Give a small page: a title, a paragraph (its own, or `text`), and links (URL, or URL and anchor text)."""
    pairs = [(link, link) if isinstance(link, str) else link for link in links]
    items = "".join(f'<li><a href="{escape(url)}">{escape(label)}</a></li>' for url, label in pairs)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{head}</head>\n'
        f"<body><main><h1>{escape(title)}</h1>\n<p>{prose(title) if text is None else text}</p>\n"
        f"<ul>{items}</ul></main>{tail}</body></html>\n"
    ).encode()
