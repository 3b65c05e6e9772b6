"""Crawl a miniature web and tell what was found: what `make demo` runs.

    python examples/demo.py                                   seven small hosts on loopback, served for the occasion
    python examples/demo.py https://example.com/ me@x.org     a real site instead, with a contact

The miniature web is the corner `demo` of tests/web; see it with `python -m tests.web --corner demo`.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.web import Web  # noqa: E402

CRAWL = Path("demo.crawl")
COMMAND = [sys.executable, "-m", "crawltool"]


def crawl(seeds: list[str], *options: str) -> int:
    """Run the one command that this is about, as it would be typed, and give its exit code."""
    words = ["crawl", *seeds, "-C", str(CRAWL), *options]
    print("$ crawltool", " ".join(words), flush=True)
    return subprocess.run([*COMMAND, *words], check=False).returncode


def log() -> list[dict[str, Any]]:
    """Read the crawl log, as `crawltool log` prints it: every exchange, one JSON record a line."""
    done = subprocess.run([*COMMAND, "log", "-C", str(CRAWL), "--json"], stdout=subprocess.PIPE, check=True)
    return [record for line in done.stdout.splitlines() if (record := json.loads(line))["type"] == "outcome"]


def told(records: list[dict[str, Any]], names: dict[str, str]) -> None:
    """Print what the records say: hosts, redirects, copies, charsets."""
    print("\nHost                     pages  redirects  not found  copies  nearly the same")
    hosts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        if record.get("kind", "page") == "page":
            counts = hosts[urlsplit(record["url"]).netloc]
            counts[record["verdict"]] += 1
            counts[(record.get("dup") or {}).get("kind", "")] += 1
    for authority in sorted({*hosts, *names}):
        counts = hosts[authority]
        name = f"{authority} {names.get(authority, '')}"
        row = (counts["ok"], counts["redirect"], counts["client_error"] + counts["gone"], counts["exact"], counts["near"])
        print(f"{name:25}{row[0]:5}{row[1]:11}{row[2]:11}{row[3]:8}{row[4]:17}")
    sitemaps = [record["url"] for record in records if record.get("kind") == "sitemap" and record["verdict"] == "ok"]
    print(f"\nSitemaps read: {len(sitemaps)}{', such as ' + sitemaps[0] if sitemaps else ''}")
    shown = [(record["url"], record["redirect"]) for record in records if record.get("redirect")]
    print(f"Redirects: {len(shown)}{', such as' if shown else ''}")
    for url, target in shown[:3]:
        print(f"  {url} -> {target}")
    charsets = Counter((record.get("page") or {}).get("charset") for record in records)
    charsets.pop(None, None)
    print("Charsets: " + ", ".join(f"{name} {count}" for name, count in charsets.most_common()))
    titled = [record for record in records if not (record.get("page") or {}).get("title", "").isascii()]
    for record in titled[:3]:
        print(f"  {record['url']}  {record['page']['title'][:50]}")


def refused() -> dict[str, int]:
    """Give how many known URLs were not asked for, by reason."""
    with contextlib.suppress(FileNotFoundError):
        counts: dict[str, int] = json.loads((CRAWL / "status.json").read_text()).get("refused", {})
        return counts
    return {}


def where(records: list[dict[str, Any]]) -> None:
    """Print which files hold what, and how to look further."""
    archives = sorted((CRAWL / "warc").glob("*.warc.gz"))
    print("\nNot asked for: " + (", ".join(f"{reason} {count}" for reason, count in refused().items()) or "nothing"))
    print("Archives: " + ", ".join(f"{path} ({path.stat().st_size // 1024} KiB)" for path in archives))
    print(f"Text and metadata, a row per distinct page: {CRAWL / 'pages'}/    Every exchange: {CRAWL / 'outcomes'}/")
    page = next((record for record in records if record.get("kind", "page") == "page" and record["verdict"] == "ok"), None)
    installed = Path(sys.executable).with_name("crawltool")  # in a virtual environment that is perhaps not on the PATH
    name = str(installed) if installed.exists() and shutil.which("crawltool") is None else "crawltool"
    print("\nLook further:")
    print(f"  {name} log -C {CRAWL} --json | head -3")
    if page is not None:
        print(f"  {name} why -C {CRAWL} {page['url']}")
        print(f"  {name} warc cat -C {CRAWL} {page['url']} | head")


def main(words: list[str]) -> int:
    """Crawl the miniature web, or the site that was named."""
    if words:
        code = crawl(words[:1], *(["--contact", words[1]] if len(words) > 1 else []), "--max-pages", "200")
        names: dict[str, str] = {}
    else:
        shutil.rmtree(CRAWL, ignore_errors=True)
        with Web(corner="demo") as web:
            names = {origin.removeprefix("http://"): name for name, origin in web.origins.items()}
            code = crawl([web.url(name) for name in web.origins], "--delay", "0.05")
    if not (CRAWL / "outcomes").exists():
        return code
    records = log()
    told(records, names)
    where(records)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
