"""How is a man page written? The few macros of man(7) that our pages need, with their escapes. Called by cli/manpages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable


def escape(text: str) -> str:
    """Make text safe in a line of roff: no macro at its start, no escape inside, typed hyphens stay hyphens."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace('"', "\\(dq")
    return "\\&" + text if text.startswith(".") else text


def prose(text: str) -> list[str]:
    """Write paragraphs; names that look like crawltool-fetch(1) become bold."""
    lines: list[str] = []
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        lines += [".PP"] if number else []
        lines += [marked(line) for line in textwrap.wrap(" ".join(paragraph.split()), 100, break_on_hyphens=False)]
    return lines


def marked(text: str) -> str:
    """Escape, with references to pages and quoted code in bold."""
    text = escape(text)
    text = re.sub(r"(crawltool(?:\\-[a-z]+)?)\((\d)\)", r"\\fB\1\\fR(\2)", text)
    return re.sub(r"\\\(ga(.+?)\\\(ga", r"\\fB\1\\fR", text)


def section(name: str, lines: Iterable[str]) -> list[str]:
    """Give a section, or nothing when it is empty."""
    body = list(lines)
    return [f".SH {quoted(name.upper())}", *body] if body else []


def subsection(name: str, lines: Iterable[str]) -> list[str]:
    """Give a subsection."""
    return [f".SS {quoted(name)}", *lines]


def quoted(text: str) -> str:
    """Give one argument of a macro."""
    return f'"{escape(text)}"'


def term(head: str, text: str) -> list[str]:
    """Give a term (roff, already escaped) and what it means."""
    return [".TP", head, *prose(text)]


def bold(text: str) -> str:
    """Give bold text."""
    return f"\\fB{escape(text)}\\fR"


def italic(text: str) -> str:
    """Give italic text: what stands for a value."""
    return f"\\fI{escape(text)}\\fR"


def verbatim(text: str) -> list[str]:
    """Give lines as they are typed."""
    return [".PP", ".EX", *(escape(line) for line in text.strip("\n").splitlines()), ".EE"]


def page(title: str, number: int, what: str, body: Iterable[str]) -> str:
    """Give a whole page, without a date so that the same source gives the same bytes."""
    head = [
        '.\\" Written by crawltool/cli/manpages.py from the command line itself; edit that, then: make man',
        f'.TH {quoted(title.upper())} {number} "" "crawltool" "crawltool manual"',
        ".SH NAME",
        f"{escape(title)} \\- {escape(what)}",
    ]
    return "\n".join([*head, *body]) + "\n"
