"""Repeated pages are told, pages are kept once, and a crash changes neither."""

from __future__ import annotations

import json
import os
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crawltool import limits, records
from crawltool.errors import CannotHold, DiskTrouble
from crawltool.records import Dup, Locator, Outcome, Page, Text
from crawltool.stages.dedup import Counts, Dedup
from crawltool.stores import pages

A, B, C = "http://a.example/", "http://b.example/", "http://c.example/"


def page_lines(url: str, body: str, simhash: int | None = None, *, words: int = 100, **fields: Any) -> list[bytes]:
    """What parse writes for a page: its text, then its outcome with a field nobody knows and a space that must stay."""
    simhash_hex = f"{hash_of(body) if simhash is None else simhash:016x}"
    facts: dict[str, Any] = {
        "url": url,
        "kind": "page",
        "lease": f"1-{url}",
        "verdict": "ok",
        "status": 200,
        "digest": f"sha1:{body}",
        "body_bytes": 1000,
        "content_type": "text/html; charset=utf-8",
        "fetched_at": 5.0,
        "page": Page(title=f"Title {body}", words=words, simhash=simhash_hex),
    } | fields
    outcome = records.encode(Outcome(**facts)).replace(b'"lease":', b'"later" : [1,{"x":"}"}], "lease":')
    return [records.encode(Text(url=url, lease=facts["lease"], text=f"Text of {body}.")), outcome]


def hash_of(body: str) -> int:
    return random.Random(body).getrandbits(64)


class Kept:
    """A source of given batches and a sink that keeps what comes, with the order of events."""

    def __init__(self, *batches: list[bytes]) -> None:
        self.batches, self.lines, self.events = batches, list[bytes](), list[str]()

    def __iter__(self) -> Iterator[Any]:
        for number, lines in enumerate(self.batches):
            yield type("Batch", (), {"lines": lines, "done": lambda _, n=number: self.events.append(f"done {n}")})()

    def publish(self, lines: list[bytes]) -> None:
        self.events.append("publish")
        self.lines += lines


def run(crawl: Path, *batches: list[bytes]) -> Kept:
    kept = Kept(*batches)
    with Dedup.open(crawl) as dedup:
        dedup.run(kept, kept)
    return kept


def dups(kept: Kept) -> list[tuple[str, str, int] | None]:
    found = [record.dup for record in map(records.decode, kept.lines) if isinstance(record, Outcome)]
    return [None if dup is None else (dup.kind, dup.of, dup.distance) for dup in found]


def rows(crawl: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pages.rows(crawl / "pages")]


def test_the_same_body_under_another_url_is_an_exact_duplicate_and_an_alias(tmp_path: Path) -> None:
    kept = run(tmp_path, page_lines(A, "x") + page_lines(B, "x", warc=Locator(file="w", offset=1, length=2)))
    assert dups(kept) == [None, ("exact", A, 0)]
    page, alias = rows(tmp_path)
    assert (page["type"], page["url"], page["text"], page["title"]) == ("page", A, "Text of x.", "Title x")
    assert alias == {
        "type": "alias",
        "url": B,
        "of": A,
        "digest": "sha1:x",
        "fetched_at": 5.0,
        "warc": {"file": "w", "offset": 1, "length": 2},
    }


def test_nearly_the_same_text_keeps_a_row_of_its_own(tmp_path: Path) -> None:
    kept = run(tmp_path, page_lines(A, "x", 0), page_lines(B, "y", 0b111), page_lines(C, "z", 0b1111 << 20))
    assert dups(kept) == [None, ("near", A, 3), None]
    assert [row.get("dup") for row in rows(tmp_path)] == [None, {"kind": "near", "of": A, "distance": 3}, None]


def test_short_pages_are_never_near(tmp_path: Path) -> None:
    few = limits.SIMHASH_WORDS_MIN - 1
    kept = run(tmp_path, page_lines(A, "x", 0, words=few), page_lines(B, "y", 0, words=few), page_lines(C, "z", 0))
    assert dups(kept) == [None, None, None]


