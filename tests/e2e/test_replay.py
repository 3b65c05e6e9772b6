"""A crawl of an archive finds what the crawl of the web found, on a machine without any network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.crawls import BIN, CONTACT, FAST, Crawl, environment
from tests.paths import ROOT, shared_data
from tests.web import Web

SITES = {
    "plain": "plain pages=12",
    "moved": "moved to=second",
    "second": "plain pages=5",
    "chunked": "chunked",
    "encodings": "encodings",
    "redirects": "redirects",
}
SAME = ("verdict", "status", "redirect", "body_bytes", "content_type", "truncated", "digest", "page", "dup")


def offline(command: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where there is no network: not even loopback is up."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no unshare(1) that may take the network away")
    env = environment(home)
    env["PATH"] = f"{BIN}:{env['PATH']}"
    return subprocess.run([unshare, "-rn", *command], env=env, capture_output=True, text=True, timeout=60, check=False)


def facts(crawl: Crawl) -> dict[str, dict[str, Any]]:
    """Give what each page came to."""
    return {row["url"]: {name: row.get(name) for name in SAME} for row in crawl.outcomes("page") if row.get("status")}


def test_the_whole_pipeline_runs_again_offline(tmp_path: Path) -> None:
    with Web(tmp_path, SITES) as web:
        seeds = [web.url(name) for name in SITES if name != "second"]
        first = Crawl(tmp_path, *seeds, *FAST, *CONTACT, "--allow-net", "127.0.0.0/8")
        first.run()
    done = offline(["sh", str(ROOT / "examples" / "archive.sh"), str(first.dir), *seeds, *FAST], tmp_path)
    again = Crawl(tmp_path, name="crawl.again")
    assert done.returncode == 0, done.stderr[-3000:]
    before, after = facts(first), facts(again)
    assert len(before) > 40
    assert set(before) == set(after)
    for url in before:
        assert before[url] == after[url], url
    # Nothing was archived twice, and every locator leads to the body that was read.
    assert all(path.is_symlink() for path in (again.dir / "warc").iterdir())
    shown = again.tool("warc", "cat", seeds[0])
    assert shown.returncode == 0 and "<html" in shown.stdout.lower()
    good = {url for url, row in before.items() if row["verdict"] == "ok"}
    assert sum(path.is_file() for path in (tmp_path / "crawl.files").rglob("*")) >= len(good)
    assert len((tmp_path / "crawl.cdxj").read_bytes().splitlines()) >= len(before)


def test_what_is_not_in_the_archive_has_a_clear_end(tmp_path: Path) -> None:
    archive = shared_data("warc/pywb/iana.warc.gz")
    seeds = ["http://www.iana.org/", "http://www.iana.org/nowhere", "http://nowhere.test/"]
    crawl = Crawl(tmp_path, *seeds, *FAST, "--max-depth", "1", "--from-warc", str(archive))
    done = offline(crawl.command(), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = {row["url"]: row for row in crawl.outcomes("page")}
    assert rows["http://www.iana.org/"]["status"] == 200 and len(rows) > 10
    gone = rows["http://www.iana.org/nowhere"]
    assert (gone["verdict"], gone["reason"], gone.get("status")) == ("client_error", "not in the archive", None)
    why = crawl.tool("why", "http://nowhere.test/").stdout
    assert "not in the archive" in why
