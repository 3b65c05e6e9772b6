"""What does this page say, menus and all, and in which language is a text?

The door of resiliparse: all visible text by its rules on markup, language by its trigram profiles. (Main text is
core/pages/maintext's.) Called by core/pages/htmlpage and core/pages/plaintext.
"""

from __future__ import annotations

import re

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.lang import detect_fast

from crawltool import limits

_OPTION = re.compile(r"<option\b[^<>]*>", re.I)
_PRIMARY = re.compile(r"[A-Za-z]{2,3}(?=[-_]|\Z)")
# The detector's distance runs from 0 (its own training text) upwards and says nothing certain from 1200 on.
_DISTANCE_MAX = 1200
_NEAR = 1.05
_RANKED = 5


def whole(html: str) -> str:
    """Give all visible text of a page, menus and footers too."""
    text: str = extract_plain_text(_readable(html))
    return text


def language(text: str, hint: str | None) -> tuple[str | None, float | None]:
    """Tell the language (ISO 639-1) of a text and how sure that is, 0 to 1.

    `hint` is what the page claims (lang attribute): it decides for short texts, and weighs in where the text agrees.
    """
    match = _PRIMARY.match(hint.strip()) if hint else None
    claimed = match[0].lower() if match else None
    if len(text) < limits.LANGUAGE_CHARS_MIN:
        return (claimed, 0.5) if claimed else (None, None)
    ranked = _ranked(text[: limits.LANGUAGE_CHARS_MAX])
    if not ranked:
        return (claimed, 0.3) if claimed else (None, None)
    found, distance = ranked[0]
    # A few percent of distance tell nothing (Japanese with much Han looks Chinese): there the page's word decides.
    near = {name for name, other in ranked if other <= distance * _NEAR}
    lead = ranked[1][1] / max(distance, 1) - 1 if len(ranked) > 1 else 1.0
    sure = max(0.0, 1 - distance / _DISTANCE_MAX) * min(1.0, 0.5 + lead * 5)
    if claimed in near:
        found, sure = claimed, 1 - (1 - sure) / 4
    return found, round(sure, 3)


def _ranked(text: str) -> list[tuple[str, int]]:
    """Give the nearest languages with their distances, the nearest first."""
    found = detect_fast(text, cutoff=_DISTANCE_MAX, n_results=_RANKED)
    ranked = [found] if isinstance(found, tuple) else found
    return [(name, distance) for name, distance in ranked if name != "unknown"]


def _readable(html: str) -> str:
    """Leave out the options of giant lists: each costs the tree builder of the extractor as many steps as stand before it."""
    return _OPTION.sub(" ", html) if html.count("<option") > limits.HTML_OPTIONS_MAX else html