def test_a_page_never_matches_itself_whatever_came_between(tmp_path: Path) -> None:
    first = run(tmp_path, page_lines(A, "x"), page_lines(A, "x"), page_lines(B, "x"), page_lines(A, "x"), page_lines(B, "x"))
    assert dups(first) == [None, None, ("exact", A, 0), None, ("exact", A, 0)]
    again = run(tmp_path, page_lines(B, "x"), page_lines(A, "x"))
    assert dups(again) == [("exact", A, 0), None]
    assert [(row["type"], row["url"]) for row in rows(tmp_path)] == [("page", A), ("alias", B)]


def test_a_new_version_of_a_page_is_a_new_row_and_not_near_its_old_one(tmp_path: Path) -> None:
    kept = run(tmp_path, page_lines(A, "v1", 0), page_lines(A, "v2", 1), page_lines(A, "v3", 1), page_lines(B, "y", 1))
    assert dups(kept) == [None, None, None, ("near", A, 0)]
    assert [row["digest"] for row in rows(tmp_path)] == ["sha1:v1", "sha1:v2", "sha1:v3", "sha1:y"]
    back = run(tmp_path, page_lines(A, "v1", 0), page_lines(B, "y", 1), page_lines(C, "v2", 1))
    assert dups(back) == [None, ("near", A, 0), ("exact", A, 0)]


def test_only_whole_answers_count(tmp_path: Path) -> None:
    no_pages: list[dict[str, Any]] = [
        {"truncated": "length"},
        {"status": 203},
        {"verdict": "client_error", "status": 404},
        {"verdict": "not_modified", "status": 304},
        {"body_bytes": 0},
        {"body_bytes": None},
        {"digest": None},
        {"kind": "robots"},
    ]
    lines = [line for fields in no_pages for line in page_lines(B, "x", **fields)]
    kept = run(tmp_path, page_lines(A, "x") + lines)
    assert [row["url"] for row in rows(tmp_path)] == [A]
    assert kept.lines[1:] == [line for line in lines if records.type_of(line) == "outcome"]


def test_html_has_a_row_read_or_not_and_other_types_only_when_read(tmp_path: Path) -> None:
    def given(url: str, body: str, content_type: str, page: Page | None, with_text: bool = False) -> list[bytes]:
        text, outcome = page_lines(url, body, content_type=content_type, page=page)
        return [text, outcome] if with_text else [outcome]

    trouble = Page(trouble="cannot be read")
    kept = run(
        tmp_path,
        given("http://a.example/1", "1", "image/png", None) + given("http://a.example/2", "2", "image/png", trouble),
        given("http://a.example/3", "3", "Text/HTML ;charset=x", None) + given("http://a.example/4", "4", "text/html", trouble),
        given("http://a.example/5", "5", "application/pdf", Page()) + given("http://a.example/6", "6", "a/b", trouble, True),
        given("http://a.example/7", "1", "image/png", None),
    )
    assert [row["digest"][-1] for row in rows(tmp_path)] == ["3", "4", "5", "6"]
    assert rows(tmp_path)[1]["trouble"] == "cannot be read"
    assert dups(kept)[-1] is None


def test_all_else_passes_byte_for_byte_and_texts_do_not(tmp_path: Path) -> None:
    odd = [
        b'{"type":"candidate","url":"http://a.example/x", "source" : "seed"}\n',
        b'{"type":"banana"}\n',
        b"no json\n",
        b'{"type":"outcome","url":5}\n',
        b'{"type":"text","url":"u","lease":"l","text":"\xff"}\n',
        b'{ "lease":"1", "type":"control","action":"x"}\n',
    ]
    text, outcome = page_lines(A, "x")
    kept = run(tmp_path, [odd[0], text, *odd[1:3], outcome, *odd[3:]])
    assert kept.lines == [*odd[:3], outcome, *odd[3:]]


def test_a_splice_leaves_the_rest_of_the_line_alone(tmp_path: Path) -> None:
    kept = run(tmp_path, page_lines(A, "x"), page_lines(B, "x"))
    line = page_lines(B, "x")[1]
    assert kept.lines[1] == line[:-2] + b',"dup":{"kind":"exact","of":"http://a.example/"}}\n'


