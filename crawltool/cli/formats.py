"""What crosses a pipe, what lies in a spool, what bounds everything: section 5 of the manual, and LIMITS.

Read from the definitions themselves: the structs of records.py with their comments, the tables of stores/spool, the lines
of limits.py. Called by cli/manpages.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from crawltool import limits, records
from crawltool.cli import roff
from crawltool.stores import spool

PARTS = (records.Prior, records.Locator, records.Robots, records.Page, records.Link, records.Dup)
_FIELD = re.compile(r"    (\w+): ([^=#]+?)(?: = ([^#]+?))?(?:  # (.*))?$")
_LIMIT = re.compile(r"([A-Z][A-Z0-9_]+) = ([^#]+?)(?:  # (.*))?$")


def pages() -> dict[str, str]:
    """Give the pages of section 5."""
    return {"crawltool-records.5": records_page(), "crawltool-spool.5": spool_page()}


def records_page() -> str:
    """Give crawltool-records(5)."""
    about = (records.__doc__ or "").split("\n\n", 1)[1].replace("`limits.RECORD_BYTES_MAX`", "1 MiB")
    about = about.replace("This file is the single definition; crawltool-records(5) is printed from it. ", "")
    body = roff.section("Description", roff.prose(" ".join(about.replace("This file is\nthe", "This file is the").split())))
    for name, struct in records.TYPES.items():
        body += roff.section(name, [*roff.prose(_says(struct)), *fields(struct)])
    for struct in PARTS:
        body += roff.section(struct.__name__, [*roff.prose(_says(struct)), *fields(struct)])
    verdicts = [line for word, text in records.VERDICTS.items() for line in roff.term(roff.bold(word), text)]
    body += roff.section("Verdicts", verdicts)
    actions = [line for word, text in records.ACTIONS.items() for line in roff.term(roff.bold(word), text)]
    body += roff.section("Actions", actions)
    body += roff.section("See also", roff.prose("crawltool(1), crawltool-spool(5)"))
    return roff.page("crawltool-records", 5, "the lines that cross a pipe", body)


def fields(struct: type[Any]) -> list[str]:
    """Give the fields of a struct with type, default and meaning."""
    lines: list[str] = []
    for line in inspect.getsource(struct).splitlines():
        match = _FIELD.match(line)
        if match:
            name, kind, default, meaning = match.groups()
            facts = [meaning[0].upper() + meaning[1:] + ("" if meaning.endswith((".", "…")) else ".")] if meaning else []
            facts += [f"Default: {default}."] if default not in (None, "None") else []
            lines += roff.term(f"{roff.bold(name.rstrip('_'))} {roff.italic(_kind(kind))}", " ".join(facts))
    return lines


def _says(struct: type[Any]) -> str:
    return inspect.cleandoc(struct.__doc__ or "")


def _kind(annotation: str) -> str:
    words = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "msgspec.Raw": "any JSON"}
    names = annotation.strip().removesuffix(" | None")
    return words.get(names, names)


def spool_page() -> str:
    """Give crawltool-spool(5)."""
    intro = (
        "A spool is a directory of segments between stages: many writers, many readers, on one machine or a shared file system. "
        "A segment is a file of whole records, one a line, that moves by rename(2). It is named in -i and -o as spool:DIR."
    )
    steps: list[str] = []
    for number, text in enumerate(spool.STEPS, 1):
        steps += roff.term(f"{number}.", text)
    states: list[str] = []
    for where, meaning, cost in spool.STATES:
        states += roff.term(roff.bold(where), f"{meaning[0].upper() + meaning[1:]}. If the machine dies here: {cost}")
    end = (
        "A spool has ended when DIR/.end is there, no segment waits, and no writer holds .writers; readers then end as at the "
        "end of a pipe. A forward spool holds at most so many segments that its writers wait for its readers; an inbox has none."
    )
    body = [
        *roff.section("Description", roff.prose(intro)),
        *roff.section("Steps", steps),
        *roff.section("States", states),
        *roff.section("End", roff.prose(end)),
        *roff.section("See also", roff.prose("crawltool(1), crawltool-records(5)")),
    ]
    return roff.page("crawltool-spool", 5, "a directory of segments between stages", body)


def limit_list() -> list[str]:
    """Give every limit that has a reason, with its value."""
    lines = roff.prose("What a user may set is an option. These bounds are structure:")
    for name, value, reason in _limits():
        lines += roff.term(f"{roff.bold(name)} {roff.escape(value)}", reason)
    return lines


def _limits() -> Iterator[tuple[str, str, str]]:
    for line in inspect.getsource(limits).splitlines():
        match = _LIMIT.match(line)
        if match and match[3]:
            yield match[1], match[2].strip().replace("_", ","), match[3]
