"""Run crawltool as a user does, and read what it left behind with other people's readers: the harness of tests/e2e."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import zstandard
from warcio.archiveiterator import ArchiveIterator

COMMAND = [sys.executable, "-m", "crawltool"]
FAST = ["--delay", "0", "--delay-factor", "0", "--backoff", "0.1s"]
CONTACT = ["--contact", "tests@crawltool.test"]
BIN = Path(sys.executable).parent


def environment(home: Path) -> dict[str, str]:
    """Give an environment in which no setting of the person running the tests is in force."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CRAWLTOOL_", "XDG_"))}
    clean.pop("CRAWLTOOL_DIR", None)
    return clean | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PYTHONFAULTHANDLER": "1"}


class Crawl:
    """A crawl directory and the command that works on it; `run` and `start` may be called again and again."""

    def __init__(self, folder: Path, *arguments: str, name: str = "crawl") -> None:
        self.dir, self.home, self.arguments = folder / name, folder, list(arguments)

    def command(self, *more: str) -> list[str]:
        """Give the command line of the porcelain."""
        return [*COMMAND, "crawl", *self.arguments, *more, "-C", str(self.dir)]

    def start(self, *more: str, **options: Any) -> subprocess.Popen[str]:
        """Start the crawl in a process group of its own, its words in CRAWL.err."""
        with (self.home / f"{self.dir.name}.err").open("a") as words:
            return subprocess.Popen(
                self.command(*more), env=environment(self.home), stdin=subprocess.DEVNULL, stdout=words, stderr=words,
                start_new_session=True, text=True, **options,
            )  # fmt: skip

    def run(self, *more: str, timeout_s: float = 90, code: int | None = 0, **options: Any) -> str:
        """Run it to its end, and give what it said. Fails when it takes too long or ends with another code."""
        begun = self.said()
        process = self.start(*more, **options)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise AssertionError(f"not done after {timeout_s} s; it said:\n{self.said()[-4000:]}") from None
        said = self.said()[len(begun) :]
        assert code is None or process.returncode == code, (
            f"ended with {process.returncode}, not {code}; it said:\n{said[-4000:]}"
        )
        self.code = process.returncode
        return said

    def said(self) -> str:
        """Give all that any run wrote to stdout and stderr."""
        file = self.home / f"{self.dir.name}.err"
        return file.read_text(errors="replace") if file.exists() else ""

    def tool(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run another command on the same directory."""
        return tool(self.home, *arguments, "-C", str(self.dir), **options)

    def outcomes(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Give the crawl log, read without crawltool."""
        records = list(json_lines(self.dir / "outcomes"))
        assert len({record["seq"] for record in records}) == len(records), "a seq stands twice in the log"
        for record in records:
            record.setdefault("kind", "page")  # a field with its default is not written
        return [record for record in records if record["type"] == "outcome" and (kind is None or record["kind"] == kind)]

    def status(self) -> dict[str, Any]:
        """Give the last status.json."""
        found: dict[str, Any] = json.loads((self.dir / "status.json").read_text())
        return found

    def pages(self) -> list[dict[str, Any]]:
        """Give the rows of pages/ that are pages (aliases are rows without text)."""
        return list(json_lines(self.dir / "pages"))

    def warcs(self) -> list[Path]:
        """Give the archives; none may still be open after a crawl has ended."""
        return sorted((self.dir / "warc").glob("*.warc.gz*"))

    def warc_types(self) -> Counter[str]:
        """Count the records of each type, as warcio reads them."""
        return Counter(kind for kind, _, _ in self.warc_records())

    def warc_records(self) -> Iterator[tuple[str, str | None, Any]]:
        """Yield (type, target URL, warcio record) of all archives."""
        for path in self.warcs():
            with path.open("rb") as stream:
                for record in ArchiveIterator(stream):
                    yield record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record

    def check_warcs(self) -> None:
        """Let warcio and fastwarc check every archive: digests, lengths, gzip members."""
        paths = [str(path) for path in self.warcs()]
        assert paths and not [path for path in paths if path.endswith(".open")], paths
        done = subprocess.run([BIN / "warcio", "check", *paths], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        for path in paths if (BIN / "fastwarc").exists() else []:
            done = subprocess.run([BIN / "fastwarc", "check", path], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr

    def check_counts(self) -> None:
        """Hold the log, the archives and pages/ against each other (the sums of issue 2)."""
        stored = [record for record in self.outcomes() if record.get("warc")]
        types = self.warc_types()
        assert types["response"] + types["revisit"] == len(stored), (types, len(stored))
        whole = [record for record in stored if is_whole_html(record)]
        digests = {record["digest"] for record in whole}
        rows = [row for row in self.pages() if not is_alias(row)]
        aliases = [row for row in self.pages() if is_alias(row)]
        revisits = [record for record in whole if record.get("body_warc")]
        assert len(whole) - len(revisits) == len(digests), (
            f"{len(whole) - len(revisits)} response records, {len(digests)} digests"
        )
        assert len(rows) == len(digests), f"{len(rows)} rows of pages/, {len(digests)} digests"
        assert len(aliases) == len(whole) - len(digests), f"{len(aliases)} aliases, {len(whole)} pages, {len(digests)} digests"


def is_whole_html(record: dict[str, Any]) -> bool:
    """Tell whether an outcome is a complete, non-empty 200 page of HTML."""
    html = (record.get("content_type") or "").partition(";")[0].strip() in ("text/html", "application/xhtml+xml")
    return (
        record["kind"] == "page"
        and record.get("status") == 200
        and (html or "page" in record)  # a type that says nothing is told by its first bytes
        and bool(record.get("body_bytes"))
        and not record.get("truncated")
    )


def is_alias(row: dict[str, Any]) -> bool:
    """Tell a row of pages/ that only says `the same as`."""
    return row.get("type") == "alias" or (row.get("dup") or {}).get("kind") == "exact" or "alias_of" in row


def tool(
    home: Path, *arguments: str, code: int | None = 0, timeout_s: float = 60, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a crawltool command to its end."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if "input" in options:
        del options["stdin"]
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment(home), capture_output=True, text=True, timeout=timeout_s, check=False, **options
    )  # fmt: skip
    assert code is None or done.returncode == code, f"{arguments} ended with {done.returncode}:\n{done.stderr[-3000:]}"
    return done


def json_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of every *.jsonl and *.jsonl.zst in a folder, in the order of their names."""
    for path in sorted(folder.glob("*.jsonl*")):
        with path.open("rb") as file:
            if path.name.endswith(".zst"):
                raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).readall()
            else:
                raw = file.read()
        for line in raw.splitlines():
            yield json.loads(line)


def family(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    """Give a process and all its descendants."""
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_group(process: subprocess.Popen[Any]) -> None:
    """kill -9 the whole group and whatever it started, and wait until all are gone."""
    members = family(process)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for member in members:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(members, timeout=10)
    process.wait()


def stage(process: subprocess.Popen[Any], name: str, timeout_s: float = 10) -> psutil.Process:
    """Find the stage `name` (frontier, fetch …) among the descendants of a running crawl."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        for member in family(process)[1:]:
            try:
                words = member.cmdline()
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
            if name in words and any("crawltool" in word for word in words):
                return member
        time.sleep(0.05)
    raise AssertionError(f"no stage {name} among {[m.cmdline() for m in family(process)]}")


def wait_for(claim: Any, timeout_s: float = 20, what: str = "") -> None:
    """Wait until claim() holds."""
    end = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < end, f"waited {timeout_s} s for {what or claim}"
        time.sleep(0.05)


def starts(asks: Iterable[Any], slots: int, window_s: float) -> list[str]:
    """Give every place where more than `slots` of these requests began within one window, by the server's clock."""
    times = sorted((ask.t, ask.url) for ask in asks)
    too_near = []
    for (t, url), (later, next_url) in zip(times, times[slots:], strict=False):
        # The end of an exchange is after the server logged its start, so no tolerance is needed but for rounding.
        if later - t < window_s - 0.001:
            too_near.append(f"{later - t:.3f} s between {url} and {next_url}")
    return too_near


def pages_asked(asks: Iterable[Any]) -> Counter[str]:
    """Count the requests of each URL that is not a robots.txt."""
    return Counter(ask.url for ask in asks if ask.target != "/robots.txt")


def summary_number(said: str, word: str) -> int:
    """Read a number that stands in front of a word in the summary."""
    found = re.search(rf"([\d,]+) {word}", said)
    assert found, f"no number of {word} in:\n{said}"
    return int(found[1].replace(",", ""))


def shell(script: str, home: Path, timeout_s: float = 90) -> str:
    """Run a line of bash in which `crawltool` is the one under test, and give what it said. Fails when the line fails."""
    # A program, not a function: bash would keep a function's pipes open beside the stage, and no stage would see their end.
    program = home / "bin" / "crawltool"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    with (home / "shell.err").open("w+") as words:
        process = subprocess.Popen(
            ["bash", "-c", "set -o pipefail\n" + script], env=environment(home) | path, cwd=home, stdin=subprocess.DEVNULL,
            stdout=words, stderr=words, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
    said = (home / "shell.err").read_text(errors="replace")
    assert process.returncode == 0, f"ended with {process.returncode}:\n{said[-4000:]}"
    return said


def named(urls: Sequence[str], limit: int = 12) -> str:
    """Give a few of many, for messages."""
    return ", ".join(sorted(urls)[:limit]) + (f" … ({len(urls)})" if len(urls) > limit else "")