def test_an_outcome_that_has_dup_is_remembered_and_left_as_it_is(tmp_path: Path) -> None:
    line = page_lines(B, "x", dup=Dup(kind="exact", of=C))[1]
    kept = run(tmp_path, page_lines(A, "x"), [line])
    assert kept.lines[1] == line
    assert [row["type"] for row in rows(tmp_path)] == ["page", "alias"]


def test_a_text_waits_for_its_outcome_and_its_batch_is_held(tmp_path: Path) -> None:
    text, outcome = page_lines(A, "x")
    candidate = b'{"type":"candidate","url":"http://a.example/x"}\n'
    kept = run(tmp_path, [candidate], [text], [candidate], [outcome])
    assert kept.events == ["publish", "done 0", "publish", "publish", "publish", "done 1", "done 2", "done 3"]
    assert rows(tmp_path)[0]["text"] == "Text of x."


def test_a_text_of_another_url_or_without_outcome_is_forgotten(tmp_path: Path) -> None:
    other = records.encode(Text(url=B, lease=f"1-{A}", text="not mine"))
    orphan = records.encode(Text(url=C, lease="9-9", text="alone"))
    kept = Kept([other, page_lines(A, "x")[1]], [orphan], *[[b'{"type":"candidate","url":"u"}\n']] * 40)
    with Dedup.open(tmp_path) as dedup:
        assert dedup.run(kept, kept) == Counts(pages=1, orphans=1)
    assert "text" not in rows(tmp_path)[0]
    assert kept.events.count("publish") == 42 and kept.events[-1] == "done 41"


def test_rows_are_in_the_journal_before_outcomes_leave(tmp_path: Path) -> None:
    kept = Kept(page_lines(A, "x"))

    def publish(lines: list[bytes]) -> None:
        assert [row["url"] for row in rows(tmp_path)] == [A]
        raise BrokenPipeError

    kept.publish = publish  # type: ignore[method-assign]
    with pytest.raises(BrokenPipeError), Dedup.open(tmp_path) as dedup:
        dedup.run(kept, kept)
    assert kept.events == []
    assert dups(run(tmp_path, page_lines(A, "x"), page_lines(B, "x"))) == [None, ("exact", A, 0)]


def test_a_second_dedup_cannot_hold_the_crawl(tmp_path: Path) -> None:
    with Dedup.open(tmp_path), pytest.raises(CannotHold):
        Dedup.open(tmp_path)
    Dedup.open(tmp_path).close()


@pytest.mark.parametrize("loss", ["index", "index damaged", "journal"])
def test_memory_is_built_anew_from_the_journal_and_only_from_it(tmp_path: Path, loss: str) -> None:
    run(tmp_path, page_lines(A, "x", 0), page_lines(B, "x", 0), page_lines(C, "y", 1))
    index = tmp_path / "dedup.db" / "data.mdb"
    if loss == "index":
        index.unlink()
    elif loss == "index damaged":
        index.write_bytes(b"\0" * 4096)
    else:
        next((tmp_path / "pages").iterdir()).unlink()
    kept = run(tmp_path, page_lines(B, "x", 0), page_lines(C, "y", 1))
    assert dups(kept) == ([None, ("near", B, 1)] if loss == "journal" else [("exact", A, 0), ("near", A, 1)])
    assert len(rows(tmp_path)) == (2 if loss == "journal" else 3)


def test_a_foreign_line_in_the_journal_is_told(tmp_path: Path) -> None:
    run(tmp_path, page_lines(A, "x"))
    journal = pages.Pages(tmp_path / "pages")
    journal.append([b'{"type":"page"}\n'])
    journal.close()
    with pytest.raises(DiskTrouble, match="none of ours"):
        Dedup.open(tmp_path)


# --- kill -9 -----------------------------------------------------------------------------------------------------------


