"""How good is main text, and what does it cost: core/pages/maintext beside resiliparse's own rules?

    python -m tests.bench.main_text [--repeat 3] [--missed]

Reads ../shared/data/pages (132 of its pages name strings that the main text must, and must not, hold). Milliseconds are CPU per
page; ours works on the tree that the links were read from, resiliparse parses again. --missed lists what ours gets wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import time
from collections.abc import Callable
from typing import NamedTuple

import zstandard
from resiliparse.extract.html2text import extract_plain_text

from crawltool.core.pages import charset, html, maintext
from tests.paths import shared_data


class Labelled(NamedTuple):
    """A page and what its main text must and must not hold."""

    name: str
    markup: str
    wanted: list[str]
    unwanted: list[str]


def pages() -> list[Labelled]:
    """Read the labelled pages."""
    rows = [json.loads(line) for line in shared_data("pages/index.jsonl").read_text().splitlines()]
    labels = {row["file"]: row for row in rows if "expect_text_with" in row}
    packed = zstandard.ZstdDecompressor().stream_reader(shared_data("pages/pages.tar.zst").read_bytes()).read()
    found = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name in labels else None
            if content is not None:
                label = labels[member.name]
                markup = charset.decode(content.read(), None)[0]
                found.append(Labelled(member.name, markup, label["expect_text_with"], label.get("expect_text_without", [])))
    return found


def theirs(document: html.Document) -> str:
    """Give resiliparse's main content."""
    text: str = extract_plain_text(document.html, main_content=True)
    return text


def squeezed(text: str) -> str:
    return " ".join(text.split())


def measure(name: str, read: Callable[[html.Document], str], labelled: list[Labelled], repeat: int, *, tell: bool) -> None:
    """Print one line of the table."""
    wanted = unwanted = 0
    costs = []
    for turn in range(repeat):
        spent = 0.0
        for page in labelled:
            document = html.parse(page.markup)
            started = time.process_time()
            text = read(document)
            spent += time.process_time() - started
            if turn:
                continue
            text = squeezed(text)
            missed = [words for words in page.wanted if squeezed(words) not in text]
            wrong = [words for words in page.unwanted if squeezed(words) in text]
            wanted, unwanted = wanted + len(page.wanted) - len(missed), unwanted + len(wrong)
            if tell and (missed or wrong):
                print(page.name, "missed:", missed, "wrong:", wrong)
        costs.append(spent / len(labelled) * 1000)
    strings, others = sum(len(page.wanted) for page in labelled), sum(len(page.unwanted) for page in labelled)
    quality = f"wanted {wanted} of {strings}, unwanted {unwanted} of {others}"
    print(f"{name:<12} {quality}, {min(costs):.2f} ms a page (at first {costs[0]:.2f})")


def run() -> None:
    """Read the options and measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--missed", action="store_true")
    options = parser.parse_args()
    labelled = pages()
    measure("resiliparse", theirs, labelled, options.repeat, tell=False)
    measure("maintext", maintext.read, labelled, options.repeat, tell=options.missed)


if __name__ == "__main__":
    run()
