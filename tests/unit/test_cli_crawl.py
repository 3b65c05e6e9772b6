"""The porcelain before and after the ring: who may be asked, where things land, what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from crawltool.cli import crawl, progress
from crawltool.cli.main import cli
from crawltool.cli.progress import Status
from crawltool.cli.voice import Voice
from crawltool.errors import CannotHold, Misuse
from crawltool.stages.clock import LOCK_NAME
from crawltool.stores import atomic


class Words:
    """A terminal or a file that keeps what was said."""

    def __init__(self, terminal: bool = False) -> None:
        self.text, self.terminal = "", terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.terminal


def call(*arguments: str) -> tuple[Any, str]:
    """Run the command with these words; give its result and what it said."""
    words = Words()
    voice = Voice(words)  # type: ignore[arg-type]
    with cli.make_context("crawltool", ["crawl", *arguments], obj=voice) as ctx:
        return cli.invoke(ctx), words.text


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """A crawl that starts nothing: what would be started is listed."""
    started: list[tuple[str, ...]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setattr("crawltool.stages.crawl.run_once", lambda name, words: started.append((name, *words)) or 0)

    def run(directory: Path, seeds: list[object], params: dict[str, object], voice: Voice) -> int:
        started.append(("ring", str(directory)))
        return 0

    monkeypatch.setattr(crawl, "run_ring", run)
    return started


@pytest.mark.parametrize(
    ("words", "directory"),
    [
        (["https://www.example.org/docs/"], "www.example.org.crawl"),
        (["example.org"], "example.org.crawl"),
        (["http://[::1]:8000/"], "::1.crawl"),
        (["http://BÜCHER.example/"], "xn--bcher-kva.example.crawl"),
        (["--seeds", "hosts.txt"], "hosts.crawl"),
        (["https://a.example/", "-C", "here"], "here"),
    ],
)
def test_the_directory_is_named_for_the_first_host(
    ring: list[tuple[str, ...]], tmp_path: Path, words: list[str], directory: str
) -> None:
    (tmp_path / "hosts.txt").write_text("example.org\n")
    _, said = call(*words, "--contact", "me@x.org")
    assert ring[-1] == ("ring", directory)
    assert (tmp_path / directory / "crawl.toml").exists()
    assert said.splitlines()[0] == f"crawltool crawl: crawl directory {directory}"


def test_nothing_is_asked_without_a_contact_and_the_sentence_says_why(ring: list[tuple[str, ...]], tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="who is asking") as caught:
        call("https://example.org/")
    assert "--contact" in caught.value.remedy
    assert ring == [] and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("seeds", "none_needed"),
    [
        (["http://127.0.0.1/", "localhost:8000/x", "http://[::1]/", "http://a.localhost/"], True),
        (["http://127.0.0.1/", "http://example.org/"], False),
        (["http://127.0.0.1.example.org/"], False),
        (["http://localhost.example/"], False),
        (["mailto:me@example.org", "ftp://example.org/", "http://127.0.0.1/"], True),
    ],
)
def test_only_this_machine_needs_no_contact(tmp_path: Path, seeds: list[str], none_needed: bool) -> None:
    assert crawl.all_on_loopback(seeds, []) is none_needed
    (tmp_path / "seeds").write_text("# mine\n\n" + "\n".join(seeds) + "\n")
    assert crawl.all_on_loopback([], [str(tmp_path / "seeds")]) is none_needed
    assert crawl.all_on_loopback(seeds, ["-"]) is False


def test_a_long_seed_file_counts_as_the_wide_world(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_text("http://127.0.0.1/\n" * (crawl.SEEDS_LOOKED_AT + 1))
    assert crawl.all_on_loopback([], [str(tmp_path / "seeds")]) is False


def test_a_second_run_needs_no_url_and_keeps_what_was_given(ring: list[tuple[str, ...]], tmp_path: Path) -> None:
    call("https://example.org/", "--contact", "me@x.org", "--delay", "3")
    call("-C", "example.org.crawl")
    assert ring[1:] == [("ring", "example.org.crawl")] * 2
    _, said = call("-C", "example.org.crawl", "--delay", "4")
    assert "now has: delay" in said
    assert 'delay = "4s"' in (tmp_path / "example.org.crawl" / "crawl.toml").read_text()


def test_a_run_without_anything_to_crawl_says_so(ring: list[tuple[str, ...]]) -> None:
    with pytest.raises(Misuse, match="nothing to crawl"):
        call()
    with pytest.raises(Misuse, match="no crawl yet"):
        call("-C", "new", "--contact", "me@x.org")


@pytest.mark.parametrize("text", ["ftp://example.org/", "http://", "", "# a comment"])
def test_a_crawl_without_one_good_url_does_not_begin(
    ring: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Misuse, match="no URL to begin with"):
        call(text)
    assert not ring and not list(tmp_path.iterdir())


def test_a_running_crawl_is_left_as_it_is(ring: list[tuple[str, ...]], tmp_path: Path) -> None:
    call("https://example.org/", "--contact", "me@x.org", "-C", "c")
    before = (tmp_path / "c" / "crawl.toml").read_bytes()
    with atomic.lock(tmp_path / "c" / LOCK_NAME), pytest.raises(CannotHold):
        call("https://example.org/", "--contact", "other@x.org", "-C", "c")
    assert (tmp_path / "c" / "crawl.toml").read_bytes() == before
    assert len(ring) == 2


def test_bad_seeds_with_strict_end_the_crawl_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, ring: list[tuple[str, ...]]
) -> None:
    monkeypatch.setattr("crawltool.stages.crawl.run_once", lambda name, words: 65)
    code, _ = call("https://example.org/", "--strict", "--contact", "me@x.org")
    assert code == 65 and ring == []


def params(**more: object) -> dict[str, object]:
    return {"delay": 1.0, "per_host": 1, "max_pages": None} | more


def test_the_opening_says_how_long_and_what_would_shorten_it() -> None:
    said = progress.opening(1, params(max_pages=7200), Status())
    assert "7,200 pages take at least 2 h" in said and "--delay" in said and "--per-host" in said
    assert "without rest" in progress.opening(3, params(delay=0.0), Status())
    said = progress.opening(0, params(), Status(pages=12, ok_pages=10, queued=600, expected_s=600))
    assert said.startswith("resuming: 10 pages are here and 600 URLs queued, about 10 min")


def test_the_summary_names_hosts_reasons_limits_and_what_is_left() -> None:
    status = Status(
        pages=90,
        ok_pages=80,
        bytes=5_000_000,
        queued=7,
        failed={"timeout": 2, "gone": 1},
        refused={"robots": 4},
        verdicts={"ok": 80},
        hosts_closed={"a.example": "host_unavailable"},
        hosts_resting={"b.example": 600},
        limit="max_pages",
        said=["x joins the scope"],
    )
    said = "\n".join(progress.details(status))
    assert "failed: timeout 2, gone 1" in said and "a.example was given up: host_unavailable" in said
    assert "b.example rests for 10 min" in said and "--max-pages" in said and "x joins the scope" in said
    one = progress.closing(status, 60, 50)
    assert one == "80 pages (40 asked for in this run), 5.0 MB, 60 s, 3 failed, 4 refused, 7 left to do"


def test_progress_without_a_terminal_is_a_plain_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("crawltool.cli.progress.time.monotonic", lambda: clock[0])
    (tmp_path / "status.json").write_text('{"pages":20,"ok_pages":20,"queued":3,"failed":{"timeout":2}}')
    words = Words()
    with progress.Progress(tmp_path, Voice(words)) as shown:  # type: ignore[arg-type]
        assert not shown.is_live
        for _ in range(25):
            clock[0] += 1
            shown.tick(b"")
    assert len(words.text.splitlines()) == 2
    assert "20 pages" in words.text and "3 queued" in words.text and "2 failed (timeout 2)" in words.text


def test_a_status_that_is_absent_or_torn_is_an_empty_one(tmp_path: Path) -> None:
    assert progress.read(tmp_path) == Status()
    (tmp_path / "status.json").write_text('{"pages":')
    assert progress.read(tmp_path) == Status()


def test_a_quiet_crawl_keeps_its_summary() -> None:
    words = Words()
    voice = Voice(words)  # type: ignore[arg-type]
    voice.quiet = True
    voice.say("note")
    voice.say("done", "summary")
    assert words.text == "crawltool: done\n"


def test_the_command_stands_in_the_tree() -> None:
    assert isinstance(cli.get_command(click.Context(cli), "crawl"), crawl.CrawlCommand)