def small_web(rng: random.Random, count: int) -> list[list[bytes]]:
    """Batches with new pages, copies, near copies, refetches and new versions."""
    lines: list[list[bytes]] = []
    for number in range(count):
        url = f"http://a.example/{rng.randrange(count // 2)}"
        body = str(rng.randrange(count // 2))
        near = hash_of(str(int(body) % 4)) ^ (1 << int(body) % 64)
        lines.append(page_lines(url, body, near, fetched_at=float(number)))
    return [[line for pair in lines[at : at + 5] for line in pair] for at in range(0, count, 5)]


def work(crawl: Path, batches: list[list[bytes]], step: Callable[[], None]) -> None:
    """Run dedup from the first batch not released; each thing that leaves a trace on disk is a step."""
    released, out = crawl / "released", crawl / "out"
    first = int(released.read_text()) if released.exists() else 0

    class Batch:
        def __init__(self, number: int) -> None:
            self.number, self.lines = number, batches[number]

        def done(self) -> None:
            step()
            released.write_text(str(self.number + 1))
            step()

    class Sink:
        def publish(self, lines: list[bytes]) -> None:
            step()
            with out.open("ab", buffering=0) as file:
                file.write(b"".join(lines))
            step()

    with Dedup.open(crawl) as dedup:
        save, calls = dedup.save, iter(range(10**6))

        def sometimes(*, only_if_due: bool = False) -> None:
            """Save every third time, so that memory lags behind the journal."""
            if not only_if_due or next(calls) % 3 == 2:
                step()
                save()
                step()

        dedup.save = sometimes  # type: ignore[method-assign]
        dedup.run((Batch(number) for number in range(first, len(batches))), Sink())


def killed_at(crawl: Path, batches: list[list[bytes]], fatal: int) -> bool:
    """Work in a child that is killed at a step, in the middle of a write where it is one; True when it got to the end."""
    child = os.fork()
    if child == 0:
        left, real_write = [fatal], os.write

        def step(descriptor: int = -1, data: bytes = b"") -> None:
            left[0] -= 1
            if left[0] <= 0:
                if data:
                    real_write(descriptor, bytes(data[: len(data) * (fatal % 7) // 6]))
                os.kill(os.getpid(), signal.SIGKILL)

        def write(descriptor: int, data: bytes) -> int:
            step(descriptor, data)
            return real_write(descriptor, data)

        os.write = write  # type: ignore[assignment]
        try:
            work(crawl, batches, step)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code == 0


def answers(crawl: Path) -> dict[tuple[str, float], Any]:
    """The `dup` of each outcome that left; the same whenever it left twice."""
    found: dict[tuple[str, float], Any] = {}
    for line in (crawl / "out").read_bytes().splitlines():
        outcome = json.loads(line)
        key = (outcome["url"], outcome["fetched_at"])
        assert found.setdefault(key, outcome.get("dup")) == outcome.get("dup"), key
    return found


def test_kill_9_at_every_step_gives_the_pages_of_a_run_without(tmp_path: Path) -> None:
    batches = small_web(random.Random(3), 30)
    (tmp_path / "whole").mkdir()
    work(tmp_path / "whole", batches, lambda: None)
    right, right_answers = rows(tmp_path / "whole"), answers(tmp_path / "whole")
    kinds = [row["type"] for row in right], [(dup or {}).get("kind") for dup in right_answers.values()]
    assert {"page", "alias"} <= set(kinds[0]) and {"exact", "near", None} <= set(kinds[1])
    for fatal in range(1, 200):
        crawl = tmp_path / str(fatal)
        crawl.mkdir()
        survived = killed_at(crawl, batches, fatal)
        work(crawl, batches, lambda: None)
        assert rows(crawl) == right, fatal
        assert answers(crawl) == right_answers, fatal
        if survived:
            break
    assert survived and fatal > 20


def test_a_hundred_kills_in_one_crawl_change_nothing(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    batches = small_web(rng, 600)
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    work(tmp_path / "whole", batches, lambda: None)
    kills = 0
    while not killed_at(tmp_path / "killed", batches, 10**9 if kills >= 100 else rng.randrange(1, 16)):
        kills += 1
    assert kills > 20
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
    assert answers(tmp_path / "killed") == answers(tmp_path / "whole")
